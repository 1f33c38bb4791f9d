/*
 * Is there room on the GPUs: for what a restore brings back, and for a context of ours beside it.
 */

#include <stdio.h>

#include "base/number.h"
#include "checkpoint/internal.h"

#define BYTES_TEXT_BYTES 32

static int room_read(const struct stasis_driver *driver, const struct stasis_device_list *list,
		     struct stasis_gpu_room *room, struct stasis_error *err)
{
	const struct stasis_device *device = stasis_device_list_find(list, &room->uuid);
	char text[STASIS_UUID_TEXT_BYTES];
	uint64_t free_bytes = 0;
	CUresult result;

	(void)stasis_uuid_format(&room->uuid, text);
	if (!device)
		return stasis_fail(err, STASIS_REFUSED,
				   "%s is needed and not visible to this process", text);
	result = stasis_device_free_bytes(driver, device, &free_bytes);
	if (result != CUDA_SUCCESS && result != CUDA_ERROR_OUT_OF_MEMORY)
		return stasis_fail_cuda(err, STASIS_REFUSED, result,
					"read how much memory is free on %s", text);
	room->free_bytes = free_bytes;
	room->has_context = result == CUDA_SUCCESS;
	return 0;
}

int stasis_gpu_rooms_read(const struct stasis_driver *driver, struct stasis_gpu_room *rooms,
			  unsigned int count, struct stasis_error *err)
{
	struct stasis_device_list list;

	if (stasis_device_list_read(driver, &list, err) != 0)
		return -1;
	for (unsigned int i = 0; i < count; i++) {
		if (room_read(driver, &list, &rooms[i], err) != 0)
			return -1;
	}
	return 0;
}

static int room_check(const struct stasis_gpu_room *room, uint64_t context_bytes,
		      struct stasis_error *err)
{
	uint64_t ours_bytes = room->has_context ? 0 : context_bytes;
	uint64_t needed_bytes = 0;
	char free_text[BYTES_TEXT_BYTES];
	char need_text[BYTES_TEXT_BYTES];
	char ours_text[BYTES_TEXT_BYTES];
	char text[STASIS_UUID_TEXT_BYTES];

	if (stasis_add_u64(room->need_bytes, ours_bytes, &needed_bytes) &&
	    needed_bytes <= room->free_bytes)
		return 0;
	return stasis_fail(
		err, STASIS_REFUSED,
		"%s has too little free memory: %s, where the process needs %s and a context of "
		"ours %s; end or suspend something else there",
		stasis_uuid_format(&room->uuid, text),
		stasis_format_bytes(room->free_bytes, free_text, sizeof(free_text)),
		stasis_format_bytes(room->need_bytes, need_text, sizeof(need_text)),
		room->has_context ? "no more than it has"
				  : stasis_format_bytes(ours_bytes, ours_text, sizeof(ours_text)));
}

int stasis_gpu_rooms_check(const struct stasis_gpu_room *rooms, unsigned int count,
			   uint64_t context_bytes, struct stasis_error *err)
{
	for (unsigned int i = 0; i < count; i++) {
		if (room_check(&rooms[i], context_bytes, err) != 0)
			return -1;
	}
	return 0;
}
