/*
 * Description: managed memory. Never more than a few MiB: too much of it can hang a GPU.
 */
#include <stdint.h>

#include "behaviour.h"
#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "device.h"

#define BYTES (4 * T_MIB)

static CUdeviceptr managed_alloc(void)
{
	CUdeviceptr address = 0;

	T_OK(cuMemAllocManaged(&address, BYTES, CU_MEM_ATTACH_GLOBAL));
	return address;
}

static void managed_is_seen_by_both(void)
{
	volatile uint32_t *words;
	CUdeviceptr address;

	(void)t_cuda();
	address = managed_alloc();
	words = (volatile uint32_t *)(uintptr_t)address;
	for (size_t i = 0; i < 1024; i++)
		words[i] = t_word(1, i);
	t_verify(address, 4096, 1);
	T_OK(cuMemsetD32_v2(address, 77, 1024));
	T_OK(cuCtxSynchronize());
	T_EQ(words[1023], 77);
}

static void managed_is_told(void)
{
	unsigned int is_managed = 0;

	(void)t_cuda();
	T_OK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed_alloc()));
	T_EQ(is_managed & 0xff, 1);
}

static void managed_flags(void)
{
	CUdeviceptr address = 0;

	(void)t_cuda();
	T_IS(cuMemAllocManaged(&address, BYTES, 0), CUDA_ERROR_INVALID_VALUE);
	T_IS(cuMemAllocManaged(&address, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
}

static void hold_managed(int fd, void *unused)
{
	CUdeviceptr address;

	(void)unused;
	(void)t_cuda();
	address = managed_alloc();
	t_fill(address, BYTES, 1);
	t_say(fd, 'r');
	t_hear(fd, 'v');
	t_verify(address, BYTES, 1);
	t_say(fd, 'k');
	t_wait_end(fd);
}

static void checkpoint_managed(void)
{
	struct t_child child = t_child_start(hold_managed, NULL);

	t_init_only();
	t_hear(child.fd, 'r');
	T_OK(t_lock(child.pid));
	T_IS(t_checkpoint(child.pid), CUDA_ERROR_NOT_SUPPORTED);
	T_EQ(t_state(child.pid), CU_PROCESS_STATE_LOCKED);
	T_OK(t_unlock(child.pid));
	t_say(child.fd, 'v');
	t_hear(child.fd, 'k');
	t_child_join(&child);
}

static const struct t_behaviour behaviours[] = {
	{"managed_is_seen_by_both", T_DOCUMENTED, "CPU and device see the same managed memory",
	 managed_is_seen_by_both},
	{"managed_is_told", T_DOCUMENTED, "a pointer tells that its memory is managed",
	 managed_is_told},
	{"managed_flags", T_DOCUMENTED, "managed memory needs bytes and an attachment",
	 managed_flags},
	{"checkpoint_managed", T_MEASURED,
	 "a process with managed memory cannot be checkpointed; unlocked, it goes on",
	 checkpoint_managed},
};

T_BEHAVIOURS_MAIN(behaviours)
