/*
 * Description: checkpoint and restore with CustomStorage, where the driver has it.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "behaviour.h"
#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "device.h"

#define BYTES (4 * T_MIB)

/* A locked target on device 0, our context there, and the entry that completes an operation. */
struct scene {
	struct t_child target;
	CUresult (*complete)(CUcheckpointOperationHandle handle);
	CUcheckpointCustomStorageInfo *info; /* of the operation last begun; the driver's */
	unsigned char *saved;                /* bytes of entry 0 */
	size_t saved_bytes;
};

static void target_main(int fd, void *unused)
{
	CUdeviceptr address;

	(void)unused;
	(void)t_cuda();
	address = t_alloc(BYTES);
	t_fill(address, BYTES, 1);
	t_say(fd, 'r');
	while (t_hear_any(fd) == 'v') {
		t_verify(address, BYTES, 1);
		t_say(fd, 'k');
	}
}

static struct scene scene_start(void)
{
	struct scene scene = {.target = t_child_start(target_main, NULL)};

	(void)t_cuda();
	*(void **)&scene.complete = t_entry("cuCheckpointOperationComplete", 13040);
	t_hear(scene.target.fd, 'r');
	T_OK(t_lock(scene.target.pid));
	return scene;
}

static void begin_checkpoint(struct scene *scene)
{
	CUcheckpointCheckpointArgs args = {.customStorageInfo_out = &scene->info};

	T_OK(cuCheckpointProcessCheckpoint(scene->target.pid, &args));
	T_TRUE(scene->info != NULL);
	T_EQ(scene->info->deviceCount, 1);
}

static void begin_restore(struct scene *scene)
{
	CUcheckpointRestoreArgs args = {.customStorageInfo_out = &scene->info};

	T_OK(cuCheckpointProcessRestore(scene->target.pid, &args));
	T_TRUE(scene->info != NULL);
	T_EQ(scene->info->deviceCount, 1);
}

static void save(struct scene *scene)
{
	const CUcheckpointCustomStoragePerDeviceData *data = scene->info->perDeviceData;

	scene->saved_bytes = data->size;
	scene->saved = malloc(data->size);
	T_TRUE(scene->saved != NULL);
	T_OK(cuMemcpyDtoHAsync_v2(scene->saved, data->devPtr, data->size, data->stream));
	T_OK(cuStreamSynchronize(data->stream));
}

static void load(struct scene *scene)
{
	const CUcheckpointCustomStoragePerDeviceData *data = scene->info->perDeviceData;

	T_EQ(data->size, scene->saved_bytes);
	T_OK(cuMemcpyHtoDAsync_v2(data->devPtr, scene->saved, data->size, data->stream));
}

/* From a begun checkpoint with saved bytes to a running target that has checked itself. */
static void finish(struct scene *scene)
{
	T_OK(scene->complete(scene->info->handle));
	begin_restore(scene);
	load(scene);
	T_OK(scene->complete(scene->info->handle));
	T_EQ(t_state(scene->target.pid), CU_PROCESS_STATE_LOCKED);
	T_OK(t_unlock(scene->target.pid));
	t_say(scene->target.fd, 'v');
	t_hear(scene->target.fd, 'k');
	t_child_join(&scene->target);
	free(scene->saved);
}

/* Gives a target up in the midst of an operation. */
static void abandon(struct scene *scene)
{
	t_child_kill(&scene->target);
	free(scene->saved);
}

static void custom_round_trip(void)
{
	struct scene scene = scene_start();

	begin_checkpoint(&scene);
	save(&scene);
	finish(&scene);
}

static void custom_is_begun_until_complete(void)
{
	struct scene scene = scene_start();

	begin_checkpoint(&scene);
	save(&scene);
	T_TRUE(t_state(scene.target.pid) != CU_PROCESS_STATE_CHECKPOINTED);
	T_OK(scene.complete(scene.info->handle));
	T_EQ(t_state(scene.target.pid), CU_PROCESS_STATE_CHECKPOINTED);
	abandon(&scene);
}

static void custom_completes_once(void)
{
	struct scene scene = scene_start();
	CUcheckpointOperationHandle handle;

	begin_checkpoint(&scene);
	handle = scene.info->handle;
	save(&scene);
	T_OK(scene.complete(handle));
	T_REFUSED(scene.complete(handle));
	abandon(&scene);
}

/* Holds memory on every device. */
static void spread_main(int fd, void *unused)
{
	CUcontext context;
	int count = 0;

	(void)unused;
	t_init_only();
	T_OK(cuDeviceGetCount(&count));
	for (int device = 0; device < count; device++) {
		T_OK(cuDevicePrimaryCtxRetain(&context, device));
		T_OK(cuCtxSetCurrent(context));
		t_fill(t_alloc(BYTES), BYTES, 1);
	}
	t_say(fd, 'r');
	t_wait_end(fd);
}

static void custom_stream_names_device(void)
{
	CUresult (*get_device)(CUstream, CUdevice *);
	CUresult (*get_context)(CUstream, CUcontext *, CUgreenCtx *);
	CUcheckpointCustomStorageInfo *info = NULL;
	CUcheckpointCheckpointArgs args = {.customStorageInfo_out = &info};
	CUcontext contexts[16] = {0};
	struct t_child target;
	int count = 0;

	t_ask_devices(2);
	target = t_child_start(spread_main, NULL);
	t_init_only();
	(void)t_entry("cuCheckpointOperationComplete", 13040);
	*(void **)&get_device = t_entry("cuStreamGetDevice", 12080);
	*(void **)&get_context = t_entry("cuStreamGetCtx", 12050);
	T_OK(cuDeviceGetCount(&count));
	for (int device = 0; device < count && device < 16; device++)
		T_OK(cuDevicePrimaryCtxRetain(&contexts[device], device));
	t_hear(target.fd, 'r');
	T_OK(t_lock(target.pid));
	T_OK(cuCheckpointProcessCheckpoint(target.pid, &args));
	T_EQ(info->deviceCount, count);
	for (unsigned int i = 0; i < info->deviceCount; i++) {
		CUcontext context = NULL;
		CUgreenCtx green = NULL;
		CUdevice device = -1;

		T_OK(get_device(info->perDeviceData[i].stream, &device));
		T_OK(get_context(info->perDeviceData[i].stream, &context, &green));
		T_TRUE(context != NULL && context == contexts[device]);
		contexts[device] = NULL; /* no device comes twice */
	}
	t_child_kill(&target);
}

static void custom_view_has_no_context(void)
{
	struct scene scene = scene_start();
	CUcontext context = (CUcontext)&context;

	begin_checkpoint(&scene);
	T_OK(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT,
				   scene.info->perDeviceData->devPtr));
	T_TRUE(context == NULL);
	save(&scene);
	finish(&scene);
}

static bool holds_pattern(const unsigned char *bytes, size_t size)
{
	uint32_t pattern[64];

	for (size_t i = 0; i < 64; i++)
		pattern[i] = t_word(1, i);
	return memmem(bytes, size, pattern, sizeof(pattern)) != NULL;
}

static void custom_view_holds_bytes(void)
{
	struct scene scene = scene_start();

	begin_checkpoint(&scene);
	save(&scene);
	T_TRUE(scene.saved_bytes > BYTES);
	T_TRUE(holds_pattern(scene.saved, scene.saved_bytes));
	finish(&scene);
}

static void custom_sizes_stay(void)
{
	struct scene scene = scene_start();

	begin_checkpoint(&scene);
	save(&scene);
	T_OK(scene.complete(scene.info->handle));
	begin_restore(&scene);
	T_EQ(scene.info->perDeviceData->size, scene.saved_bytes);
	load(&scene);
	T_OK(scene.complete(scene.info->handle));
	T_OK(t_unlock(scene.target.pid));
	t_child_join(&scene.target);
	free(scene.saved);
}

static void custom_needs_lock(void)
{
	struct scene scene = scene_start();
	CUcheckpointCheckpointArgs args = {.customStorageInfo_out = &scene.info};

	T_OK(t_unlock(scene.target.pid));
	T_IS(cuCheckpointProcessCheckpoint(scene.target.pid, &args), CUDA_ERROR_ILLEGAL_STATE);
	T_TRUE(scene.info == NULL);
	t_child_join(&scene.target);
}

static void custom_refuses_capture(void)
{
	struct scene scene = scene_start();
	CUgraph graph = NULL;
	CUstream stream;

	begin_checkpoint(&scene);
	save(&scene);
	stream = scene.info->perDeviceData->stream;
	T_OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	T_IS(scene.complete(scene.info->handle), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	(void)cuStreamEndCapture(stream, &graph);
	abandon(&scene);
}

static void custom_absent_is_native(void)
{
	struct scene scene = scene_start();

	T_OK(t_checkpoint(scene.target.pid));
	T_EQ(t_state(scene.target.pid), CU_PROCESS_STATE_CHECKPOINTED);
	t_resume(scene.target.pid);
	t_say(scene.target.fd, 'v');
	t_hear(scene.target.fd, 'k');
	t_child_join(&scene.target);
}

static const struct t_behaviour behaviours[] = {
	{"custom_round_trip", T_DOCUMENTED, "bytes copied out and in again are the target's bytes",
	 custom_round_trip},
	{"custom_is_begun_until_complete", T_DOCUMENTED,
	 "a custom checkpoint is CHECKPOINTED only when it is completed",
	 custom_is_begun_until_complete},
	{"custom_completes_once", T_DOCUMENTED, "an operation is completed once",
	 custom_completes_once},
	{"custom_stream_names_device", T_DOCUMENTED,
	 "each device has one extent, whose stream belongs to its primary context",
	 custom_stream_names_device},
	{"custom_view_has_no_context", T_REPORTED, "an extent's pointer names no context",
	 custom_view_has_no_context},
	{"custom_view_holds_bytes", T_REPORTED,
	 "an extent holds the application's bytes, and more than these", custom_view_holds_bytes},
	{"custom_sizes_stay", T_DOCUMENTED, "an extent has the same size at restore",
	 custom_sizes_stay},
	{"custom_needs_lock", T_DOCUMENTED, "a custom checkpoint needs a LOCKED process",
	 custom_needs_lock},
	{"custom_refuses_capture", T_DOCUMENTED,
	 "an operation cannot be completed while its stream is being captured",
	 custom_refuses_capture},
	{"custom_absent_is_native", T_DOCUMENTED,
	 "without an output for storage the driver keeps the bytes itself",
	 custom_absent_is_native},
};

T_BEHAVIOURS_MAIN(behaviours)
