/*
 * Description: what the interposer records of multicast, by every kind of bind, what goes with what, and what its phases
 * ask the driver for, also after a failure at any of their calls.
 */

#include "interpose_rig.h"

#include <string.h>
#include <unistd.h>

#include "interpose/multicast.h"

#define HIGH (BASE + 64 * BLOCK)

static CUmemGenericAllocationHandle object_make(unsigned long long handle_types)
{
	CUmulticastObjectProp prop = {
		.numDevices = 2, .size = 3 * BLOCK, .handleTypes = handle_types};
	CUmemGenericAllocationHandle handle = 0;

	assert_int_equal(stasis_handle_cuMulticastCreate(fake_multicast_create, &handle, &prop),
			 CUDA_SUCCESS);
	assert_true(stasis_handle_is_virtual(handle));
	return handle;
}

static void device_add(CUmemGenericAllocationHandle object, CUdevice device)
{
	assert_int_equal(stasis_handle_cuMulticastAddDevice(fake_multicast_add, object, device),
			 CUDA_SUCCESS);
}

static void memory_bind(CUmemGenericAllocationHandle object, uint64_t index,
			CUmemGenericAllocationHandle memory)
{
	assert_int_equal(stasis_handle_cuMulticastBindMem(fake_multicast_bind, object,
							  index * BLOCK, memory, 0, BLOCK, 0),
			 CUDA_SUCCESS);
}

static void address_bind(CUmemGenericAllocationHandle object, uint64_t index, uint64_t address)
{
	assert_int_equal(stasis_handle_cuMulticastBindAddr(fake_multicast_address, object,
							   index * BLOCK, address, BLOCK, 0),
			 CUDA_SUCCESS);
}

static void unbind(CUmemGenericAllocationHandle object, CUdevice device, uint64_t index)
{
	assert_int_equal(stasis_handle_cuMulticastUnbind(fake_multicast_unbind, object, device,
							 index * BLOCK, BLOCK),
			 CUDA_SUCCESS);
}

static struct stasis_wire_record records[64];

static uint32_t records_of(enum stasis_wire_record_type type,
			   const struct stasis_wire_record **ret_first)
{
	struct stasis_phase_records info;
	uint32_t count = 0;

	*ret_first = &records[0];
	stasis_phase_records(0, 64, records, &info);
	for (uint32_t i = info.count; i > 0; i--) {
		if (records[i - 1].type == type) {
			*ret_first = &records[i - 1];
			count++;
		}
	}
	return count;
}

static uint32_t count_of(enum stasis_wire_record_type type)
{
	const struct stasis_wire_record *ignored;

	return records_of(type, &ignored);
}

static const struct stasis_wire_binding *binding_only(void)
{
	const struct stasis_wire_record *found = NULL;

	assert_int_equal(records_of(STASIS_WIRE_BINDING, &found), 1);
	return &found->binding;
}

static struct stasis_id id_of(CUmemGenericAllocationHandle handle)
{
	struct stasis_id id;

	stasis_registry_lock();
	id = stasis_handle_find(handle)->object->id;
	stasis_registry_unlock();
	return id;
}

static void said(const char *calls)
{
	assert_string_equal(fake.multicast, calls);
	fake.multicast[0] = '\0';
}

static void create_what_is_asked(void **state)
{
	CUmulticastObjectProp prop = {.numDevices = 2, .size = BLOCK, .handleTypes = 9};
	CUmemGenericAllocationHandle handle = 7;

	(void)state;
	/* Descriptors are taken where fabric handles are refused; nothing was made. */
	assert_int_equal(stasis_handle_cuMulticastCreate(fake_multicast_create, &handle, &prop),
			 CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(handle, 7);
	said("");
	/* What the driver refuses, it refuses, and what it writes is kept. */
	prop.handleTypes = 1;
	fake.fail_at = 1;
	assert_int_equal(stasis_handle_cuMulticastCreate(fake_multicast_create, &handle, &prop),
			 CUDA_ERROR_UNKNOWN);
	assert_int_equal(handle, 0);
	assert_int_equal(stasis_registry.object_count, 0);
	handle = object_make(0);
	assert_int_equal(stasis_handle_cuMemExportToShareableHandle(
				 fake_export, &(int){-1}, handle,
				 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
			 CUDA_ERROR_INVALID_VALUE);
	rig_release(handle);
}

static void devices_are_counted_once(void **state)
{
	CUmemGenericAllocationHandle object = object_make(1);
	const struct stasis_wire_record *found = NULL;

	(void)state;
	device_add(object, 1);
	device_add(object, 0);
	device_add(object, 1);
	assert_int_equal(records_of(STASIS_WIRE_TEAM_DEVICE, &found), 2);
	assert_int_equal(found->team_device.ordinal, 1);
	assert_int_equal(found->team_device.device.bytes[0], 0x41);
	fake.fail_at = 1;
	assert_int_equal(stasis_handle_cuMulticastAddDevice(fake_multicast_add, object, 3),
			 CUDA_ERROR_UNKNOWN);
	assert_int_equal(count_of(STASIS_WIRE_TEAM_DEVICE), 2);
	rig_release(object);
}

/* What is bound is ours from then on, and stays as long. */
static void binding_holds_memory(void **state)
{
	CUmemGenericAllocationHandle object = object_make(1);
	CUmemGenericAllocationHandle memory = rig_create(BLOCK);
	struct stasis_id member = id_of(memory);
	const struct stasis_wire_record *found = NULL;

	(void)state;
	fake.fail_at = 1;
	assert_int_equal(stasis_handle_cuMulticastBindMem(fake_multicast_bind, object, 0, memory, 0,
							  BLOCK, 0),
			 CUDA_ERROR_UNKNOWN);
	assert_int_equal(records_of(STASIS_WIRE_ALLOCATION, &found), 1);
	assert_int_equal(found->allocation.flags, 0);
	memory_bind(object, 1, memory);
	assert_int_equal(records_of(STASIS_WIRE_ALLOCATION, &found), 1);
	assert_int_equal(found->allocation.flags, STASIS_WIRE_IS_SHARED | STASIS_WIRE_HAS_CONTENT);
	assert_true(stasis_id_equal(&binding_only()->member, &member));
	rig_release(memory);
	assert_int_equal(fake.handles, 2);
	unbind(object, 0, 1);
	assert_int_equal(fake.handles, 1);
	assert_int_equal(count_of(STASIS_WIRE_ALLOCATION), 0);
	assert_int_equal(count_of(STASIS_WIRE_BINDING), 0);
	rig_release(object);
}

static void object_takes_bindings_along(void **state)
{
	CUmemGenericAllocationHandle object = object_make(1);
	CUmemGenericAllocationHandle memory[2] = {rig_create(BLOCK), rig_create(BLOCK)};

	(void)state;
	rig_map(HIGH, BLOCK, object);
	for (uint64_t i = 0; i < 2; i++) {
		memory_bind(object, i, memory[i]);
		rig_release(memory[i]);
	}
	memory_bind(object, 2, object_make(1));
	rig_release(object);
	assert_int_equal(fake.handles, 4);
	rig_unmap(HIGH, BLOCK);
	/* All but the one that was bound by mistake, which is no memory and which its own handle holds. */
	assert_int_equal(fake.handles, 1);
	assert_int_equal(stasis_registry.object_count, 1);
	rig_release(stasis_registry.first->handles->value);
}

/* Both blocks of it, side by side. */
static void memory_map(CUmemGenericAllocationHandle memory)
{
	rig_map(BASE, BLOCK, memory);
	assert_int_equal(stasis_handle_cuMemMap(fake_map, BASE + BLOCK, BLOCK, BLOCK, memory, 0),
			 CUDA_SUCCESS);
}

static void bind_by_address(void **state)
{
	CUmemGenericAllocationHandle object = object_make(1);
	CUmemGenericAllocationHandle memory = rig_create(2 * BLOCK);
	struct stasis_id member = id_of(memory);
	const struct stasis_wire_record *found = NULL;
	static const struct stasis_id none;

	(void)state;
	memory_map(memory);
	rig_release(memory);
	address_bind(object, 0, BASE + BLOCK);
	assert_true(stasis_id_equal(&binding_only()->member, &member));
	assert_int_equal(binding_only()->member_offset, BLOCK);
	assert_int_equal(binding_only()->kind, STASIS_WIRE_BIND_ADDRESS);
	assert_int_equal(binding_only()->call_version, 1);
	unbind(object, 0, 0);
	/* The driver's own memory, on the device that it says. */
	fake.pointer_device = 5;
	address_bind(object, 0, BASE + 2 * BLOCK);
	assert_true(stasis_id_equal(&binding_only()->member, &none));
	assert_int_equal(binding_only()->ordinal, 5);
	unbind(object, 5, 0);
	/* It begins in memory of ours, and is not all of it. */
	address_bind(object, 0, BASE + BLOCK + BLOCK / 2);
	assert_int_equal(count_of(STASIS_WIRE_BINDING), 0);
	assert_int_equal(records_of(STASIS_WIRE_NOTE, &found), 1);
	assert_int_equal(found->note.kind, STASIS_WIRE_NOTE_UNSUPPORTED);
	unbind(object, 5, 0);
	address_bind(object, 0, BASE - BLOCK / 2);
	assert_int_equal(count_of(STASIS_WIRE_NOTE), 1);
	unbind(object, 5, 0);
	/* Its device cannot be known. */
	fake.pointer_device = -1;
	address_bind(object, 0, BASE + 2 * BLOCK);
	assert_int_equal(count_of(STASIS_WIRE_NOTE), 1);
	unbind(object, 3, 0);
	assert_int_equal(count_of(STASIS_WIRE_NOTE), 0);
	rig_unmap(BASE, 2 * BLOCK);
	rig_release(object);
}

/* Memory that only the driver knows, and that only its binding holds. */
static void unmapped_memory_hinders(void **state)
{
	CUmemGenericAllocationHandle object = object_make(1);

	(void)state;
	address_bind(object, 0, BASE + 2 * BLOCK);
	for (uint64_t i = 1; i < 4; i++)
		assert_int_equal(stasis_handle_cuMemMap(fake_map, BASE + i * BLOCK, BLOCK, 0, 1, 0),
				 CUDA_SUCCESS);
	rig_unmap(BASE + BLOCK, BLOCK);
	rig_unmap(BASE + 3 * BLOCK, BLOCK);
	assert_int_equal(count_of(STASIS_WIRE_NOTE), 0);
	fake.fail_at = 1;
	assert_int_equal(stasis_handle_cuMemUnmap(fake_unmap, BASE + 2 * BLOCK, BLOCK),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(count_of(STASIS_WIRE_NOTE), 0);
	rig_unmap(BASE + 2 * BLOCK, BLOCK);
	assert_int_equal(count_of(STASIS_WIRE_NOTE), 1);
	assert_int_equal(count_of(STASIS_WIRE_BINDING), 0);
	unbind(object, 0, 0);
	assert_int_equal(count_of(STASIS_WIRE_NOTE), 0);
	assert_int_equal(stasis_registry.native_binding_count, 0);
	rig_release(object);
}

static void untracked_memory_hinders(void **state)
{
	CUmemGenericAllocationHandle object = object_make(1);
	struct stasis_wire_done done;
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	memory_bind(object, 0, 99);
	assert_int_equal(count_of(STASIS_WIRE_BINDING), 0);
	assert_int_equal(count_of(STASIS_WIRE_NOTE), 1);
	assert_refused(stasis_phase_prepare_multicast(&done, &err), &err, STASIS_REFUSED,
		       "memory without descriptors");
	unbind(object, 0, 0);
	assert_int_equal(count_of(STASIS_WIRE_NOTE), 0);
	/* A part of a binding, which this driver takes: nobody knows what is bound then. */
	memory_bind(object, 0, 99);
	assert_int_equal(
		stasis_handle_cuMulticastUnbind(fake_multicast_unbind, object, 0, 0, BLOCK / 2),
		CUDA_SUCCESS);
	assert_int_equal(stasis_registry.damage_count, 1);
	rig_release(object);
}

static CUmemGenericAllocationHandle object_import(void)
{
	struct stasis_wire_ticket ticket = {.kind = STASIS_WIRE_TICKET_MULTICAST,
					    .participant = {{1}},
					    .object = {{2}},
					    .bytes = 3 * BLOCK,
					    .device_count = 8,
					    .handle_types = 1};
	CUmemGenericAllocationHandle handle = 0;
	int fd;

	peer_bytes = 3 * BLOCK;
	assert_int_equal(stasis_wire_ticket_create(&ticket, &fd, NULL), 0);
	assert_int_equal(rig_import(fd, &handle), CUDA_SUCCESS);
	assert_int_equal(close(fd), 0);
	return handle;
}

static void import_tells_of_its_team(void **state)
{
	CUmemGenericAllocationHandle handle = object_import();
	const struct stasis_wire_record *found = NULL;
	enum stasis_wire_ticket_verdict verdict;
	struct stasis_wire_ticket ticket;
	int fd = rig_ticket_of(handle);

	(void)state;
	assert_int_equal(records_of(STASIS_WIRE_MULTICAST, &found), 1);
	assert_int_equal(found->multicast.device_count, 8);
	assert_int_equal(found->multicast.bytes, 3 * BLOCK);
	assert_int_equal(found->multicast.handle_types, 1);
	assert_int_equal(found->multicast.role, STASIS_WIRE_IMPORTER);
	/* It would keep the driver's object alive. */
	assert_int_equal(stasis_registry.first->descriptor, -1);
	assert_int_equal(stasis_wire_ticket_read(fd, &verdict, &ticket, NULL), 0);
	assert_int_equal(ticket.kind, STASIS_WIRE_TICKET_MULTICAST);
	assert_int_equal(ticket.participant.bytes[0], 1);
	assert_int_equal(ticket.device_count, 8);
	assert_int_equal(close(fd), 0);
	rig_release(handle);
}

/* ---- phases ---- */

typedef int phase_function(struct stasis_wire_done *ret_done, struct stasis_error *err);

static phase_function *const phases[] = {
	stasis_phase_prepare_multicast,           stasis_phase_restore_multicast_creators,
	stasis_phase_restore_multicast_importers, stasis_phase_restore_multicast_devices,
	stasis_phase_restore_multicast_bindings,
};
#define PHASES (sizeof(phases) / sizeof(phases[0]))

static void phase_do(size_t index)
{
	struct stasis_wire_done done;
	struct stasis_error err = STASIS_ERROR_INIT;

	assert_done(phases[index](&done, &err), &err);
	assert_int_equal(done.objects, 1);
	assert_int_equal(done.bytes, 3 * BLOCK);
}

static void bindings_make(CUmemGenericAllocationHandle object, CUmemGenericAllocationHandle memory)
{
	memory_bind(object, 2, memory);
	assert_int_equal(stasis_handle_cuMulticastBindMem_v2(fake_multicast_bind2, object, 1, BLOCK,
							     memory, BLOCK, BLOCK, 0),
			 CUDA_SUCCESS);
	address_bind(object, 0, BASE + BLOCK);
	address_bind(object, 3, BASE + 9 * BLOCK);
	assert_int_equal(stasis_handle_cuMulticastBindAddr_v2(fake_multicast_address2, object, 1,
							      4 * BLOCK, BASE + 8 * BLOCK, BLOCK,
							      0),
			 CUDA_SUCCESS);
}

static void team_finish(CUmemGenericAllocationHandle object, CUmemGenericAllocationHandle memory)
{
	rig_unmap(HIGH, BLOCK);
	rig_unmap(HIGH + BLOCK, BLOCK);
	rig_unmap(BASE, 2 * BLOCK);
	rig_release(memory);
	rig_release(object);
}

static void team_begin(CUmemGenericAllocationHandle object, CUmemGenericAllocationHandle memory)
{
	device_add(object, 1);
	device_add(object, 0);
	memory_map(memory);
	bindings_make(object, memory);
	for (uint64_t i = 0; i < 2; i++) {
		rig_map(HIGH + i * BLOCK, BLOCK, object);
		rig_grant(HIGH + i * BLOCK, BLOCK, 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	}
	fake.multicast[0] = '\0';
}

static const char unbinds[] = "unbind(0,2) unbind(1,1) unbind(0,0) unbind(0,3) unbind(1,4) ";
static const char binds[] = "bind(2,0) bind2(1,1,1) bind(0,1) address(3,9) address2(1,4,8) ";

static void apart_and_together(void **state)
{
	CUmemGenericAllocationHandle object = object_make(1);
	CUmemGenericAllocationHandle memory = rig_create(2 * BLOCK);

	(void)state;
	team_begin(object, memory);
	for (int round = 0; round < 2; round++) {
		phase_do(0);
		said(unbinds);
		assert_int_equal(fake.handles, 1);
		assert_int_equal(fake.bound, 0);
		assert_int_equal(fake.maps, 2);
		/* In the size that was asked for, though more of it is bound. */
		phase_do(1);
		said("create(2,3) ");
		phase_do(2);
		phase_do(3);
		said("add1 add0 ");
		fake.grants = 0;
		phase_do(4);
		said(binds);
		assert_int_equal(fake.maps, 4);
		assert_int_equal(fake.grants, 2);
		/* Nothing is done twice. */
		phase_do(4);
		said("");
	}
	team_finish(object, memory);
}

static void importer_fetches(void **state)
{
	CUmemGenericAllocationHandle object = object_import();
	struct stasis_wire_done done;
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	phase_do(0);
	phase_do(1);
	said("");
	peer_bytes = BLOCK;
	assert_refused(stasis_phase_restore_multicast_importers(&done, &err), &err,
		       STASIS_SUSPENDED, "in place of");
	assert_int_equal(fake.handles, 0);
	peer_bytes = 3 * BLOCK;
	phase_do(2);
	assert_int_equal(fake.handles, 1);
	phase_do(2);
	assert_int_equal(fake.imported, 2);
	assert_int_equal(stasis_registry.first->descriptor, -1);
	rig_release(object);
}

/* The n-th driver call fails, in whichever phase that is; -1: there are not so many. */
static int way_fail(int number)
{
	struct stasis_wire_done done;

	fake.fail_at = number;
	for (size_t i = 0; i < PHASES; i++) {
		if (phases[i](&done, NULL) != 0)
			return (int)i;
	}
	return -1;
}

/* After each failure, either all of it is done anew, or only what failed is sent again. */
static void fails_anywhere(void **state)
{
	CUmemGenericAllocationHandle object = object_make(1);
	CUmemGenericAllocationHandle memory = rig_create(2 * BLOCK);
	int failed = 0;
	int number;

	(void)state;
	team_begin(object, memory);
	for (number = 1; failed >= 0; number++) {
		failed = way_fail(number);
		for (size_t i = 0; i < PHASES && failed >= 0; i++)
			phase_do(i);
		assert_int_equal(fake.bound, 5);
		assert_int_equal(fake.maps, 4);
		assert_int_equal(fake.handles, 2);
		fake.fail_at = 0;
		failed = way_fail(number);
		/* What a PREPARE_MULTICAST has left undone, RESTORE_MULTICAST_CREATORS does first. */
		for (size_t i = failed > 0 ? (size_t)failed : 1; i < PHASES && failed >= 0; i++)
			phase_do(i);
		assert_int_equal(fake.bound, 5);
		assert_int_equal(fake.maps, 4);
		assert_int_equal(fake.handles, 2);
		fake.multicast[0] = '\0';
	}
	fake.fail_at = 0;
	/* 2 unmapped, 5 unbound, 1 made, 2 added, 5 bound, 2 mapped with rights each. */
	assert_int_equal(number - 2, 2 + 5 + 1 + 2 + 5 + 2 * 2);
	team_finish(object, memory);
}

/* What was bound must be up before. */
static void member_is_down(void **state)
{
	CUmemGenericAllocationHandle object = object_make(1);
	CUmemGenericAllocationHandle memory = rig_create(BLOCK);
	static struct stasis_phase_page page;
	struct stasis_wire_descriptors none = {.count = 0};
	struct stasis_wire_done done;
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	memory_bind(object, 0, memory);
	phase_do(0);
	assert_int_equal(stasis_phase_save_page(0, &page, NULL), 0);
	stasis_wire_descriptors_close(&page.descriptors);
	assert_int_equal(stasis_phase_prepare_unicast(&done, NULL), 0);
	assert_int_equal(fake.handles, 0);
	phase_do(1);
	assert_refused(stasis_phase_restore_multicast_bindings(&done, &err), &err, STASIS_SUSPENDED,
		       "is not back yet");
	assert_int_equal(stasis_phase_load_allocations(&page.exports, &none, true, &done, NULL), 0);
	phase_do(4);
	rig_release(memory);
	rig_release(object);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(create_what_is_asked),    TEST(devices_are_counted_once),
		TEST(binding_holds_memory),    TEST(object_takes_bindings_along),
		TEST(bind_by_address),         TEST(untracked_memory_hinders),
		TEST(unmapped_memory_hinders), TEST(import_tells_of_its_team),
		TEST(apart_and_together),      TEST(importer_fetches),
		TEST(fails_anywhere),          TEST(member_is_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
