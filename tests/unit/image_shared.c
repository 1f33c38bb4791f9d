/*
 * Description: an image of several processes holds, beside private bytes or without, contents of shared memory
 * and the file shared.json; it is refused where that file is missing, damaged, or one that it does not name.
 */

#include "unit.h"

#include <sys/stat.h>

#include "base/cleanup.h"
#include "image/fields.h"
#include "image_fixture.h"

#define SHARED "shared.json"
#define TEXT "{\"version\": 1}\n"
#define PROCESSES 2

static struct stasis_id participant_of(uint32_t process_index)
{
	return (struct stasis_id){{0xa0, (uint8_t)process_index, 7}};
}

/* Two processes with participants, two GPUs, no extent. */
static struct stasis_image_writer *writer_open(const char *path, enum stasis_image_store store)
{
	const struct stasis_image_origin origin = {.store = store, .tool_version = "0.1.0"};
	struct stasis_image_writer *writer = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	uint32_t index = 0;

	assert_done(stasis_image_writer_open(path, &origin, &writer, &err), &err);
	for (uint8_t number = 0; number < 2; number++) {
		const struct stasis_image_gpu gpu = t_image_gpu(number);

		assert_done(stasis_image_writer_gpu_add(writer, &gpu, &err), &err);
	}
	for (uint32_t i = 0; i < PROCESSES; i++) {
		struct stasis_image_process process = t_image_process((pid_t)(1000 + i));

		process.has_participant = true;
		process.participant = participant_of(i);
		assert_done(stasis_image_writer_process_add(writer, &process, &index, &err), &err);
		assert_int_equal(index, i);
	}
	return writer;
}

static struct stasis_image_output *extent_add(struct stasis_image_writer *writer,
					      uint32_t process_index, enum stasis_image_store store)
{
	struct stasis_image_extent_plan plan = t_image_plan(0);
	struct stasis_image_output *output = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;

	plan.process_index = process_index;
	plan.store = store;
	assert_done(stasis_image_writer_extent_add(writer, &plan, &output, &err), &err);
	t_image_fill(output);
	return output;
}

/* Extents of both kinds of shared memory, and of private memory where the image has any. */
static void extents_add(struct stasis_image_writer *writer, enum stasis_image_store store)
{
	for (uint32_t i = 0; i < PROCESSES; i++) {
		if (store == STASIS_IMAGE_STORE_CUSTOM)
			(void)extent_add(writer, i, STASIS_IMAGE_STORE_CUSTOM);
		(void)extent_add(writer, i, STASIS_IMAGE_STORE_SHARED);
	}
	(void)extent_add(writer, 0, STASIS_IMAGE_STORE_HOST);
}

static void shared_set(struct stasis_image_writer *writer, const char *text)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	assert_done(stasis_image_writer_shared_set(writer, text, strlen(text), &err), &err);
}

static void image_finish(struct stasis_image_writer *writer)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	assert_done(stasis_image_writer_seal(writer, &err), &err);
	assert_done(stasis_image_writer_stage(writer, &err), &err);
	assert_done(stasis_image_writer_publish(writer, &err), &err);
	stasis_image_writer_close(writer);
}

static const char *published(enum stasis_image_store store)
{
	const char *path = t_image_path(t_image_folder(), "image");
	struct stasis_image_writer *writer = writer_open(path, store);

	extents_add(writer, store);
	shared_set(writer, TEXT);
	image_finish(writer);
	return path;
}

static void read_back(enum stasis_image_store store, size_t extent_count)
{
	const char *path = published(store);
	const struct stasis_image_manifest *manifest;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_image *image = NULL;
	size_t bytes = 99;

	assert_done(stasis_image_open(path, NULL, &image, &err), &err);
	manifest = stasis_image_manifest(image);
	assert_int_equal(manifest->store, store);
	assert_int_equal(manifest->extent_count, extent_count);
	assert_int_equal(manifest->process_count, PROCESSES);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		struct stasis_id participant = participant_of(i);

		assert_true(manifest->processes[i].has_participant);
		assert_true(stasis_id_equal(&manifest->processes[i].participant, &participant));
	}
	assert_string_equal(stasis_image_input(image, extent_count - 1)->name, "gpu/P0-D0-host");
	assert_string_equal(stasis_image_input(image, extent_count - 2)->name, "gpu/P1-D0-shared");
	assert_string_equal(stasis_image_shared(image, &bytes), TEXT);
	assert_int_equal(bytes, strlen(TEXT));
	stasis_image_close(image);
}

static void is_read_back_as_written(void **state)
{
	(void)state;
	read_back(STASIS_IMAGE_STORE_CUSTOM, 5);
	read_back(STASIS_IMAGE_STORE_NATIVE, 3);
}

static void an_image_without_has_no_text(void **state)
{
	const char *path = t_image_path(t_image_folder(), "image");
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_image *image = NULL;
	size_t bytes = 99;

	(void)state;
	t_image_publish(path);
	assert_done(stasis_image_open(path, NULL, &image, &err), &err);
	assert_null(stasis_image_shared(image, &bytes));
	assert_int_equal(bytes, 0);
	stasis_image_close(image);
}

static void the_file_stands_with_no_extent(void **state)
{
	const char *path = t_image_path(t_image_folder(), "image");
	struct stasis_image_writer *writer = writer_open(path, STASIS_IMAGE_STORE_NATIVE);

	(void)state;
	shared_set(writer, TEXT);
	image_finish(writer);
	t_image_accepted(path);
	assert_int_equal(t_folder_count(path, ""), 2);
}

static void a_staged_one_is_read_too(void **state)
{
	static const struct stasis_image_open_options partial = {.is_partial = true};
	const char *path = t_image_path(t_image_folder(), "image");
	struct stasis_image_writer *writer = writer_open(path, STASIS_IMAGE_STORE_CUSTOM);
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_image *image = NULL;
	size_t bytes = 0;

	(void)state;
	extents_add(writer, STASIS_IMAGE_STORE_CUSTOM);
	shared_set(writer, "an earlier text");
	shared_set(writer, TEXT);
	assert_done(stasis_image_writer_seal(writer, &err), &err);
	assert_done(stasis_image_writer_stage(writer, &err), &err);
	assert_done(
		stasis_image_open(stasis_image_writer_partial_path(writer), &partial, &image, &err),
		&err);
	assert_string_equal(stasis_image_shared(image, &bytes), TEXT);
	stasis_image_close(image);
	assert_done(stasis_image_writer_abandon(writer, &err), &err);
	stasis_image_writer_close(writer);
}

static void what_cannot_be_set_is_refused(void **state)
{
	const char *folder = t_image_folder();
	struct stasis_image_writer *writer =
		writer_open(t_image_path(folder, "image"), STASIS_IMAGE_STORE_CUSTOM);
	struct stasis_error none = STASIS_ERROR_INIT;
	struct stasis_error many = STASIS_ERROR_INIT;
	struct stasis_error late = STASIS_ERROR_INIT;
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	assert_refused(stasis_image_writer_shared_set(writer, "", 0, &none), &none, STASIS_REFUSED,
		       "'shared.json' would have 0 bytes");
	assert_refused(stasis_image_writer_shared_set(writer, TEXT,
						      STASIS_IMAGE_SHARED_BYTES_MAX + 1, &many),
		       &many, STASIS_REFUSED, "but must have 1 to 268435456");
	assert_done(stasis_image_writer_seal(writer, &err), &err);
	assert_refused(stasis_image_writer_shared_set(writer, TEXT, strlen(TEXT), &late), &late,
		       STASIS_INTERNAL, "'shared.json' is set after the seal");
	stasis_image_writer_close(writer);
	assert_int_equal(t_folder_count(folder, ""), 0);
}

/* Where the file did not get its name, nobody knows which text is there: the error is final. */
static void a_failure_is_final(void **state)
{
	const char *folder = t_image_folder();
	struct stasis_image_writer *writer =
		writer_open(t_image_path(folder, "image"), STASIS_IMAGE_STORE_CUSTOM);
	const char *partial = stasis_image_writer_partial_path(writer);
	struct stasis_error first = STASIS_ERROR_INIT;
	struct stasis_error second = STASIS_ERROR_INIT;

	(void)state;
	assert_int_equal(mkdir(t_image_path(partial, SHARED), 0700), 0);
	assert_refused(stasis_image_writer_shared_set(writer, TEXT, strlen(TEXT), &first), &first,
		       STASIS_REFUSED, SHARED);
	assert_refused(stasis_image_writer_seal(writer, &second), &second, STASIS_INTERNAL,
		       "after a failure");
	stasis_image_writer_close(writer);
	assert_int_equal(t_folder_count(folder, ""), 0);
}

static void shared_bytes_need_the_file(void **state)
{
	const char *folder = t_image_folder();
	struct stasis_image_writer *writer =
		writer_open(t_image_path(folder, "image"), STASIS_IMAGE_STORE_CUSTOM);
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	extents_add(writer, STASIS_IMAGE_STORE_CUSTOM);
	assert_done(stasis_image_writer_seal(writer, &err), &err);
	assert_refused(stasis_image_writer_stage(writer, &err), &err, STASIS_REFUSED,
		       "but field 'shared' is missing");
	stasis_image_writer_close(writer);
	assert_int_equal(t_folder_count(folder, ""), 0);
}

static void extents_of_a_store_stand_alone(void **state)
{
	static const struct {
		enum stasis_image_store image;
		enum stasis_image_store extent;
		const char *wanted;
	} cases[] = {
		{STASIS_IMAGE_STORE_CUSTOM, STASIS_IMAGE_STORE_SHARED, "and store 'shared'"},
		{STASIS_IMAGE_STORE_CUSTOM, STASIS_IMAGE_STORE_CUSTOM, "and store 'custom'"},
		{STASIS_IMAGE_STORE_NATIVE, STASIS_IMAGE_STORE_HOST, "and store 'host'"},
		{STASIS_IMAGE_STORE_NATIVE, STASIS_IMAGE_STORE_CUSTOM, "only the custom store"},
		{STASIS_IMAGE_STORE_CUSTOM, STASIS_IMAGE_STORE_NATIVE, "only the custom store"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct stasis_image_writer *writer =
			writer_open(t_image_path(t_image_folder(), "image"), cases[i].image);
		struct stasis_image_extent_plan plan = t_image_plan(0);
		struct stasis_image_output *output = NULL;
		struct stasis_error err = STASIS_ERROR_INIT;

		extents_add(writer, cases[i].image);
		plan.store = cases[i].extent;
		assert_refused(stasis_image_writer_extent_add(writer, &plan, &output, &err), &err,
			       STASIS_REFUSED, cases[i].wanted);
		stasis_image_writer_close(writer);
	}
}

/* One thing done to a good image. */
static void file_missing(const char *path)
{
	assert_int_equal(unlink(t_image_path(path, SHARED)), 0);
}

static void file_short(const char *path)
{
	t_file_store(path, SHARED, TEXT, strlen(TEXT) - 1);
}

static void file_long(const char *path)
{
	t_file_store(path, SHARED, TEXT "\n", strlen(TEXT) + 1);
}

static void file_empty(const char *path)
{
	t_file_store(path, SHARED, "", 0);
}

static void file_changed(const char *path)
{
	t_file_store(path, SHARED, "{\"version\": 2}\n", strlen(TEXT));
}

static void file_huge(const char *path)
{
	assert_int_equal(truncate(t_image_path(path, SHARED), (off_t)1 << 40), 0);
}

static void file_fifo(const char *path)
{
	file_missing(path);
	assert_int_equal(mkfifo(t_image_path(path, SHARED), 0600), 0);
}

static void file_symlink(const char *path)
{
	const char *moved = t_image_path(path, "../moved");

	assert_int_equal(rename(t_image_path(path, SHARED), moved), 0);
	assert_int_equal(symlink(moved, t_image_path(path, SHARED)), 0);
}

static void file_writable(const char *path)
{
	assert_int_equal(chmod(t_image_path(path, SHARED), 0620), 0);
}

/* The whole field cut out with care; what is left is well formed. */
static void file_forgotten(const char *path)
{
	CLEANUP(json) json_t *root = t_manifest_load(path);
	json_t *extents = json_object_get(root, "extents");
	json_t *processes = json_object_get(root, "processes");

	assert_int_equal(json_object_del(root, "shared"), 0);
	assert_int_equal(json_array_clear(extents), 0);
	for (size_t i = 0; i < PROCESSES; i++)
		assert_int_equal(json_object_set_new(json_array_get(processes, i), "extent_count",
						     json_integer(0)),
				 0);
	t_manifest_store(path, root);
	assert_int_equal(rename(t_image_path(path, "gpu"), t_image_path(path, "../gpu")), 0);
}

static void stripe_of_host_missing(const char *path)
{
	assert_int_equal(unlink(t_image_path(path, "gpu/P0-D0-host.1")), 0);
}

static const struct damage {
	void (*apply)(const char *path);
	const char *wanted;
} damages[] = {
	{file_missing, "open 'shared.json': No such file"},
	{file_short, "'shared.json' has 14 bytes, 1 too few: it needs 15"},
	{file_long, "'shared.json' has 16 bytes, 1 too many: it needs 15"},
	{file_empty, "'shared.json' has 0 bytes, 15 too few: it needs 15"},
	{file_changed, "'shared.json' does not have the digest that the manifest gives"},
	{file_huge, "'shared.json' has 1099511627776 bytes, more than the 268435456 allowed"},
	{file_fifo, "open 'shared.json': it is not a regular file"},
	{file_symlink, "open 'shared.json': it is a symbolic link"},
	{file_writable, "'shared.json' can be written by others (mode 0620)"},
	{file_forgotten, "'./shared.json' does not belong to the image"},
	{stripe_of_host_missing, "open 'gpu/P0-D0-host.1': No such file"},
};

static void each_damage_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(damages); i++) {
		const char *path = published(STASIS_IMAGE_STORE_NATIVE);

		damages[i].apply(path);
		t_image_refused(path, damages[i].wanted);
		t_image_refused(path, path);
	}
}

static void a_file_that_no_manifest_names_is_refused(void **state)
{
	const char *path = t_image_path(t_image_folder(), "image");

	(void)state;
	t_image_publish(path);
	t_file_store(path, SHARED, TEXT, strlen(TEXT));
	t_image_refused(path, "'./shared.json' does not belong to the image");
}

/* What the driver asks for is private; what the machine must have room for is on its GPUs. */
static void only_private_bytes_are_compared_with_views(void **state)
{
	const char *path = published(STASIS_IMAGE_STORE_CUSTOM);
	const struct stasis_image_view view = {t_image_gpu(0).uuid, T_IMAGE_BYTES};
	struct stasis_image_view gpu = {t_image_gpu(0).uuid, 4 * T_IMAGE_BYTES};
	const struct stasis_image_manifest *manifest;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_image *image = NULL;
	size_t extent = 99;

	(void)state;
	assert_done(stasis_image_open(path, NULL, &image, &err), &err);
	manifest = stasis_image_manifest(image);
	assert_done(stasis_image_check_views(manifest, 0, &view, 1, &extent, &err), &err);
	assert_int_equal(extent, 0);
	assert_done(stasis_image_check_views(manifest, 1, &view, 1, &extent, &err), &err);
	assert_int_equal(extent, 2);
	assert_done(stasis_image_check_gpus(manifest, &gpu, 1, &err), &err);
	gpu.bytes--;
	assert_refused(stasis_image_check_gpus(manifest, &gpu, 1, &err), &err, STASIS_BAD_IMAGE,
		       "needs 1048976 bytes");
	stasis_image_close(image);
}

/* Files of a reserve become stripes of any store, and those of all stores go back. */
static void reserves_serve_every_store(void **state)
{
	const char *folder = t_image_folder();
	const char *path = t_image_path(folder, "image");
	const struct stasis_image_reserve_plan plan = {.file_count = 10,
						       .file_bytes = 4 * T_IMAGE_CHUNK_BYTES};
	struct stasis_image_reserve_info info;
	struct stasis_image_writer *writer;
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	assert_done(stasis_image_reserve_make(folder, &plan, &err), &err);
	writer = writer_open(path, STASIS_IMAGE_STORE_CUSTOM);
	stasis_image_writer_reserve_take(writer, &info);
	assert_int_equal(info.file_count, 10);
	extents_add(writer, STASIS_IMAGE_STORE_CUSTOM);
	assert_done(stasis_image_writer_abandon(writer, &err), &err);
	stasis_image_writer_close(writer);
	assert_done(stasis_image_reserve_look(folder, &info, &err), &err);
	assert_int_equal(info.state, STASIS_IMAGE_RESERVE_READY);
	assert_int_equal(info.file_count, 10);

	writer = writer_open(path, STASIS_IMAGE_STORE_CUSTOM);
	stasis_image_writer_reserve_take(writer, &info);
	extents_add(writer, STASIS_IMAGE_STORE_CUSTOM);
	shared_set(writer, TEXT);
	image_finish(writer);
	t_image_accepted(path);
	assert_done(stasis_image_reserve_look(folder, &info, &err), &err);
	assert_int_equal(info.state, STASIS_IMAGE_RESERVE_NONE);
}

/* As large as the bytes that it holds, and gone when nobody needs it. */
static void gc_counts_and_removes_the_file(void **state)
{
	static const struct stasis_image_gc_options dry = {.is_dry_run = true};
	const char *folder = t_image_folder();
	struct stasis_image_writer *writer =
		writer_open(t_image_path(folder, "image"), STASIS_IMAGE_STORE_NATIVE);
	struct stasis_image_partial *before = NULL;
	struct stasis_image_partial *after = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	size_t count = 0;

	(void)state;
	assert_done(stasis_image_gc(folder, &dry, &before, &count, &err), &err);
	assert_int_equal(count, 1);
	shared_set(writer, TEXT);
	assert_done(stasis_image_gc(folder, &dry, &after, &count, &err), &err);
	assert_int_equal(count, 1);
	assert_int_equal(after[0].bytes - before[0].bytes, strlen(TEXT));
	free(before);
	free(after);
	stasis_image_writer_close(writer);
	assert_int_equal(t_folder_count(folder, ""), 0);
}

static void the_description_names_it(void **state)
{
	const char *path = published(STASIS_IMAGE_STORE_NATIVE);
	CLEANUP(free) char *text = NULL;
	CLEANUP(json) json_t *root = NULL;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_image *image = NULL;
	const json_t *shared;

	(void)state;
	assert_done(stasis_image_open(path, NULL, &image, &err), &err);
	assert_done(stasis_image_describe(image, &text, &err), &err);
	stasis_image_close(image);
	root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	shared = json_object_get(root, "shared");
	assert_int_equal(json_integer_value(json_object_get(shared, "bytes")), strlen(TEXT));
	assert_string_equal(json_string_value(json_object_get(root, "bytes_are_in")), "processes");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_read_back_as_written),
		cmocka_unit_test(an_image_without_has_no_text),
		cmocka_unit_test(the_file_stands_with_no_extent),
		cmocka_unit_test(a_staged_one_is_read_too),
		cmocka_unit_test(what_cannot_be_set_is_refused),
		cmocka_unit_test(a_failure_is_final),
		cmocka_unit_test(shared_bytes_need_the_file),
		cmocka_unit_test(extents_of_a_store_stand_alone),
		cmocka_unit_test(each_damage_is_named),
		cmocka_unit_test(a_file_that_no_manifest_names_is_refused),
		cmocka_unit_test(only_private_bytes_are_compared_with_views),
		cmocka_unit_test(reserves_serve_every_store),
		cmocka_unit_test(gc_counts_and_removes_the_file),
		cmocka_unit_test(the_description_names_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
