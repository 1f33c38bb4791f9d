/*
 * Description: the interposer's tickets and imports, and what INSPECT tells of them.
 */

#include "interpose_rig.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- sharing ---- */

static void export_refuses(void **state)
{
	CUmemGenericAllocationHandle handle = rig_create(BLOCK);
	int fd;

	(void)state;
	assert_int_equal(
		stasis_handle_cuMemExportToShareableHandle(
			fake_export, NULL, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(
		stasis_handle_cuMemExportToShareableHandle(
			fake_export, &fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1),
		CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(stasis_handle_cuMemExportToShareableHandle(fake_export, &fd, handle,
								    CU_MEM_HANDLE_TYPE_FABRIC, 0),
			 CUDA_ERROR_INVALID_VALUE);
	rig_release(handle);
}

static void import_own(void **state)
{
	CUmemGenericAllocationHandle handle = rig_create(BLOCK);
	CUmemGenericAllocationHandle alias = 0;
	int fd = rig_ticket_of(handle);

	(void)state;
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
	assert_int_equal(rig_import(fd, &alias), CUDA_SUCCESS);
	assert_true(alias != handle);
	/* One record, one reference of the driver's. */
	assert_int_equal(fake.handles, 1);
	assert_int_equal(fake.imported, 0);
	rig_release(handle);
	rig_map(BASE, BLOCK, alias);
	rig_release(alias);
	rig_unmap(BASE, BLOCK);
	/* A ticket alone keeps nothing. */
	assert_int_equal(rig_import(fd, &alias), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(close(fd), 0);
}

static void import_of_peer(void **state)
{
	CUmemGenericAllocationHandle a;
	CUmemGenericAllocationHandle b;
	struct stasis_wire_ticket ticket;
	enum stasis_wire_ticket_verdict verdict;
	int fd = rig_foreign_ticket(BLOCK);
	int again;

	(void)state;
	assert_int_equal(rig_import(fd, &a), CUDA_ERROR_INVALID_VALUE);
	peer_bytes = BLOCK;
	assert_int_equal(rig_import(fd, &a), CUDA_SUCCESS);
	assert_int_equal(rig_import(fd, &b), CUDA_SUCCESS);
	assert_int_equal(fake.imported, 1);
	/* What is exported of an import names the creator. */
	again = rig_ticket_of(b);
	assert_int_equal(stasis_wire_ticket_read(again, &verdict, &ticket, NULL), 0);
	assert_int_equal(ticket.participant.bytes[0], 1);
	assert_int_equal(ticket.object.bytes[0], 2);
	rig_release(a);
	rig_release(b);
	assert_int_equal(close(again), 0);
	assert_int_equal(close(fd), 0);
}

static void import_damaged(void **state)
{
	CUmemGenericAllocationHandle handle = 5;
	int fd = memfd_create("no-ticket", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(rig_import(fd, &handle), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(rig_import(-1, &handle), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fake.imported, 0);
	assert_int_equal(handle, 5);
	assert_int_equal(close(fd), 0);
}

static uint64_t notes_of(uint32_t kind)
{
	struct stasis_wire_record records[32];
	struct stasis_phase_records info;

	stasis_phase_records(0, 32, records, &info);
	for (uint32_t i = 0; i < info.count; i++) {
		if (records[i].type == STASIS_WIRE_NOTE && records[i].note.kind == kind)
			return records[i].note.count;
	}
	return 0;
}

/* It hinders a capture as long as a handle or a mapping of it lives, and no longer. */
static void import_foreign(void **state)
{
	CUmemGenericAllocationHandle handle;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(rig_import(fd, &handle), CUDA_SUCCESS);
	assert_int_equal(notes_of(STASIS_WIRE_NOTE_FOREIGN_IMPORT), 1);
	rig_map(BASE, BLOCK, handle);
	rig_release(handle);
	assert_int_equal(notes_of(STASIS_WIRE_NOTE_FOREIGN_IMPORT), 1);
	rig_unmap(BASE, BLOCK);
	assert_int_equal(notes_of(STASIS_WIRE_NOTE_FOREIGN_IMPORT), 0);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	assert_int_equal(close(fd), 0);
}

/* It hinders a capture while the CPU may touch it. */
static void numa_mapped_by_cpu(void **state)
{
	CUmemAllocationProp prop =
		rig_prop_of(CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_HANDLE_TYPE_NONE);
	CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA},
				  .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;

	(void)state;
	assert_int_equal(stasis_handle_cuMemCreate(fake_create, &handle, BLOCK, &prop, 0),
			 CUDA_SUCCESS);
	rig_map(BASE, BLOCK, handle);
	rig_grant(BASE, BLOCK, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	assert_int_equal(notes_of(STASIS_WIRE_NOTE_UNSUPPORTED), 0);
	assert_int_equal(stasis_handle_cuMemSetAccess(fake_access, BASE, BLOCK, &access, 1),
			 CUDA_SUCCESS);
	assert_int_equal(notes_of(STASIS_WIRE_NOTE_UNSUPPORTED), 1);
	rig_unmap(BASE, BLOCK);
	assert_int_equal(notes_of(STASIS_WIRE_NOTE_UNSUPPORTED), 0);
	rig_release(handle);
}

static void records_in_pages(void **state)
{
	CUmemGenericAllocationHandle handles[10];
	struct stasis_wire_record records[7];
	struct stasis_phase_records info = {.total = 1};
	uint64_t seen = 0;

	(void)state;
	for (uint64_t i = 0; i < 10; i++) {
		handles[i] = rig_create(BLOCK);
		rig_map(BASE + i * BLOCK, BLOCK, handles[i]);
		rig_grant(BASE + i * BLOCK, BLOCK, 0, CU_MEM_ACCESS_FLAGS_PROT_READ);
	}
	for (uint64_t first = 0; first < info.total; first += info.count) {
		stasis_phase_records(first, 7, records, &info);
		assert_true(info.count > 0);
		seen += info.count;
	}
	assert_int_equal(info.total, 40);
	assert_int_equal(seen, 40);
	stasis_phase_records(100, 7, records, &info);
	assert_int_equal(info.count, 0);
	rig_unmap(BASE, 10 * BLOCK);
	for (int i = 0; i < 10; i++)
		rig_release(handles[i]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(export_refuses),   TEST(import_own),     TEST(import_of_peer),
		TEST(import_damaged),   TEST(import_foreign), TEST(numa_mapped_by_cpu),
		TEST(records_in_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
