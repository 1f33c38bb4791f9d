/* See devices.h. Threads that ask at once write the same bytes, each behind its flag. */

#include "interpose/devices.h"

#include <stdatomic.h>
#include <string.h>

#include "interpose/calls.h"

#define DEVICES_KEPT 64

static _Atomic(uint64_t) words[DEVICES_KEPT][2];
static atomic_bool is_known[DEVICES_KEPT];

static bool uuid_ask(int ordinal, struct stasis_id *ret_uuid)
{
	const struct stasis_calls *calls = stasis_calls_get();
	CUuuid uuid;

	if (!calls || calls->cuDeviceGetUuid_v2(&uuid, ordinal) != CUDA_SUCCESS)
		return false;
	memcpy(ret_uuid->bytes, &uuid, sizeof(ret_uuid->bytes));
	return true;
}

void stasis_device_uuid(const CUmemLocation *location, struct stasis_id *ret_uuid)
{
	uint64_t value[2];

	memset(ret_uuid, 0, sizeof(*ret_uuid));
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE || location->id < 0)
		return;
	if (location->id >= DEVICES_KEPT) {
		(void)uuid_ask(location->id, ret_uuid);
		return;
	}
	if (!atomic_load_explicit(&is_known[location->id], memory_order_acquire)) {
		if (!uuid_ask(location->id, ret_uuid))
			return;
		memcpy(value, ret_uuid->bytes, sizeof(value));
		atomic_store(&words[location->id][0], value[0]);
		atomic_store(&words[location->id][1], value[1]);
		atomic_store_explicit(&is_known[location->id], true, memory_order_release);
		return;
	}
	value[0] = atomic_load(&words[location->id][0]);
	value[1] = atomic_load(&words[location->id][1]);
	memcpy(ret_uuid->bytes, value, sizeof(value));
}
