/*
 * Description: what the driver does before, at and after cuInit.
 */
#include <string.h>

#include "behaviour.h"
#include "check.h"
#include "child.h"
#include "device.h"

static void init_needed(void)
{
	CUdevice device;
	int count = 0;

	T_IS(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
	T_IS(cuDeviceGet(&device, 0), CUDA_ERROR_NOT_INITIALIZED);
	t_init_only();
	T_OK(cuDeviceGetCount(&count));
}

static void init_flags(void)
{
	T_IS(cuInit(1), CUDA_ERROR_INVALID_VALUE);
	t_init_only();
}

static void init_again(void)
{
	t_init_only();
	T_OK(cuInit(0));
}

static void version_without_init(void)
{
	int version = 0;

	T_OK(cuDriverGetVersion(&version));
	T_TRUE(version >= 12000);
	T_EQ(version % 10, 0);
	T_IS(cuDriverGetVersion(NULL), CUDA_ERROR_INVALID_VALUE);
}

static void error_names(void)
{
	const char *name = NULL;

	T_OK(cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &name));
	T_TRUE(!strcmp(name, "CUDA_ERROR_OUT_OF_MEMORY"));
	T_OK(cuGetErrorName(CUDA_ERROR_ILLEGAL_STATE, &name));
	T_TRUE(!strcmp(name, "CUDA_ERROR_ILLEGAL_STATE"));
}

static void error_unknown(void)
{
	const char *name = "before";
	const char *text = "before";

	T_IS(cuGetErrorName((CUresult)98765, &name), CUDA_ERROR_INVALID_VALUE);
	T_TRUE(name == NULL);
	T_IS(cuGetErrorString((CUresult)98765, &text), CUDA_ERROR_INVALID_VALUE);
	T_TRUE(text == NULL);
}

/* The child is forked from a process that has initialised CUDA: on purpose. */
static void use_inherited_cuda(int fd, void *unused)
{
	CUdeviceptr address = 0;

	(void)unused;
	T_IS(cuMemAlloc_v2(&address, 4096), CUDA_ERROR_NOT_INITIALIZED);
	t_say(fd, 'k');
}

static void forked_child(void)
{
	struct t_child child;
	CUdeviceptr address;

	(void)t_cuda();
	address = t_alloc(4096);
	child = t_child_start(use_inherited_cuda, NULL);
	t_hear(child.fd, 'k');
	t_child_join(&child);
	t_fill(address, 4096, 1);
	t_verify(address, 4096, 1);
}

static const struct t_behaviour behaviours[] = {
	{"init_needed", T_DOCUMENTED, "calls before cuInit answer NOT_INITIALIZED", init_needed},
	{"init_flags", T_DOCUMENTED, "cuInit refuses flags other than 0", init_flags},
	{"init_again", T_DOCUMENTED, "a second cuInit succeeds", init_again},
	{"version_without_init", T_DOCUMENTED, "cuDriverGetVersion needs no cuInit",
	 version_without_init},
	{"error_names", T_DOCUMENTED, "cuGetErrorName gives the name of the enumerator",
	 error_names},
	{"error_unknown", T_DOCUMENTED,
	 "the name and the text of an unknown result are NULL, with INVALID_VALUE", error_unknown},
	{"forked_child", T_REPORTED,
	 "in a forked child of a CUDA process CUDA is lost; the parent goes on", forked_child},
};

T_BEHAVIOURS_MAIN(behaviours)
