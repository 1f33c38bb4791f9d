/*
 * Description: the interposer's phases that give shared memory up and take it back: what is saved, created, attached,
 * and what a failure in the middle leaves.
 */

#include "interpose_rig.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static struct stasis_phase_page page;

static void load_from_page(bool has_descriptors)
{
	struct stasis_wire_descriptors none = {.count = 0};
	struct stasis_wire_done done;

	assert_int_equal(stasis_phase_load_allocations(&page.exports,
						       has_descriptors ? &page.descriptors : &none,
						       true, &done, NULL),
			 0);
	assert_int_equal(done.objects, page.exports.count);
	stasis_wire_descriptors_close(&page.descriptors);
}

static void phases_private(void **state)
{
	CUmemGenericAllocationHandle handle = rig_create(BLOCK);
	struct stasis_wire_done done;

	(void)state;
	rig_map(BASE, BLOCK, handle);
	assert_int_equal(stasis_phase_save_page(0, &page, NULL), 0);
	assert_int_equal(page.exports.count, 0);
	assert_int_equal(stasis_phase_prepare_unicast(&done, NULL), 0);
	assert_int_equal(done.objects, 0);
	assert_int_equal(fake.maps, 1);
	rig_unmap(BASE, BLOCK);
	rig_release(handle);
}

static void phases_shared(void **state)
{
	CUmemGenericAllocationHandle handle = rig_create(BLOCK);
	int fd = rig_ticket_of(handle);
	struct stasis_wire_done done;

	(void)state;
	rig_map(BASE, BLOCK, handle);
	rig_grant(BASE, BLOCK, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	rig_release(handle);
	for (int round = 0; round < 4; round++) {
		bool is_undo = round % 2 == 1;

		assert_int_equal(stasis_phase_save_page(0, &page, NULL), 0);
		assert_int_equal(page.exports.count, 1);
		if (!is_undo)
			stasis_wire_descriptors_close(&page.descriptors);
		assert_int_equal(stasis_phase_prepare_unicast(&done, NULL), 0);
		assert_int_equal(done.bytes, BLOCK);
		assert_int_equal(fake.maps, 0);
		assert_int_equal(fake.handles, 0);
		load_from_page(is_undo);
		assert_int_equal(fake.maps, 1);
		assert_int_equal(fake.handles, 1);
		assert_int_equal(fake.grants, round + 2);
	}
	rig_unmap(BASE, BLOCK);
	assert_int_equal(close(fd), 0);
}

/* A failure in the middle leaves what the same phase, or its undoing, goes on from. */
static void phases_fail(void **state)
{
	CUmemGenericAllocationHandle handle = rig_create(BLOCK);
	int fd = rig_ticket_of(handle);
	struct stasis_wire_done done;

	(void)state;
	for (uint64_t i = 0; i < 3; i++)
		rig_map(BASE + i * BLOCK, BLOCK, handle);
	assert_int_equal(stasis_phase_save_page(0, &page, NULL), 0);
	fake.fail_at = 2;
	assert_int_equal(stasis_phase_prepare_unicast(&done, NULL), -1);
	assert_int_equal(fake.maps, 2);
	load_from_page(true);
	assert_int_equal(fake.maps, 3);
	assert_int_equal(stasis_phase_save_page(0, &page, NULL), 0);
	assert_int_equal(stasis_phase_prepare_unicast(&done, NULL), 0);
	fake.fail_at = 3;
	assert_int_equal(
		stasis_phase_load_allocations(&page.exports, &page.descriptors, true, &done, NULL),
		-1);
	load_from_page(true);
	assert_int_equal(fake.maps, 3);
	rig_unmap(BASE, 3 * BLOCK);
	rig_release(handle);
	assert_int_equal(close(fd), 0);
}

/* Takes down what is ours, as it stands in `page` then. */
static void page_take_down(bool keeps_descriptors)
{
	struct stasis_wire_done done;

	assert_int_equal(stasis_phase_save_page(0, &page, NULL), 0);
	if (!keeps_descriptors)
		stasis_wire_descriptors_close(&page.descriptors);
	assert_int_equal(stasis_phase_prepare_unicast(&done, NULL), 0);
}

/* A mapping whose rights could not be set is not up: the next try sets them, and maps nothing twice. */
static void rights_fail(void **state)
{
	CUmemGenericAllocationHandle handle = rig_create(BLOCK);
	int fd = rig_ticket_of(handle);
	struct stasis_wire_done done;

	(void)state;
	rig_map(BASE, BLOCK, handle);
	rig_grant(BASE, BLOCK, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	rig_grant(BASE, BLOCK, 1, CU_MEM_ACCESS_FLAGS_PROT_READ);
	page_take_down(false);
	fake.grants = 0;
	for (int i = 0; i < 2; i++) {
		/* Creation, map, the first right, the second; then, what is left: the rights alone. */
		fake.fail_at = i == 0 ? 4 : 2;
		assert_int_equal(stasis_phase_load_allocations(&page.exports, &page.descriptors,
							       true, &done, NULL),
				 -1);
		assert_int_equal(fake.grants, i + 1);
		assert_int_equal(fake.maps, 1);
	}
	load_from_page(false);
	assert_int_equal(fake.grants, 4);
	assert_int_equal(fake.maps, 1);
	/* What is mapped without its rights is unmapped, too. */
	page_take_down(false);
	fake.fail_at = 3;
	assert_int_equal(
		stasis_phase_load_allocations(&page.exports, &page.descriptors, true, &done, NULL),
		-1);
	assert_int_equal(fake.maps, 1);
	assert_int_equal(stasis_phase_prepare_unicast(&done, NULL), 0);
	assert_int_equal(fake.maps, 0);
	load_from_page(false);
	rig_unmap(BASE, BLOCK);
	rig_release(handle);
	assert_int_equal(close(fd), 0);
}

static void still_down_check(int result, const struct stasis_error *err, const char *made)
{
	assert_int_equal(result, -1);
	assert_int_equal(err->status, STASIS_SUSPENDED);
	assert_non_null(strstr(err->text, made));
	assert_non_null(strstr(err->text, "is still down"));
}

/* What was created here and is missing on the last page is named, and so is anything at the end of it all. */
static void phases_forget(void **state)
{
	struct stasis_wire_descriptors none = {.count = 0};
	struct stasis_error err = STASIS_ERROR_INIT;
	CUmemGenericAllocationHandle handles[2];
	struct stasis_wire_exports one;
	struct stasis_wire_done done;
	int fds[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		handles[i] = rig_create(BLOCK);
		fds[i] = rig_ticket_of(handles[i]);
	}
	page_take_down(false);
	one = page.exports;
	one.count = 1;
	still_down_check(stasis_phase_restore_unicast(&done, &err), &err, "created here");
	assert_int_equal(stasis_phase_load_allocations(&one, &none, false, &done, NULL), 0);
	err = (struct stasis_error)STASIS_ERROR_INIT;
	still_down_check(stasis_phase_load_allocations(&one, &none, true, &done, &err), &err,
			 "created here");
	err = (struct stasis_error)STASIS_ERROR_INIT;
	still_down_check(stasis_phase_restore_unicast(&done, &err), &err, "created here");
	load_from_page(false);
	assert_int_equal(fake.created, 4);
	assert_int_equal(stasis_phase_restore_unicast(&done, NULL), 0);
	for (int i = 0; i < 2; i++) {
		rig_release(handles[i]);
		assert_int_equal(close(fds[i]), 0);
	}
}

/* An import whose creator let go: made anew here, or attached to what another made; no creator is asked. */
static void phases_without_creator(void **state)
{
	CUmemGenericAllocationHandle handle;
	struct stasis_wire_done done;
	int fd = rig_foreign_ticket(BLOCK);
	bool is_owner = false;

	(void)state;
	peer_bytes = BLOCK;
	assert_int_equal(rig_import(fd, &handle), CUDA_SUCCESS);
	peer_bytes = 0;
	rig_map(BASE, BLOCK, handle);
	for (int i = 0; i < 4; i++, is_owner = !is_owner) {
		/* An export from where it was made, a duplicate of what is kept elsewhere. */
		page_take_down(!is_owner);
		assert_int_equal(page.exports.count, 1);
		assert_int_equal(fake.exported, i / 2);
		load_from_page(!is_owner);
		assert_int_equal(fake.created, (i + 1) / 2);
		assert_int_equal(stasis_phase_restore_unicast(&done, NULL), 0);
		assert_int_equal(fake.maps, 1);
		assert_int_equal(fake.handles, 1);
	}
	rig_unmap(BASE, BLOCK);
	rig_release(handle);
	assert_int_equal(close(fd), 0);
}

/* To the driver it is an import: never exported again, but handed out as often as it is asked for. */
static void reattached_is_not_exported(void **state)
{
	CUmemGenericAllocationHandle handle = rig_create(BLOCK);
	int fd = rig_ticket_of(handle);
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_object *object;
	int kept_fd;

	(void)state;
	for (int i = 0; i < 3; i++) {
		page_take_down(true);
		assert_int_equal(fake.exported, 1);
		load_from_page(true);
	}
	object = stasis_registry.first;
	assert_true(object->is_reattached);
	kept_fd = object->descriptor;
	assert_int_equal(stasis_phase_save_page(0, &page, NULL), 0);
	assert_true(page.descriptors.fds[0] != kept_fd);
	stasis_wire_descriptors_close(&page.descriptors);
	/* The program closed it and has another file under its number: that one is not handed out. */
	assert_int_equal(dup2(fd, kept_fd), kept_fd);
	assert_int_equal(stasis_phase_save_page(0, &page, &err), -1);
	assert_int_equal(err.status, STASIS_REFUSED);
	assert_non_null(strstr(err.text, "the program has closed descriptor"));
	rig_release(handle);
	assert_int_equal(close(kept_fd), 0);
	assert_int_equal(close(fd), 0);
}

#define MANY 200

static uint32_t pages_walk(bool changes_between)
{
	uint32_t seen = 0;

	do {
		struct stasis_object *first = stasis_registry.first;

		if (changes_between)
			rig_release(rig_create(BLOCK));
		else if (seen > 0)
			stasis_registry.first = NULL; /* what came before is not looked at again */
		assert_int_equal(stasis_phase_save_page(seen, &page, NULL), 0);
		stasis_registry.first = first;
		seen += page.exports.count;
		stasis_wire_descriptors_close(&page.descriptors);
	} while (page.has_more);
	return seen;
}

/* A page goes on where the one before ended, and is right, too, where something has changed since. */
static void pages_of_many(void **state)
{
	CUmemGenericAllocationHandle handles[MANY];
	int fd;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		handles[i] = rig_create(BLOCK);
		if (i % 2 == 0) {
			fd = rig_ticket_of(handles[i]);
			assert_int_equal(close(fd), 0);
		}
	}
	assert_int_equal(pages_walk(false), MANY / 2);
	assert_int_equal(pages_walk(true), MANY / 2);
	assert_int_equal(stasis_phase_save_page(MANY, &page, NULL), 0);
	assert_int_equal(page.exports.count, 0);
	for (int i = 0; i < MANY; i++)
		rig_release(handles[i]);
}

static void phases_import(void **state)
{
	CUmemGenericAllocationHandle handle;
	struct stasis_wire_done done;
	int fd = rig_foreign_ticket(BLOCK);

	(void)state;
	peer_bytes = BLOCK;
	assert_int_equal(rig_import(fd, &handle), CUDA_SUCCESS);
	rig_map(BASE, BLOCK, handle);
	assert_int_equal(stasis_phase_prepare_unicast(&done, NULL), 0);
	assert_int_equal(fake.handles, 0);
	peer_bytes = 2 * BLOCK;
	assert_int_equal(stasis_phase_restore_unicast(&done, NULL), -1);
	assert_int_equal(fake.handles, 0);
	peer_bytes = BLOCK;
	assert_int_equal(stasis_phase_restore_unicast(&done, NULL), 0);
	assert_int_equal(fake.maps, 1);
	/* The creator let go: the descriptor that is kept goes out from here. */
	assert_int_equal(stasis_phase_save_page(0, &page, NULL), 0);
	assert_int_equal(page.exports.count, 1);
	stasis_wire_descriptors_close(&page.descriptors);
	rig_unmap(BASE, BLOCK);
	rig_release(handle);
	assert_int_equal(close(fd), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(phases_private),
		TEST(phases_shared),
		TEST(phases_fail),
		TEST(phases_import),
		TEST(rights_fail),
		TEST(phases_forget),
		TEST(phases_without_creator),
		TEST(reattached_is_not_exported),
		TEST(pages_of_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
