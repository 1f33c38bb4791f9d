/*
 * See fake_phases.h.
 */

#include "fake_phases.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct fake_phases fake_phases;

void fake_phases_reset(void)
{
	memset(&fake_phases, 0, sizeof(fake_phases));
	fake_phases.generation = 1;
	fake_phases.kept_fd = -1;
}

static int played(enum stasis_wire_phase phase, struct stasis_wire_done *ret_done,
		  struct stasis_error *err)
{
	fake_phases.calls[phase]++;
	if (fake_phases.failing == phase)
		return stasis_fail(err, STASIS_REFUSED, "played failure");
	if (ret_done)
		ret_done->objects = fake_phases.calls[phase];
	return 0;
}

#define PHASE(name, number)                                                                        \
	int stasis_phase_##name(struct stasis_wire_done *ret_done, struct stasis_error *err)       \
	{                                                                                          \
		return played(STASIS_WIRE_##number, ret_done, err);                                \
	}

PHASE(open, OPEN)
PHASE(prepare_multicast, PREPARE_MULTICAST)
PHASE(prepare_unicast, PREPARE_UNICAST)
PHASE(restore_unicast, RESTORE_UNICAST)
PHASE(restore_multicast_creators, RESTORE_MULTICAST_CREATORS)
PHASE(restore_multicast_importers, RESTORE_MULTICAST_IMPORTERS)
PHASE(restore_multicast_devices, RESTORE_MULTICAST_DEVICES)
PHASE(restore_multicast_bindings, RESTORE_MULTICAST_BINDINGS)

int stasis_phase_gate(enum stasis_wire_gate_step step, uint64_t limit_ns,
		      struct stasis_wire_done *ret_done, struct stasis_error *err)
{
	(void)step;
	(void)limit_ns;
	return played(STASIS_WIRE_GATE, ret_done, err);
}

static int page_fill(enum stasis_wire_phase phase, uint64_t first, struct stasis_phase_page *page,
		     struct stasis_error *err)
{
	page->exports.first = first;
	for (uint64_t i = first;
	     i < fake_phases.page_total && page->exports.count < STASIS_WIRE_DESCRIPTORS_MAX; i++) {
		struct stasis_wire_export *item = &page->exports.items[page->exports.count++];

		item->object.bytes[0] = (uint8_t)(i + 1);
		item->bytes = i + 1;
		page->descriptors.fds[page->descriptors.count++] =
			memfd_create("exported", MFD_CLOEXEC);
	}
	page->has_more = first + page->exports.count < fake_phases.page_total;
	return played(phase, NULL, err);
}

int stasis_phase_save_page(uint64_t first, struct stasis_phase_page *ret_page,
			   struct stasis_error *err)
{
	return page_fill(STASIS_WIRE_SAVE_ALLOCATIONS, first, ret_page, err);
}

int stasis_phase_export_page(uint64_t first, struct stasis_phase_page *ret_page,
			     struct stasis_error *err)
{
	return page_fill(STASIS_WIRE_EXPORT_ALLOCATIONS, first, ret_page, err);
}

int stasis_phase_load_allocations(const struct stasis_wire_exports *exports,
				  struct stasis_wire_descriptors *descriptors, bool is_last,
				  struct stasis_wire_done *ret_done, struct stasis_error *err)
{
	(void)is_last;
	fake_phases.loaded += exports->count;
	if (descriptors->count > 0)
		fake_phases.kept_fd = stasis_wire_descriptors_take(descriptors, 0);
	return played(STASIS_WIRE_LOAD_ALLOCATIONS, ret_done, err);
}

void stasis_phase_records(uint64_t first, uint32_t max, struct stasis_wire_record *ret_records,
			  struct stasis_phase_records *ret_info)
{
	*ret_info = (struct stasis_phase_records){
		.generation = fake_phases.generation,
		.total = fake_phases.record_total,
	};
	for (uint64_t i = first; i < fake_phases.record_total && ret_info->count < max; i++) {
		struct stasis_wire_record *record = &ret_records[ret_info->count++];

		memset(record, 0, sizeof(*record));
		record->type = STASIS_WIRE_HANDLE;
		record->handle.object.bytes[0] = 1;
		record->handle.handle = i + 1;
		record->handle.count = 1;
	}
}

int stasis_phase_fetch(const struct stasis_id *object, int *ret_fd, uint64_t *ret_bytes,
		       struct stasis_error *err)
{
	(void)atomic_fetch_add(&fake_phases.fetches, 1);
	(void)atomic_fetch_add(&fake_phases.fetching, 1);
	while (atomic_load(&fake_phases.is_fetch_held))
		(void)sched_yield();
	(void)atomic_fetch_sub(&fake_phases.fetching, 1);
	if (object->bytes[0] == 0xee)
		return stasis_fail(err, STASIS_REFUSED, "no such object is held here");
	*ret_bytes = object->bytes[0];
	*ret_fd = memfd_create("fetched", MFD_CLOEXEC);
	if (*ret_fd < 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "export");
	return 0;
}
