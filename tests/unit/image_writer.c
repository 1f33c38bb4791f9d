/*
 * Description: the writer refuses each destination that cannot take an image by a line of its own, makes
 * nothing that others could read, publishes a whole image or none, and keeps or removes the partial as
 * it is told.
 */

#include "unit.h"

#include <errno.h>
#include <limits.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "image_fixture.h"

static const struct stasis_image_origin origin = {
	.store = STASIS_IMAGE_STORE_CUSTOM,
	.tool_version = "0.1.0",
};

static bool exists(const char *path)
{
	struct stat info;

	return lstat(path, &info) == 0;
}

static mode_t mode_of(const char *path)
{
	struct stat info;

	assert_int_equal(lstat(path, &info), 0);
	return info.st_mode & 07777;
}

static void destination_refused(const char *path, const char *wanted)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_image_writer *writer = NULL;

	if (stasis_image_writer_open(path, &origin, &writer, &err) == 0)
		fail_msg("'%.80s' was accepted; wanted: %s", path, wanted);
	if (err.status != STASIS_REFUSED || !strstr(err.text, wanted))
		fail_msg("status %d, '%s' does not hold '%s'", (int)err.status, err.text, wanted);
	assert_null(writer);
}

static void what_is_there_is_never_replaced(void **state)
{
	const char *folder = t_image_folder();
	const char *directory = t_image_path(folder, "directory");
	const char *file = t_image_path(folder, "file");
	const char *link = t_image_path(folder, "link");
	const char *fifo = t_image_path(folder, "fifo");

	(void)state;
	assert_int_equal(mkdir(directory, 0700), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(symlink("nowhere", link), 0);
	t_file_store(folder, "file", "x", 1);
	destination_refused(directory, "already exists; name a path");
	destination_refused(file, "already exists and is no directory");
	destination_refused(fifo, "already exists and is no directory");
	destination_refused(link, "is a symbolic link");
	destination_refused(t_image_path(folder, "link/"), "is a symbolic link");
	destination_refused("/proc", "is a mount point");
	assert_int_equal(t_folder_count(folder, ""), 4);
}

static void unusable_places_are_named(void **state)
{
	const char *folder = t_image_folder();
	char name[300];

	(void)state;
	t_file_store(folder, "file", "x", 1);
	destination_refused(t_image_path(folder, "no/image"), "No such file or directory");
	destination_refused(t_image_path(folder, "file/image"), "Not a directory");
	destination_refused("", "No such file or directory");
	destination_refused("/", "does not end in a name");
	destination_refused(t_image_path(folder, ".."), "does not end in a name");
	destination_refused(t_image_path(folder, "x.partial-0123456789abcdef"),
			    "the name is that of a partial directory");
	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	destination_refused(t_image_path(folder, name), "File name too long");
	/* A name that fits, but not with what a partial has behind it. */
	name[NAME_MAX - 24] = '\0';
	destination_refused(t_image_path(folder, name), "leaves no room for '.partial-'");
	assert_int_equal(t_folder_count(folder, ""), 1);
	name[NAME_MAX - 25] = '\0';
	t_image_publish(t_image_path(folder, name));
	t_image_accepted(t_image_path(folder, name));
}

static void long_paths_are_refused(void **state)
{
	char path[PATH_MAX + 64];

	(void)state;
	memset(path, '/', sizeof(path));
	path[PATH_MAX + 10] = '\0';
	path[PATH_MAX + 9] = 'x';
	destination_refused(path, "File name too long");
	path[PATH_MAX - 10] = '\0';
	path[PATH_MAX - 11] = 'x';
	destination_refused(path, "File name too long");
}

/* Root may write anywhere: drops to another user in a child, which stands in the folder already. */
static int child_refused(const char *folder, const char *wanted)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_image_writer *writer = NULL;

	if (chdir(folder) != 0 || (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0))
		return 2;
	if (stasis_image_writer_open("image", &origin, &writer, &err) == 0)
		return 3;
	(void)fprintf(stderr, "%s\n", err.text);
	if (err.status != STASIS_REFUSED || err.os_errno != EACCES)
		return 4;
	return strstr(err.text, wanted) ? 0 : 5;
}

static void parent_not_writable_is_named(void **state)
{
	static const struct {
		mode_t mode;
		const char *wanted;
	} cases[] = {
		{0555, "image 'image': its parent directory is not writable"},
		{0444, "image 'image': open directory '.': Permission denied"},
	};
	const char *folder = t_image_folder();

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		int status = 0;
		pid_t child;

		assert_int_equal(chmod(folder, cases[i].mode), 0);
		child = fork();
		assert_true(child >= 0);
		if (child == 0)
			_exit(child_refused(folder, cases[i].wanted));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	assert_int_equal(chmod(folder, 0700), 0);
	assert_int_equal(t_folder_count(folder, ""), 0);
}

static void nothing_is_readable_by_others(void **state)
{
	static const mode_t masks[] = {0, 022, 077, 0277, 0777};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(masks); i++) {
		const char *folder = t_image_folder();
		const char *path = t_image_path(folder, "image");
		mode_t old = umask(masks[i]);

		t_image_publish(path);
		(void)umask(old);
		assert_int_equal(mode_of(path), 0700);
		assert_int_equal(mode_of(t_image_path(path, "gpu")), 0700);
		assert_int_equal(mode_of(t_image_path(path, "gpu/P0-D0-custom.0")), 0600);
		assert_int_equal(mode_of(t_image_path(path, "gpu/P0-D0-custom.1")), 0600);
		assert_int_equal(mode_of(t_image_path(path, "gpu/P0-D0-custom.sums")), 0600);
		if (masks[i] != 0277 && masks[i] != 0777)
			assert_int_equal(mode_of(t_image_path(path, "manifest.json")), 0600);
		assert_false(exists(t_image_path(path, "owner.json")));
		assert_false(exists(t_image_path(path, "manifest.partial.json")));
		assert_int_equal(t_folder_count(folder, ""), 1);
	}
}

static void relative_paths_and_slashes_work(void **state)
{
	const char *folder = t_image_folder();
	CLEANUP(fd) int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(chdir(folder), 0);
	t_image_publish("image");
	t_image_publish("./other///");
	t_image_accepted("image");
	t_image_accepted("other");
	assert_int_equal(fchdir(here), 0);
	t_image_accepted(t_image_path(folder, "image"));
	assert_int_equal(t_folder_count(folder, ""), 2);
}

static void there_is_no_image_before_publication(void **state)
{
	const char *folder = t_image_folder();
	const char *path = t_image_path(folder, "image");
	struct stasis_image_writer *writer = t_image_staged(path);
	const char *partial = t_image_text(stasis_image_writer_partial_path(writer));
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	assert_false(exists(path));
	assert_int_equal(mode_of(partial), 0700);
	t_image_refused(path, "No such file or directory");
	t_image_refused(partial, "partial directory of a capture that did not end");
	assert_done(stasis_image_writer_publish(writer, &err), &err);
	assert_false(exists(partial));
	t_image_accepted(path);
	/* Nothing that comes after takes it away. */
	assert_done(stasis_image_writer_abandon(writer, &err), &err);
	stasis_image_writer_close(writer);
	t_image_accepted(path);
}

static void steps_out_of_order_are_our_own_bug(void **state)
{
	const char *folder = t_image_folder();
	struct stasis_image_writer *writer = t_image_filled(t_image_path(folder, "image"));
	struct stasis_error staged = STASIS_ERROR_INIT;
	struct stasis_error published = STASIS_ERROR_INIT;
	struct stasis_error sealed = STASIS_ERROR_INIT;

	(void)state;
	assert_refused(stasis_image_writer_stage(writer, &staged), &staged, STASIS_INTERNAL,
		       "not sealed");
	assert_refused(stasis_image_writer_publish(writer, &published), &published, STASIS_INTERNAL,
		       "without being staged");
	assert_int_equal(stasis_image_writer_seal(writer, NULL), 0);
	assert_refused(stasis_image_writer_seal(writer, &sealed), &sealed, STASIS_INTERNAL,
		       "a second time");
	stasis_image_writer_close(writer);
	assert_int_equal(t_folder_count(folder, ""), 0);
}

static void publication_replaces_nothing(void **state)
{
	const char *folder = t_image_folder();
	const char *path = t_image_path(folder, "image");
	struct stasis_image_writer *writer = t_image_staged(path);
	const char *partial = t_image_text(stasis_image_writer_partial_path(writer));
	const struct stasis_image_open_options options = {.is_partial = true};
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error done = STASIS_ERROR_INIT;
	struct stasis_image *image = NULL;

	(void)state;
	assert_int_equal(mkdir(path, 0700), 0);
	assert_refused(stasis_image_writer_publish(writer, &err), &err, STASIS_REFUSED,
		       "File exists");
	assert_int_equal(err.os_errno, EEXIST);
	stasis_image_writer_keep(writer, &err);
	assert_non_null(strstr(err.text, partial));
	assert_non_null(strstr(err.text, "only copy"));
	assert_int_equal(t_folder_count(path, ""), 0);
	/* What is kept can be restored from, and published once the way is free. */
	assert_done(stasis_image_open(partial, &options, &image, &done), &done);
	assert_int_equal(stasis_image_manifest(image)->extent_count, 1);
	stasis_image_close(image);
	assert_int_equal(rmdir(path), 0);
	assert_done(stasis_image_writer_publish(writer, &done), &done);
	stasis_image_writer_close(writer);
	t_image_accepted(path);
}

static void an_end_without_publication_is_clean(void **state)
{
	const char *folder = t_image_folder();
	const char *path = t_image_path(folder, "image");
	struct stasis_image_writer *writer = t_image_filled(path);
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	stasis_image_writer_close(writer);
	assert_int_equal(t_folder_count(folder, ""), 0);
	/* A staged one may be the only copy: only a clear word removes it. */
	writer = t_image_staged(path);
	stasis_image_writer_close(writer);
	assert_int_equal(t_folder_count(folder, "image.partial-"), 1);
	writer = t_image_staged(path);
	assert_done(stasis_image_writer_abandon(writer, &err), &err);
	stasis_image_writer_close(writer);
	assert_int_equal(t_folder_count(folder, "image.partial-"), 1);
	stasis_image_writer_close(NULL);
}

static void extents_out_of_range_are_refused(void **state)
{
	const char *folder = t_image_folder();
	struct stasis_image_writer *writer = t_image_filled(t_image_path(folder, "image"));
	static const char *const wanted[] = {
		"process 1 or GPU",
		"was not added before",
		"0 bytes in",
		"out of range",
		"out of range",
		"out of range",
		"out of range",
		"0 stripes",
		"17 stripes",
		"only the custom store has them",
		"a second extent of process 0 on GPU",
	};
	struct stasis_image_extent_plan plans[ARRAY_COUNT(wanted)];
	struct stasis_image_output *output = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(plans); i++)
		plans[i] = t_image_plan(1);
	plans[0].process_index = 1;
	plans[1].gpu_uuid.bytes[0] ^= 1;
	plans[2].logical_bytes = 0;
	plans[3].logical_bytes = STASIS_IMAGE_BYTES_MAX + 1;
	plans[4].chunk_bytes = STASIS_CHUNK_BYTES_MIN - 1;
	plans[5].chunk_bytes = STASIS_CHUNK_BYTES_MAX + 4096;
	plans[6].chunk_bytes = STASIS_CHUNK_BYTES_MIN + 1;
	plans[7].stripe_count = 0;
	plans[8].stripe_count = STASIS_STRIPES_MAX + 1;
	plans[9].store = STASIS_IMAGE_STORE_NATIVE;
	plans[10] = t_image_plan(0); /* a second one */
	for (size_t i = 0; i < ARRAY_COUNT(plans); i++) {
		struct stasis_error err = STASIS_ERROR_INIT;

		if (stasis_image_writer_extent_add(writer, &plans[i], &output, &err) == 0)
			fail_msg("plan %zu was accepted", i);
		assert_refused(-1, &err, STASIS_REFUSED, wanted[i]);
		assert_null(output);
	}
	assert_int_equal(
		t_folder_count(t_image_path(stasis_image_writer_partial_path(writer), "gpu"),
			       "P0-D1"),
		0);
	stasis_image_writer_close(writer);
}

static void seal_refused(void (*spoil)(struct stasis_image_output *output), const char *wanted)
{
	const char *folder = t_image_folder();
	const char *path = t_image_path(folder, "image");
	const struct stasis_image_extent_plan plan = t_image_plan(1);
	struct stasis_image_writer *writer = t_image_filled(path);
	struct stasis_image_output *output = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error again = STASIS_ERROR_INIT;

	assert_done(stasis_image_writer_extent_add(writer, &plan, &output, &err), &err);
	t_image_fill(output);
	spoil(output);
	assert_refused(stasis_image_writer_seal(writer, &err), &err, STASIS_REFUSED, wanted);
	/* An error is final. */
	assert_int_equal(stasis_image_writer_seal(writer, &again), -1);
	assert_int_equal(stasis_image_writer_stage(writer, NULL), -1);
	assert_int_equal(stasis_image_writer_publish(writer, NULL), -1);
	stasis_image_writer_close(writer);
	assert_int_equal(t_folder_count(folder, ""), 0);
}

static void spoil_nothing_filled(struct stasis_image_output *output)
{
	memset(output->chunks, 0, output->chunk_count * sizeof(*output->chunks));
}

static void spoil_file_short(struct stasis_image_output *output)
{
	assert_int_equal(ftruncate(output->stripe_fds[1], T_IMAGE_CHUNK_BYTES - 1), 0);
}

static void spoil_overlap(struct stasis_image_output *output)
{
	output->chunks[2].stored_offset = 0;
}

static void a_transfer_that_went_wrong_is_not_sealed(void **state)
{
	(void)state;
	seal_refused(spoil_nothing_filled, "chunk 0 is not flagged as zeros, but stores 0 bytes");
	seal_refused(spoil_file_short, "gpu/P0-D1-custom.1' has 65535 bytes");
	seal_refused(spoil_overlap, "overlaps");
}

static void files_allocated_ahead_are_cut_to_size(void **state)
{
	const char *folder = t_image_folder();
	const char *path = t_image_path(folder, "image");
	const struct stasis_image_extent_plan plan = t_image_plan(1);
	struct stasis_image_writer *writer = t_image_filled(path);
	struct stasis_image_output *output = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stat info;

	(void)state;
	assert_done(stasis_image_writer_extent_add(writer, &plan, &output, &err), &err);
	t_image_fill(output);
	assert_int_equal(ftruncate(output->stripe_fds[0], 1 << 20), 0);
	assert_done(stasis_image_writer_seal(writer, &err), &err);
	assert_int_equal(fstat(output->stripe_fds[0], &info), 0);
	assert_int_equal(info.st_size, 2 * T_IMAGE_CHUNK_BYTES + STASIS_STORED_ALIGNMENT);
	assert_done(stasis_image_writer_stage(writer, &err), &err);
	assert_done(stasis_image_writer_publish(writer, &err), &err);
	stasis_image_writer_close(writer);
	t_image_accepted(path);
}

static void native_images_have_no_extents(void **state)
{
	static const struct stasis_image_origin native = {
		.store = STASIS_IMAGE_STORE_NATIVE,
		.tool_version = "0.1.0",
	};
	const char *folder = t_image_folder();
	const char *path = t_image_path(folder, "image");
	const struct stasis_image_process process = t_image_process(77);
	const struct stasis_image_gpu gpu = t_image_gpu(0);
	struct stasis_image_writer *writer = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	uint32_t index = 0;

	(void)state;
	assert_done(stasis_image_writer_open(path, &native, &writer, &err), &err);
	assert_done(stasis_image_writer_gpu_add(writer, &gpu, &err), &err);
	assert_int_equal(stasis_image_writer_gpu_add(writer, &gpu, NULL), -1);
	assert_done(stasis_image_writer_process_add(writer, &process, &index, &err), &err);
	assert_done(stasis_image_writer_seal(writer, &err), &err);
	assert_done(stasis_image_writer_stage(writer, &err), &err);
	assert_done(stasis_image_writer_publish(writer, &err), &err);
	stasis_image_writer_close(writer);
	t_image_accepted(path);
	assert_int_equal(t_folder_count(path, ""), 1);
}

static void lists_have_an_end(void **state)
{
	const char *folder = t_image_folder();
	struct stasis_image_writer *writer = t_image_filled(t_image_path(folder, "image"));
	struct stasis_error gpus = STASIS_ERROR_INIT;
	struct stasis_error options = STASIS_ERROR_INIT;
	struct stasis_error phases = STASIS_ERROR_INIT;
	struct stasis_error done = STASIS_ERROR_INIT;

	(void)state;
	/* Two GPUs and one option are there. */
	for (unsigned int i = 2; i <= STASIS_IMAGE_GPUS_MAX; i++) {
		struct stasis_image_gpu gpu = t_image_gpu(0);

		memcpy(gpu.uuid.bytes, &i, sizeof(i));
		(void)!stasis_image_writer_gpu_add(writer, &gpu, &gpus);
	}
	for (unsigned int i = 1; i <= STASIS_IMAGE_OPTIONS_MAX; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), "option-%u", i);
		(void)!stasis_image_writer_option_set(writer, name, "x", &options);
	}
	for (unsigned int i = 0; i <= STASIS_IMAGE_PHASES_MAX; i++)
		(void)!stasis_image_writer_phase_add(writer, "x", 1, 1, &phases);
	assert_refused(-1, &gpus, STASIS_REFUSED, "more than 256 GPUs");
	assert_refused(-1, &options, STASIS_REFUSED, "more than 256 options");
	assert_refused(-1, &phases, STASIS_REFUSED, "more than 256 phases");
	/* What fits is still a whole image. */
	assert_done(stasis_image_writer_seal(writer, &done), &done);
	assert_done(stasis_image_writer_stage(writer, &done), &done);
	assert_done(stasis_image_writer_publish(writer, &done), &done);
	stasis_image_writer_close(writer);
	t_image_accepted(t_image_path(folder, "image"));
}

static void room_is_told(void **state)
{
	const char *folder = t_image_folder();
	struct stasis_image_writer *writer = t_image_filled(t_image_path(folder, "image"));
	struct stasis_error err = STASIS_ERROR_INIT;
	uint64_t bytes = 0;

	(void)state;
	assert_done(stasis_image_writer_room(writer, &bytes, &err), &err);
	assert_true(bytes > 0);
	stasis_image_writer_close(writer);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_there_is_never_replaced),
		cmocka_unit_test(unusable_places_are_named),
		cmocka_unit_test(long_paths_are_refused),
		cmocka_unit_test(parent_not_writable_is_named),
		cmocka_unit_test(nothing_is_readable_by_others),
		cmocka_unit_test(relative_paths_and_slashes_work),
		cmocka_unit_test(there_is_no_image_before_publication),
		cmocka_unit_test(steps_out_of_order_are_our_own_bug),
		cmocka_unit_test(publication_replaces_nothing),
		cmocka_unit_test(an_end_without_publication_is_clean),
		cmocka_unit_test(extents_out_of_range_are_refused),
		cmocka_unit_test(a_transfer_that_went_wrong_is_not_sealed),
		cmocka_unit_test(files_allocated_ahead_are_cut_to_size),
		cmocka_unit_test(native_images_have_no_extents),
		cmocka_unit_test(lists_have_an_end),
		cmocka_unit_test(room_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
