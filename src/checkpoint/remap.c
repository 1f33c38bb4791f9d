/*
 * Restoring onto other GPUs: the driver wants every GPU of the process named, and answers a mistake only
 * with INVALID_VALUE, after which the target's fate is unclear. So all is checked before it is asked.
 */

#include <string.h>

#include "checkpoint/internal.h"

static int remap_check_pairs(const struct stasis_remap *remap, struct stasis_error *err)
{
	char text[STASIS_UUID_TEXT_BYTES];

	if (remap->count > STASIS_DEVICES_MAX)
		return stasis_fail(err, STASIS_SUSPENDED, "%u GPU pairs; at most %d are possible",
				   remap->count, STASIS_DEVICES_MAX);
	for (unsigned int i = 0; i < remap->count; i++) {
		for (unsigned int k = 0; k < i; k++) {
			if (stasis_id_equal(&remap->pairs[i].old_uuid, &remap->pairs[k].old_uuid))
				return stasis_fail(
					err, STASIS_SUSPENDED, "two GPU pairs move %s",
					stasis_uuid_format(&remap->pairs[i].old_uuid, text));
			if (stasis_id_equal(&remap->pairs[i].new_uuid, &remap->pairs[k].new_uuid))
				return stasis_fail(
					err, STASIS_SUSPENDED, "two GPU pairs move onto %s",
					stasis_uuid_format(&remap->pairs[i].new_uuid, text));
		}
	}
	return 0;
}

int stasis_remap_encode(const struct stasis_driver *driver, const struct stasis_remap *remap,
			CUcheckpointGpuPair pairs[STASIS_DEVICES_MAX],
			CUcheckpointRestoreArgs *io_args, struct stasis_error *err)
{
	char why[STASIS_DRIVER_WHY_BYTES];

	if (!remap || remap->count == 0)
		return 0;
	if (!stasis_driver_has_gpu_pairs(driver))
		return stasis_fail(err, STASIS_SUSPENDED, "restoring onto other GPUs: %s",
				   stasis_driver_why_no_gpu_pairs(driver, why));
	if (remap_check_pairs(remap, err) != 0)
		return -1;
	for (unsigned int i = 0; i < remap->count; i++) {
		pairs[i].oldUuid = stasis_id_to_cuda(&remap->pairs[i].old_uuid);
		pairs[i].newUuid = stasis_id_to_cuda(&remap->pairs[i].new_uuid);
	}
	io_args->gpuPairs = pairs;
	io_args->gpuPairsCount = remap->count;
	return 0;
}

const struct stasis_id *stasis_remap_new(const struct stasis_remap *remap,
					 const struct stasis_id *old_uuid)
{
	for (unsigned int i = 0; remap && i < remap->count; i++) {
		if (stasis_id_equal(&remap->pairs[i].old_uuid, old_uuid))
			return &remap->pairs[i].new_uuid;
	}
	return old_uuid;
}

static const struct stasis_gpu *seen_find(const struct stasis_gpu *seen, unsigned int seen_count,
					  const struct stasis_id *uuid)
{
	for (unsigned int i = 0; i < seen_count; i++) {
		if (stasis_id_equal(&seen[i].uuid, uuid))
			return &seen[i];
	}
	return NULL;
}

static bool remap_names(const struct stasis_remap *remap, const struct stasis_id *old_uuid)
{
	for (unsigned int i = 0; i < remap->count; i++) {
		if (stasis_id_equal(&remap->pairs[i].old_uuid, old_uuid))
			return true;
	}
	return false;
}

static int gpu_check_like(const struct stasis_gpu *old, const struct stasis_gpu *new_gpu,
			  struct stasis_error *err)
{
	char old_text[STASIS_UUID_TEXT_BYTES];
	char new_text[STASIS_UUID_TEXT_BYTES];

	(void)stasis_uuid_format(&old->uuid, old_text);
	(void)stasis_uuid_format(&new_gpu->uuid, new_text);
	if (strcmp(old->name, new_gpu->name) != 0 ||
	    old->capability_major != new_gpu->capability_major ||
	    old->capability_minor != new_gpu->capability_minor)
		return stasis_fail(err, STASIS_SUSPENDED,
				   "%s is a '%s' (%d.%d) and cannot take the place of %s, a '%s' "
				   "(%d.%d); a GPU of the same kind is needed",
				   new_text, new_gpu->name, new_gpu->capability_major,
				   new_gpu->capability_minor, old_text, old->name,
				   old->capability_major, old->capability_minor);
	if (new_gpu->total_bytes < old->total_bytes)
		return stasis_fail(err, STASIS_SUSPENDED,
				   "%s has %llu bytes of memory, %s had %llu; as much is needed",
				   new_text, (unsigned long long)new_gpu->total_bytes, old_text,
				   (unsigned long long)old->total_bytes);
	return 0;
}

static int pair_check(const struct stasis_driver *driver, const struct stasis_device_list *list,
		      const struct stasis_gpu_pair *pair, const struct stasis_gpu *old,
		      struct stasis_error *err)
{
	const struct stasis_device *device = stasis_device_list_find(list, &pair->new_uuid);
	char text[STASIS_UUID_TEXT_BYTES];
	struct stasis_gpu new_gpu;

	if (!old)
		return stasis_fail(err, STASIS_SUSPENDED,
				   "a GPU pair moves %s, which the process did not see",
				   stasis_uuid_format(&pair->old_uuid, text));
	if (!device)
		return stasis_fail(err, STASIS_SUSPENDED,
				   "a GPU pair moves onto %s, which is not visible here",
				   stasis_uuid_format(&pair->new_uuid, text));
	if (stasis_gpu_read(driver, device, &new_gpu, err) != 0) {
		stasis_error_worsen(err, STASIS_SUSPENDED);
		return -1;
	}
	return gpu_check_like(old, &new_gpu, err);
}

int stasis_remap_check(const struct stasis_driver *driver, const struct stasis_remap *remap,
		       const struct stasis_gpu *seen, unsigned int seen_count,
		       struct stasis_error *err)
{
	struct stasis_device_list list;
	char text[STASIS_UUID_TEXT_BYTES];

	if (remap->count == 0)
		return 0;
	if (remap_check_pairs(remap, err) != 0)
		return -1;
	for (unsigned int i = 0; i < seen_count; i++) {
		if (!remap_names(remap, &seen[i].uuid))
			return stasis_fail(err, STASIS_SUSPENDED,
					   "no GPU pair names %s; every GPU that the process saw "
					   "must be named, those that stay too",
					   stasis_uuid_format(&seen[i].uuid, text));
	}
	if (stasis_device_list_read(driver, &list, err) != 0) {
		stasis_error_worsen(err, STASIS_SUSPENDED);
		return -1;
	}
	for (unsigned int i = 0; i < remap->count; i++) {
		const struct stasis_gpu_pair *pair = &remap->pairs[i];
		const struct stasis_gpu *old = seen_find(seen, seen_count, &pair->old_uuid);

		if (pair_check(driver, &list, pair, old, err) != 0)
			return -1;
	}
	return 0;
}
