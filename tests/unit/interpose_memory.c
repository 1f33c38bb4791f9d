/*
 * Description: the interposer's records of virtual memory: virtual handles, mappings by address, access rights.
 */

#include "interpose_rig.h"

#include <malloc.h>

#define CHURN_COUNT 1000000
#define MODEL_SLOTS 64
#define MODEL_STEPS 200000

/* What malloc has given out; 0 under a sanitizer, whose malloc is another. */
static size_t heap_bytes(void)
{
	return mallinfo2().uordblks;
}

/* ---- handles ---- */

static void handle_keeps_memory(void **state)
{
	CUmemGenericAllocationHandle handle = rig_create(BLOCK);
	CUmemGenericAllocationHandle again = 0;

	(void)state;
	rig_map(BASE, BLOCK, handle);
	rig_release(handle);
	assert_int_equal(fake.handles, 1);
	/* It is not the application's any more, but its mapping answers it, at any byte. */
	assert_int_equal(stasis_handle_cuMemRelease(fake_release, handle),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(stasis_handle_cuMemRetainAllocationHandle(
				 fake_retain, &again, (void *)(uintptr_t)(BASE + BLOCK - 1)),
			 CUDA_SUCCESS);
	assert_true(again == handle);
	rig_unmap(BASE, BLOCK);
	assert_int_equal(fake.handles, 1);
	rig_release(again);
	assert_int_equal(fake.handles, 0);
	assert_int_equal(stasis_handle_cuMemRetainAllocationHandle(fake_retain, &again,
								   (void *)(uintptr_t)BASE),
			 CUDA_ERROR_INVALID_VALUE);
}

static void handle_unknown(void **state)
{
	CUmemGenericAllocationHandle stale = rig_create(BLOCK);
	CUmemAllocationProp prop;

	(void)state;
	rig_release(stale);
	assert_int_equal(stasis_handle_cuMemMap(fake_map, BASE, BLOCK, 0, stale, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(
		stasis_handle_cuMemGetAllocationPropertiesFromHandle(fake_properties, &prop, stale),
		CUDA_ERROR_INVALID_VALUE);
	assert_true(rig_create(BLOCK) != stale);
	rig_release(stale + 1);
}

static void create_what_is_asked(void **state)
{
	CUmemAllocationProp prop =
		rig_prop_of(CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_HANDLE_TYPE_NONE);
	CUmemGenericAllocationHandle handle = 0;
	int fd;

	(void)state;
	/* Exportable underneath, and not for the application. */
	assert_int_equal(stasis_handle_cuMemCreate(fake_create, &handle, BLOCK, &prop, 0),
			 CUDA_SUCCESS);
	assert_int_equal(fake.last_types, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	assert_int_equal(stasis_handle_cuMemGetAllocationPropertiesFromHandle(fake_properties,
									      &prop, handle),
			 CUDA_SUCCESS);
	assert_int_equal(prop.requestedHandleTypes, CU_MEM_HANDLE_TYPE_NONE);
	assert_int_equal(
		stasis_handle_cuMemExportToShareableHandle(
			fake_export, &fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		CUDA_ERROR_INVALID_VALUE);
	rig_release(handle);
	/* Private device memory is the driver's alone; fabric handles are refused before anything is made. */
	prop = rig_prop_of(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_NONE);
	assert_int_equal(stasis_handle_cuMemCreate(fake_create, &handle, BLOCK, &prop, 0),
			 CUDA_SUCCESS);
	assert_false(stasis_handle_is_virtual(handle));
	rig_release(handle);
	prop = rig_prop_of(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_FABRIC);
	handle = 7;
	assert_int_equal(stasis_handle_cuMemCreate(fake_create, &handle, BLOCK, &prop, 0),
			 CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(handle, 7);
}

static void create_fails(void **state)
{
	CUmemAllocationProp prop =
		rig_prop_of(CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	CUmemGenericAllocationHandle handle = 9;

	(void)state;
	fake.fail_at = 1;
	assert_int_equal(stasis_handle_cuMemCreate(fake_create, &handle, BLOCK, &prop, 0),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(handle, 9);
}

/* ---- mappings ---- */

static void unmap_several(void **state)
{
	CUmemGenericAllocationHandle a = rig_create(BLOCK);
	CUmemGenericAllocationHandle b = rig_create(BLOCK);

	(void)state;
	rig_map(BASE, BLOCK, a);
	rig_map(BASE + BLOCK, BLOCK, b);
	rig_map(BASE + 2 * BLOCK, BLOCK, a);
	rig_release(a);
	rig_release(b);
	/* The driver refuses: everything stays. */
	fake.fail_at = 1;
	assert_int_equal(stasis_handle_cuMemUnmap(fake_unmap, BASE, 2 * BLOCK),
			 CUDA_ERROR_INVALID_VALUE);
	stasis_registry_lock();
	assert_non_null(stasis_mapping_at(BASE));
	assert_non_null(stasis_mapping_at(BASE + BLOCK));
	stasis_registry_unlock();
	rig_unmap(BASE, 2 * BLOCK);
	assert_int_equal(fake.handles, 1);
	rig_unmap(BASE + 2 * BLOCK, BLOCK);
}

static uint32_t rights_at(uint64_t address, int device)
{
	struct stasis_mapping *mapping;
	uint32_t rights = 0;

	stasis_registry_lock();
	mapping = stasis_mapping_at(address);
	for (uint32_t i = 0; mapping && i < mapping->access_count; i++) {
		if (mapping->access[i].location.id == device)
			rights = mapping->access[i].rights;
	}
	stasis_registry_unlock();
	return rights;
}

static void access_is_merged(void **state)
{
	CUmemGenericAllocationHandle handle = rig_create(3 * BLOCK);

	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		rig_map(BASE + i * BLOCK, BLOCK, handle);
	rig_grant(BASE, 3 * BLOCK, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	for (int device = 1; device < 12; device++)
		rig_grant(BASE + BLOCK, BLOCK, device, CU_MEM_ACCESS_FLAGS_PROT_READ);
	rig_grant(BASE + BLOCK, 2 * BLOCK, 0, CU_MEM_ACCESS_FLAGS_PROT_READ);
	rig_grant(BASE + BLOCK, BLOCK, 5, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	assert_int_equal(rights_at(BASE, 0), CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	assert_int_equal(rights_at(BASE + BLOCK, 0), CU_MEM_ACCESS_FLAGS_PROT_READ);
	assert_int_equal(rights_at(BASE + 2 * BLOCK, 0), CU_MEM_ACCESS_FLAGS_PROT_READ);
	assert_int_equal(rights_at(BASE + BLOCK, 11), CU_MEM_ACCESS_FLAGS_PROT_READ);
	assert_int_equal(rights_at(BASE + BLOCK, 5), 0);
	assert_int_equal(rights_at(BASE + 2 * BLOCK, 11), 0);
	rig_unmap(BASE, 3 * BLOCK);
	rig_release(handle);
}

/* Against an array: whatever is added and removed, every byte is found where it is. */
static void tree_against_model(void **state)
{
	struct stasis_mapping *model[MODEL_SLOTS] = {NULL};
	CUmemGenericAllocationHandle handle = rig_create(BLOCK);
	struct stasis_handle *found;
	uint32_t seed = 12345;

	(void)state;
	stasis_registry_lock();
	found = stasis_handle_find(handle);
	for (int step = 0; step < MODEL_STEPS; step++) {
		uint32_t slot = (seed = seed * 1103515245u + 12345u) / 65536u % MODEL_SLOTS;
		uint64_t address = BASE + slot * BLOCK;
		struct stasis_mapping *next = NULL;

		if (model[slot]) {
			stasis_mapping_remove(model[slot]);
			stasis_mapping_free(model[slot]);
			model[slot] = NULL;
		} else {
			model[slot] = stasis_mapping_new();
			assert_non_null(model[slot]);
			model[slot]->object = found->object;
			model[slot]->handle = found;
			model[slot]->address = address;
			model[slot]->bytes = BLOCK;
			stasis_mapping_add(model[slot]);
		}
		assert_ptr_equal(stasis_mapping_at(address + BLOCK - 1), model[slot]);
		for (uint32_t i = slot; i < MODEL_SLOTS && !next; i++)
			next = model[i];
		assert_ptr_equal(stasis_mapping_from(address), next);
	}
	for (uint32_t slot = 0; slot < MODEL_SLOTS; slot++) {
		if (model[slot]) {
			stasis_mapping_remove(model[slot]);
			stasis_mapping_free(model[slot]);
		}
	}
	stasis_registry_unlock();
	rig_release(handle);
}

/* Records shrink as they grow: the heap after a million is what it was after a thousand. */
static void churn_stays_flat(void **state)
{
	size_t before = 0;

	(void)state;
	for (int i = 0; i < CHURN_COUNT; i++) {
		CUmemGenericAllocationHandle handle = rig_create(BLOCK);

		rig_map(BASE, BLOCK, handle);
		rig_grant(BASE, BLOCK, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
		rig_release(handle);
		rig_unmap(BASE, BLOCK);
		if (i == CHURN_COUNT / 1000)
			before = heap_bytes();
	}
	/* A sanitizer's allocator holds back what was freed and tells nothing. */
	if (before > 0)
		assert_true(heap_bytes() <= before + 65536);
}

/* What the driver is given, of a list with one of ours, one of the driver's, and one to unmap. */
static uint64_t array_seen[3];

struct array_item {
	uint8_t resource[56];
	uint32_t operation;
	uint32_t handle_type;
	uint64_t handle;
	uint8_t place[24];
};

static CUresult array_map(struct stasis_array_map *list, unsigned int count, CUstream stream)
{
	const struct array_item *items = (const struct array_item *)(const void *)list;

	(void)stream;
	for (unsigned int i = 0; i < count; i++)
		array_seen[i] = items[i].handle;
	return CUDA_SUCCESS;
}

static void sparse_arrays(void **state)
{
	CUmemGenericAllocationHandle handle = rig_create(BLOCK);
	struct array_item list[3] = {{.operation = 1}, {.operation = 1}, {.operation = 2}};
	struct stasis_array_map *given = (struct stasis_array_map *)(void *)list;

	(void)state;
	list[0].handle = handle;
	list[1].handle = 5;
	assert_int_equal(stasis_handle_cuMemMapArrayAsync(array_map, given, 3, NULL), CUDA_SUCCESS);
	assert_int_equal(array_seen[0], fake.last_handle);
	assert_int_equal(array_seen[1], 5);
	assert_true(list[0].handle == handle);
	assert_int_equal(stasis_registry.sparse_count, 1);
	rig_release(handle);
	assert_int_equal(stasis_handle_cuMemMapArrayAsync(array_map, given, 3, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	list[0].handle = 6;
	assert_int_equal(stasis_handle_cuMemMapArrayAsync(array_map, given, 3, NULL), CUDA_SUCCESS);
	assert_int_equal(array_seen[0], 6);
	assert_int_equal(stasis_registry.sparse_count, 1);
}

/* What the driver is given in the place of a handle. */
static uint64_t endpoint_seen;

static CUresult endpoint_bind(uint32_t endpoint, CUdevice device, uint64_t offset,
			      CUmemGenericAllocationHandle handle, uint64_t memory_offset,
			      uint64_t bytes, unsigned long long flags)
{
	endpoint_seen = handle;
	return endpoint == 7 && device == 0 && offset == 1 && memory_offset == 2 &&
			       bytes == BLOCK && flags == 3
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

static CUresult bind(CUmemGenericAllocationHandle handle)
{
	return stasis_handle_cuLogicalEndpointBindMem(endpoint_bind, 7, 0, 1, handle, 2, BLOCK, 3);
}

static void endpoint_binds_memory(void **state)
{
	CUmemGenericAllocationHandle handle = rig_create(BLOCK);

	(void)state;
	assert_int_equal(bind(handle), CUDA_SUCCESS);
	assert_int_equal(endpoint_seen, fake.last_handle);
	/* The driver's own is passed on as it is; one that is gone is refused before the driver is asked. */
	assert_int_equal(bind(5), CUDA_SUCCESS);
	assert_int_equal(endpoint_seen, 5);
	rig_release(handle);
	assert_int_equal(bind(handle), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(endpoint_seen, 5);
}

static CUresult endpoint_create(uint32_t endpoint, const void *prop)
{
	(void)prop;
	return endpoint == 7 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult endpoint_import(uint32_t endpoint, const void *shareable, unsigned int type)
{
	return endpoint == 7 && shareable && type == 1 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

static bool is_told(const char *text)
{
	static struct stasis_wire_record told[8];
	struct stasis_phase_records info;

	stasis_phase_records(0, 8, told, &info);
	for (uint32_t i = 0; i < info.count; i++) {
		if (told[i].type == STASIS_WIRE_NOTE && strstr(told[i].note.text, text))
			return told[i].note.kind == STASIS_WIRE_NOTE_UNSUPPORTED;
	}
	return false;
}

static void endpoint_hinders_capture(void **state)
{
	(void)state;
	assert_int_equal(stasis_handle_cuLogicalEndpointCreate(endpoint_create, 6, NULL),
			 CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(stasis_handle_cuLogicalEndpointImport(endpoint_import, 6, NULL, 1),
			 CUDA_ERROR_NOT_SUPPORTED);
	assert_false(is_told("logical endpoints"));
	assert_int_equal(stasis_handle_cuLogicalEndpointCreate(endpoint_create, 7, NULL),
			 CUDA_SUCCESS);
	assert_true(is_told("logical endpoints"));
	assert_int_equal(stasis_handle_cuLogicalEndpointImport(endpoint_import, 7, "x", 1),
			 CUDA_SUCCESS);
	assert_int_equal(stasis_registry.endpoint_count, 2);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(handle_keeps_memory),
		TEST(handle_unknown),
		TEST(create_what_is_asked),
		TEST(create_fails),
		TEST(unmap_several),
		TEST(access_is_merged),
		TEST(tree_against_model),
		TEST(churn_stays_flat),
		TEST(sparse_arrays),
		TEST(endpoint_binds_memory),
		TEST(endpoint_hinders_capture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
