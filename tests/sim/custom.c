/*
 * CustomStorage operations for tests.
 */
#include "custom.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "checkpoint.h"
#include "device.h"

void t_custom_init(void)
{
	int count = 0;

	t_init_only();
	T_OK(cuDeviceGetCount(&count));
	for (int i = 0; i < count; i++) {
		CUcontext context = NULL;

		T_OK(cuDevicePrimaryCtxRetain(&context, i));
		T_OK(cuCtxSetCurrent(context));
	}
}

CUresult t_custom_begin_checkpoint(pid_t pid, CUcheckpointCustomStorageInfo **ret_info)
{
	CUcheckpointCheckpointArgs args = {.customStorageInfo_out = ret_info};

	return cuCheckpointProcessCheckpoint(pid, &args);
}

CUresult t_custom_begin_restore(pid_t pid, CUcheckpointCustomStorageInfo **ret_info)
{
	CUcheckpointRestoreArgs args = {.customStorageInfo_out = ret_info};

	return cuCheckpointProcessRestore(pid, &args);
}

CUresult t_custom_complete(CUcheckpointOperationHandle handle)
{
	CUresult (*complete)(CUcheckpointOperationHandle) =
		(CUresult(*)(CUcheckpointOperationHandle))t_entry("cuCheckpointOperationComplete",
								  13040);

	return complete(handle);
}

int t_custom_device(const CUcheckpointCustomStoragePerDeviceData *entry)
{
	CUdevice device = -1;

	T_OK(cuStreamGetDevice(entry->stream, &device));
	return device;
}

static void make_current(const CUcheckpointCustomStoragePerDeviceData *entry)
{
	CUcontext context = NULL;
	CUgreenCtx green = NULL;

	T_OK(cuStreamGetCtx_v2(entry->stream, &context, &green));
	T_OK(cuCtxSetCurrent(context));
}

void t_custom_save(const CUcheckpointCustomStorageInfo *info, struct t_store *ret_store)
{
	T_TRUE(info->deviceCount <= T_EXTENTS_MAX);
	ret_store->count = info->deviceCount;
	for (size_t i = 0; i < info->deviceCount; i++) {
		const CUcheckpointCustomStoragePerDeviceData *entry = &info->perDeviceData[i];
		struct t_extent *extent = &ret_store->extents[i];

		make_current(entry);
		T_OK(cuDeviceGetUuid_v2(&extent->uuid, t_custom_device(entry)));
		extent->bytes = entry->size;
		extent->copy = malloc(entry->size);
		T_TRUE(extent->copy != NULL);
		T_OK(cuMemcpyDtoHAsync_v2(extent->copy, entry->devPtr, entry->size, entry->stream));
		T_OK(cuStreamSynchronize(entry->stream));
	}
}

static const struct t_extent *find_extent(const struct t_store *store, const CUuuid *uuid)
{
	for (size_t i = 0; i < store->count; i++)
		if (memcmp(&store->extents[i].uuid, uuid, sizeof(*uuid)) == 0)
			return &store->extents[i];
	t_fail("a restore has an extent of a GPU that the checkpoint had none of");
}

void t_custom_load(const CUcheckpointCustomStorageInfo *info, const struct t_store *store)
{
	T_EQ(info->deviceCount, store->count);
	for (size_t i = 0; i < info->deviceCount; i++) {
		const CUcheckpointCustomStoragePerDeviceData *entry = &info->perDeviceData[i];
		const struct t_extent *extent;
		CUuuid uuid;

		make_current(entry);
		T_OK(cuDeviceGetUuid_v2(&uuid, t_custom_device(entry)));
		extent = find_extent(store, &uuid);
		T_EQ(entry->size, extent->bytes);
		T_OK(cuMemcpyHtoDAsync_v2(entry->devPtr, extent->copy, entry->size, entry->stream));
	}
}

void t_custom_free(struct t_store *store)
{
	for (size_t i = 0; i < store->count; i++)
		free(store->extents[i].copy);
	store->count = 0;
}

void t_custom_suspend(pid_t pid, struct t_store *ret_store)
{
	CUcheckpointCustomStorageInfo *info = NULL;

	T_OK(t_lock(pid));
	T_OK(t_custom_begin_checkpoint(pid, &info));
	t_custom_save(info, ret_store);
	T_OK(t_custom_complete(info->handle));
	T_EQ(t_state(pid), CU_PROCESS_STATE_CHECKPOINTED);
}

void t_custom_resume(pid_t pid, const struct t_store *store)
{
	CUcheckpointCustomStorageInfo *info = NULL;

	T_OK(t_custom_begin_restore(pid, &info));
	t_custom_load(info, store);
	T_OK(t_custom_complete(info->handle));
	T_EQ(t_state(pid), CU_PROCESS_STATE_LOCKED);
	T_OK(t_unlock(pid));
}
