#ifndef TESTS_SIM_CUSTOM_H
#define TESTS_SIM_CUSTOM_H

/* A CustomStorage operation in the simplest form: extents to and from ordinary memory. */

#include <stddef.h>
#include <sys/types.h>

#include "driver/abi.h"

#define T_EXTENTS_MAX 16

struct t_extent {
	CUuuid uuid;
	size_t bytes;
	unsigned char *copy;
};

struct t_store {
	size_t count;
	struct t_extent extents[T_EXTENTS_MAX];
};

/* The primary contexts of all GPUs, which a caller must hold. */
void t_custom_init(void);

/* The driver's own results. */
CUresult t_custom_begin_checkpoint(pid_t pid, CUcheckpointCustomStorageInfo **ret_info);
CUresult t_custom_begin_restore(pid_t pid, CUcheckpointCustomStorageInfo **ret_info);
CUresult t_custom_complete(CUcheckpointOperationHandle handle);

/* The GPU that an entry's stream belongs to. */
int t_custom_device(const CUcheckpointCustomStoragePerDeviceData *entry);

/* Copies every extent into the store, or out of it; sizes and GPUs must match. */
void t_custom_save(const CUcheckpointCustomStorageInfo *info, struct t_store *ret_store);
void t_custom_load(const CUcheckpointCustomStorageInfo *info, const struct t_store *store);
void t_custom_free(struct t_store *store);

/* Lock to CHECKPOINTED, and from there to RUNNING. */
void t_custom_suspend(pid_t pid, struct t_store *ret_store);
void t_custom_resume(pid_t pid, const struct t_store *store);

#endif
