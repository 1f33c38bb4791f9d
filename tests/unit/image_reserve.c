/*
 * Description: a reserve is made whole or not at all, in memory and on a disk; a capture takes its files over,
 * leaves what it does not need, and goes on without one that is too small, foreign or damaged; of two captures
 * one gets it.
 */

#include "unit.h"

#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "image/reserve.h"
#include "image_fixture.h"

#define FILE_BYTES (4 * T_IMAGE_CHUNK_BYTES)

/* A folder in memory, where there is one; else as any. The test removes what it leaves there. */
static char memory_folder[64];

static void reserve_make(const char *folder, uint32_t files, uint64_t bytes)
{
	const struct stasis_image_reserve_plan plan = {.file_count = files, .file_bytes = bytes};
	struct stasis_error err = STASIS_ERROR_INIT;

	assert_done(stasis_image_reserve_make(folder, &plan, &err), &err);
}

static struct stasis_image_reserve_info reserve_look(const char *folder)
{
	struct stasis_image_reserve_info info;
	struct stasis_error err = STASIS_ERROR_INIT;

	assert_done(stasis_image_reserve_look(folder, &info, &err), &err);
	return info;
}

static struct stasis_image_writer *writer_open(const char *path)
{
	static const struct stasis_image_origin origin = {.tool_version = "0.1.0"};
	const struct stasis_image_process process = t_image_process(1234);
	const struct stasis_image_gpu gpu = t_image_gpu(0);
	struct stasis_image_writer *writer = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	uint32_t index = 0;

	assert_done(stasis_image_writer_open(path, &origin, &writer, &err), &err);
	assert_done(stasis_image_writer_gpu_add(writer, &gpu, &err), &err);
	assert_done(stasis_image_writer_process_add(writer, &process, &index, &err), &err);
	return writer;
}

static struct stasis_image_output *extent_add(struct stasis_image_writer *writer)
{
	const struct stasis_image_extent_plan plan = t_image_plan(0);
	struct stasis_image_output *output = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;

	assert_done(stasis_image_writer_extent_add(writer, &plan, &output, &err), &err);
	return output;
}

/* To the end; the image must be one that a reader accepts. */
static void image_finish(struct stasis_image_writer *writer, struct stasis_image_output *output,
			 const char *path)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	t_image_fill(output);
	assert_done(stasis_image_writer_seal(writer, &err), &err);
	assert_done(stasis_image_writer_stage(writer, &err), &err);
	assert_done(stasis_image_writer_publish(writer, &err), &err);
	stasis_image_writer_close(writer);
	t_image_accepted(path);
}

static ino_t inode_of(int fd)
{
	struct stat info;

	assert_int_equal(fstat(fd, &info), 0);
	return info.st_ino;
}

static ino_t inode_at(const char *folder, const char *name)
{
	struct stat info;

	assert_int_equal(stat(t_image_path(folder, name), &info), 0);
	return info.st_ino;
}

static void takeover_in(const char *folder, bool is_in_memory)
{
	const char *path = t_image_path(folder, "image");
	struct stasis_image_reserve_info info;
	struct stasis_image_writer *writer;
	struct stasis_image_output *output;
	uint64_t removed = 0;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stat file;
	ino_t first;

	reserve_make(folder, 5, FILE_BYTES);
	assert_int_equal(stat(t_image_path(folder, STASIS_IMAGE_RESERVE_NAME), &file), 0);
	assert_int_equal(file.st_mode & 07777, 0700);
	assert_int_equal(stat(t_image_path(folder, STASIS_IMAGE_RESERVE_NAME "/4"), &file), 0);
	assert_int_equal(file.st_mode & 07777, 0600);
	assert_int_equal(file.st_size, FILE_BYTES);
	assert_true((uint64_t)file.st_blocks * 512 >= FILE_BYTES);
	first = inode_at(folder, STASIS_IMAGE_RESERVE_NAME "/0");

	writer = writer_open(path);
	stasis_image_writer_reserve_take(writer, &info);
	assert_int_equal(info.state, STASIS_IMAGE_RESERVE_READY);
	assert_int_equal(info.file_count, 5);
	assert_int_equal(reserve_look(folder).state, STASIS_IMAGE_RESERVE_NONE);
	output = extent_add(writer);
	assert_int_equal(inode_of(output->stripe_fds[0]), first);
	for (uint32_t i = 0; i < T_IMAGE_STRIPES; i++) {
		assert_true((output->stripe_maps[i] != NULL) == is_in_memory);
		assert_int_equal(output->stripe_map_bytes[i], is_in_memory ? FILE_BYTES : 0);
	}
	image_finish(writer, output, path);

	/* What was not needed is there again, and serves the next. */
	info = reserve_look(folder);
	assert_int_equal(info.state, STASIS_IMAGE_RESERVE_READY);
	assert_int_equal(info.file_count, 5 - T_IMAGE_STRIPES);
	path = t_image_path(folder, "second");
	writer = writer_open(path);
	stasis_image_writer_reserve_take(writer, &info);
	assert_int_equal(info.file_count, 5 - T_IMAGE_STRIPES);
	image_finish(writer, extent_add(writer), path);
	assert_done(stasis_image_reserve_remove(folder, &removed, &err), &err);
	assert_int_equal(removed, FILE_BYTES);
	assert_int_equal(reserve_look(folder).state, STASIS_IMAGE_RESERVE_NONE);
	assert_done(stasis_image_reserve_remove(folder, &removed, &err), &err);
	assert_int_equal(removed, 0);
}

static void a_capture_takes_files_over_on_a_disk(void **state)
{
	(void)state;
	takeover_in(t_image_folder(), false);
}

static void a_capture_takes_files_over_in_memory(void **state)
{
	(void)state;
	if (!*memory_folder)
		skip();
	takeover_in(memory_folder, true);
}

/* One reserve serves the extents of two GPUs, which are filled by turns. */
static void two_gpus_share_it(void **state)
{
	const char *folder = *memory_folder ? memory_folder : t_image_folder();
	const char *path = t_image_path(folder, "two");
	const struct stasis_image_gpu second_gpu = t_image_gpu(1);
	const struct stasis_image_extent_plan plan = t_image_plan(1);
	struct stasis_image_reserve_info info;
	struct stasis_image_output *first;
	struct stasis_image_output *second = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_image_writer *writer;
	uint64_t removed = 0;

	(void)state;
	reserve_make(folder, 2 * T_IMAGE_STRIPES, FILE_BYTES);
	writer = writer_open(path);
	assert_done(stasis_image_writer_gpu_add(writer, &second_gpu, &err), &err);
	stasis_image_writer_reserve_take(writer, &info);
	assert_int_equal(info.file_count, 2 * T_IMAGE_STRIPES);
	first = extent_add(writer);
	assert_done(stasis_image_writer_extent_add(writer, &plan, &second, &err), &err);
	for (uint32_t i = 0; i < T_IMAGE_STRIPES; i++) {
		struct stat file;

		assert_int_equal(fstat(second->stripe_fds[i], &file), 0);
		assert_int_equal(file.st_size, FILE_BYTES);
		assert_true((second->stripe_maps[i] != NULL) == (*memory_folder != '\0'));
	}
	t_image_fill(first);
	image_finish(writer, second, path);
	assert_int_equal(reserve_look(folder).state, STASIS_IMAGE_RESERVE_NONE);
	assert_done(stasis_image_reserve_remove(folder, &removed, &err), &err);
	assert_int_equal(removed, 0);
}

static void one_too_small_helps_as_far_as_it_goes(void **state)
{
	const char *folder = t_image_folder();
	const char *path = t_image_path(folder, "image");
	struct stasis_image_writer *writer = writer_open(path);
	struct stasis_image_reserve_info info;
	struct stasis_image_output *output;

	(void)state;
	/* One file, and that shorter than a stripe. */
	reserve_make(folder, 1, STASIS_STORED_ALIGNMENT);
	stasis_image_writer_reserve_take(writer, &info);
	assert_int_equal(info.file_count, 1);
	output = extent_add(writer);
	assert_true(output->stripe_fds[1] >= 0);
	assert_null(output->stripe_maps[1]);
	image_finish(writer, output, path);
	/* Nothing is left, and nothing stands for it. */
	assert_int_equal(reserve_look(folder).state, STASIS_IMAGE_RESERVE_NONE);
}

static void of_two_captures_one_gets_it(void **state)
{
	const char *folder = t_image_folder();
	struct stasis_image_writer *first = writer_open(t_image_path(folder, "first"));
	struct stasis_image_writer *second = writer_open(t_image_path(folder, "second"));
	struct stasis_image_reserve_info info;

	(void)state;
	reserve_make(folder, 2, FILE_BYTES);
	stasis_image_writer_reserve_take(first, &info);
	assert_int_equal(info.state, STASIS_IMAGE_RESERVE_READY);
	stasis_image_writer_reserve_take(second, &info);
	assert_int_equal(info.state, STASIS_IMAGE_RESERVE_NONE);
	image_finish(second, extent_add(second), t_image_path(folder, "second"));

	/* A reserve that was made meanwhile stays as it is; what would go back to its place is removed. */
	reserve_make(folder, 3, FILE_BYTES);
	stasis_image_writer_close(first);
	assert_int_equal(reserve_look(folder).file_count, 3);
	assert_int_equal(t_folder_count(folder, "first"), 0);
}

static void a_capture_that_is_given_up_gives_it_back(void **state)
{
	const char *folder = t_image_folder();
	struct stasis_image_writer *writer = writer_open(t_image_path(folder, "image"));
	struct stasis_image_reserve_info info;

	(void)state;
	reserve_make(folder, 2, FILE_BYTES);
	stasis_image_writer_reserve_take(writer, &info);
	stasis_image_writer_close(writer);
	info = reserve_look(folder);
	assert_int_equal(info.state, STASIS_IMAGE_RESERVE_READY);
	assert_int_equal(info.file_count, 2);
	assert_int_equal(t_folder_count(folder, "image"), 0);
}

/* Its stripes, too, but for one that is not what it was. */
static void stripes_of_a_capture_that_is_given_up_go_back(void **state)
{
	const char *folder = t_image_folder();
	struct stasis_image_writer *writer = writer_open(t_image_path(folder, "image"));
	struct stasis_image_output *output;
	struct stasis_image_reserve_info info;
	ino_t second;

	(void)state;
	reserve_make(folder, T_IMAGE_STRIPES, FILE_BYTES);
	second = inode_at(folder, STASIS_IMAGE_RESERVE_NAME "/1");
	stasis_image_writer_reserve_take(writer, &info);
	output = extent_add(writer);
	assert_int_equal(pwrite(output->stripe_fds[1], "bytes", 5, 0), 5);
	stasis_image_writer_close(writer);
	assert_int_equal(reserve_look(folder).file_count, T_IMAGE_STRIPES);
	assert_int_equal(inode_at(folder, STASIS_IMAGE_RESERVE_NAME "/1"), second);

	writer = writer_open(t_image_path(folder, "image"));
	stasis_image_writer_reserve_take(writer, &info);
	assert_int_equal(info.file_count, T_IMAGE_STRIPES);
	output = extent_add(writer);
	assert_int_equal(ftruncate(output->stripe_fds[0], 4096), 0);
	stasis_image_writer_close(writer);
	assert_int_equal(reserve_look(folder).file_count, T_IMAGE_STRIPES - 1);
	assert_int_equal(t_folder_count(folder, "image"), 0);
}

static void a_second_reserve_is_refused(void **state)
{
	const struct stasis_image_reserve_plan plan = {.file_count = 1, .file_bytes = FILE_BYTES};
	const struct stasis_image_reserve_plan odd = {.file_count = 1, .file_bytes = 5000};
	const char *folder = t_image_folder();
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	assert_refused(stasis_image_reserve_make(folder, &odd, &err), &err, STASIS_REFUSED,
		       "out of range");
	err = (struct stasis_error)STASIS_ERROR_INIT;
	reserve_make(folder, 1, FILE_BYTES);
	assert_refused(stasis_image_reserve_make(folder, &plan, &err), &err, STASIS_REFUSED,
		       "already");
	err = (struct stasis_error)STASIS_ERROR_INIT;
	assert_refused(stasis_image_reserve_make(t_image_path(folder, "none"), &plan, &err), &err,
		       STASIS_REFUSED, "No such file");
}

static bool give_up(void *data, uint64_t done_bytes, uint64_t total_bytes)
{
	uint64_t *seen = data;

	assert_true(done_bytes <= total_bytes);
	*seen = done_bytes;
	return done_bytes < 2 * FILE_BYTES;
}

static void one_that_is_given_up_leaves_nothing(void **state)
{
	uint64_t seen = 0;
	const struct stasis_image_reserve_plan plan = {
		.file_count = 4,
		.file_bytes = FILE_BYTES,
		.progress = give_up,
		.progress_data = &seen,
	};
	const char *folder = t_image_folder();
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	assert_refused(stasis_image_reserve_make(folder, &plan, &err), &err, STASIS_REFUSED,
		       "given up");
	assert_int_equal(seen, 2 * FILE_BYTES);
	assert_int_equal(t_folder_count(folder, ".stasis"), 0);
}

/* Takes what is there, which must not be used, nor stand in the way of a capture. */
static void not_used(const char *folder, enum stasis_image_reserve_state expected, const char *why)
{
	const char *path = t_image_path(folder, "image");
	struct stasis_image_writer *writer = writer_open(path);
	struct stasis_image_reserve_info info;
	struct stasis_error err = STASIS_ERROR_INIT;

	stasis_image_writer_reserve_take(writer, &info);
	assert_int_equal(info.state, expected);
	assert_non_null(strstr(info.why, why));
	image_finish(writer, extent_add(writer), path);
	assert_done(stasis_tree_remove(AT_FDCWD, path, &err), &err);
}

static void what_is_foreign_or_damaged_is_not_used(void **state)
{
	const char *folder = t_image_folder();
	const char *reserve = t_image_path(folder, STASIS_IMAGE_RESERVE_NAME);
	uint64_t bytes = 0;
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	reserve_make(folder, 2, FILE_BYTES);
	assert_int_equal(chmod(reserve, 0750), 0);
	not_used(folder, STASIS_IMAGE_RESERVE_FOREIGN, "open to other users");
	assert_refused(stasis_image_reserve_remove(folder, &bytes, &err), &err, STASIS_REFUSED,
		       "is kept");
	err = (struct stasis_error)STASIS_ERROR_INIT;
	assert_int_equal(chmod(reserve, 0700), 0);
	t_file_store(reserve, STASIS_IMAGE_RESERVE_RECORD_NAME, "{}", 2);
	not_used(folder, STASIS_IMAGE_RESERVE_DAMAGED, "reserve.json");
	assert_done(stasis_image_reserve_remove(folder, &bytes, &err), &err);
	assert_int_equal(symlink("/tmp", reserve), 0);
	not_used(folder, STASIS_IMAGE_RESERVE_FOREIGN, "no directory");
	assert_int_equal(unlink(reserve), 0);
	if (geteuid() == 0) {
		reserve_make(folder, 2, FILE_BYTES);
		assert_int_equal(chown(reserve, 1, 1), 0);
		not_used(folder, STASIS_IMAGE_RESERVE_FOREIGN, "another user");
	}
}

/* A file that was cut, opened to others or replaced by a link is passed over; the others serve. */
static void files_that_are_not_as_recorded_are_passed_over(void **state)
{
	const char *folder = t_image_folder();
	const char *path = t_image_path(folder, "image");
	struct stasis_image_writer *writer = writer_open(path);
	struct stasis_image_reserve_info info;
	struct stasis_image_output *output;
	ino_t good;

	(void)state;
	reserve_make(folder, 4, FILE_BYTES);
	assert_int_equal(truncate(t_image_path(folder, STASIS_IMAGE_RESERVE_NAME "/0"), 4096), 0);
	assert_int_equal(chmod(t_image_path(folder, STASIS_IMAGE_RESERVE_NAME "/1"), 0644), 0);
	assert_int_equal(unlink(t_image_path(folder, STASIS_IMAGE_RESERVE_NAME "/2")), 0);
	assert_int_equal(
		symlink("/etc/passwd", t_image_path(folder, STASIS_IMAGE_RESERVE_NAME "/2")), 0);
	good = inode_at(folder, STASIS_IMAGE_RESERVE_NAME "/3");
	stasis_image_writer_reserve_take(writer, &info);
	assert_int_equal(info.state, STASIS_IMAGE_RESERVE_READY);
	assert_int_equal(info.file_count, 1);
	output = extent_add(writer);
	assert_int_equal(inode_of(output->stripe_fds[0]), good);
	image_finish(writer, output, path);
}

static void records_are_decoded_strictly(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{\"format\":\"stasis-reserve\",\"format_version\":1}",
		"{\"format\":\"stasis-reserve\",\"format_version\":2,\"file_count\":1,\"file_"
		"bytes\":4096}",
		"{\"format\":\"stasis-reserve\",\"format_version\":1,\"file_count\":0,\"file_"
		"bytes\":4096}",
		"{\"format\":\"stasis-reserve\",\"format_version\":1,\"file_count\":1,\"file_"
		"bytes\":4097}",
		"{\"format\":\"stasis-reserve\",\"format_version\":1,\"file_count\":1025,\"file_"
		"bytes\":4096}",
	};
	struct stasis_image_reserve_record record = {.file_count = 7, .file_bytes = 8192};
	CLEANUP(free) char *text = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	assert_done(stasis_image_reserve_record_encode(&record, &text, &err), &err);
	record = (struct stasis_image_reserve_record){0};
	assert_done(stasis_image_reserve_record_decode(text, strlen(text), &record, &err), &err);
	assert_int_equal(record.file_count, 7);
	assert_int_equal(record.file_bytes, 8192);
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		err = (struct stasis_error)STASIS_ERROR_INIT;
		assert_int_equal(
			stasis_image_reserve_record_decode(bad[i], strlen(bad[i]), &record, &err),
			-1);
		assert_int_equal(err.status, STASIS_BAD_IMAGE);
	}
}

static int memory_folder_make(void **state)
{
	(void)state;
	(void)snprintf(memory_folder, sizeof(memory_folder), "/dev/shm/unit-XXXXXX");
	if (!mkdtemp(memory_folder))
		*memory_folder = '\0';
	return 0;
}

static int memory_folder_remove(void **state)
{
	(void)state;
	return *memory_folder ? stasis_tree_remove(AT_FDCWD, memory_folder, NULL) : 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_capture_takes_files_over_on_a_disk),
		cmocka_unit_test(a_capture_takes_files_over_in_memory),
		cmocka_unit_test(two_gpus_share_it),
		cmocka_unit_test(one_too_small_helps_as_far_as_it_goes),
		cmocka_unit_test(of_two_captures_one_gets_it),
		cmocka_unit_test(a_capture_that_is_given_up_gives_it_back),
		cmocka_unit_test(stripes_of_a_capture_that_is_given_up_go_back),
		cmocka_unit_test(a_second_reserve_is_refused),
		cmocka_unit_test(one_that_is_given_up_leaves_nothing),
		cmocka_unit_test(what_is_foreign_or_damaged_is_not_used),
		cmocka_unit_test(files_that_are_not_as_recorded_are_passed_over),
		cmocka_unit_test(records_are_decoded_strictly),
	};

	return cmocka_run_group_tests(tests, memory_folder_make, memory_folder_remove);
}
