/*
 * Description: an image is refused, before anything else is touched, when any of its files is missing, of
 * another size or kind, of another user, writable by others, one too many, or contradicts the others.
 */

#include "unit.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "image/fields.h"
#include "image_fixture.h"

#define STRIPE "gpu/P0-D0-custom.0"
#define SUMS "gpu/P0-D0-custom.sums"

static const char *published(void)
{
	const char *path = t_image_path(t_image_folder(), "image");

	t_image_publish(path);
	return path;
}

static void is_read_back_as_written(void **state)
{
	const char *path = published();
	const struct stasis_image_manifest *manifest;
	const struct stasis_image_input *input;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_image *image = NULL;

	(void)state;
	assert_done(stasis_image_open(path, NULL, &image, &err), &err);
	assert_string_equal(stasis_image_path(image), path);
	manifest = stasis_image_manifest(image);
	assert_int_equal(manifest->gpu_count, 2);
	assert_string_equal(manifest->gpus[1].pci_bus_id, "00000000:01:00.0");
	assert_int_equal(manifest->processes[0].pid, 1234);
	assert_string_equal(manifest->options[0].value, "before");
	assert_int_equal(manifest->option_count, 1);
	assert_int_equal(manifest->phases[0].bytes, 8);
	input = stasis_image_input(image, 0);
	assert_string_equal(input->name, "gpu/P0-D0-custom");
	assert_string_equal(input->stripe_names[1], "gpu/P0-D0-custom.1");
	assert_int_equal(input->chunk_count, T_IMAGE_CHUNKS);
	assert_int_equal(input->chunks[1].flags, STASIS_CHUNK_ZERO);
	for (uint64_t i = 0; i < input->chunk_count; i++) {
		static uint8_t data[T_IMAGE_CHUNK_BYTES];
		const struct stasis_chunk *chunk = &input->chunks[i];
		struct stasis_digest digest;

		if (chunk->flags & STASIS_CHUNK_ZERO)
			continue;
		assert_int_equal(pread(input->stripe_fds[i % T_IMAGE_STRIPES], data,
				       chunk->stored_bytes, (off_t)chunk->stored_offset),
				 (ssize_t)chunk->stored_bytes);
		digest = stasis_digest_chunk(&input->extent->id, i, data, chunk->stored_bytes);
		assert_true(stasis_digest_equal(&digest, &chunk->digest));
	}
	/* The descriptors are for reading only. */
	assert_int_equal(write(input->stripe_fds[0], "x", 1), -1);
	stasis_image_close(image);
	stasis_image_close(NULL);
}

static void what_was_checked_is_what_is_read(void **state)
{
	const char *path = published();
	const char *stripe = t_image_path(path, STRIPE);
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_image *image = NULL;
	uint8_t first = 0;

	(void)state;
	assert_done(stasis_image_open(path, NULL, &image, &err), &err);
	assert_int_equal(unlink(stripe), 0);
	t_file_store(path, STRIPE, "other", 5);
	assert_int_equal(pread(stasis_image_input(image, 0)->stripe_fds[0], &first, 1, 0), 1);
	assert_int_equal(first, 1);
	stasis_image_close(image);
}

/* One thing done to a good image. */
static void stripe_missing(const char *path)
{
	assert_int_equal(unlink(t_image_path(path, STRIPE)), 0);
}

static void size_add(const char *path, const char *name, int bytes)
{
	const char *file = t_image_path(path, name);
	struct stat info;

	assert_int_equal(stat(file, &info), 0);
	assert_int_equal(truncate(file, info.st_size + bytes), 0);
}

static void stripe_short(const char *path)
{
	size_add(path, STRIPE, -1);
}

static void stripe_long(const char *path)
{
	size_add(path, STRIPE, 1);
}

static void sums_short(const char *path)
{
	size_add(path, SUMS, -1);
}

static void sums_long(const char *path)
{
	size_add(path, SUMS, 1);
}

static void stripe_empty(const char *path)
{
	assert_int_equal(truncate(t_image_path(path, STRIPE), 0), 0);
}

static void stripe_fifo(const char *path)
{
	stripe_missing(path);
	assert_int_equal(mkfifo(t_image_path(path, STRIPE), 0600), 0);
}

static void stripe_symlink(const char *path)
{
	const char *file = t_image_path(path, STRIPE);
	const char *moved = t_image_path(path, "../moved");

	assert_int_equal(rename(file, moved), 0);
	assert_int_equal(symlink(moved, file), 0);
}

static void stripe_directory(const char *path)
{
	stripe_missing(path);
	assert_int_equal(mkdir(t_image_path(path, STRIPE), 0700), 0);
}

static void stripe_writable(const char *path)
{
	assert_int_equal(chmod(t_image_path(path, STRIPE), 0620), 0);
}

static void sums_writable(const char *path)
{
	assert_int_equal(chmod(t_image_path(path, SUMS), 0602), 0);
}

static void manifest_writable(const char *path)
{
	assert_int_equal(chmod(t_image_path(path, "manifest.json"), 0660), 0);
}

static void image_writable(const char *path)
{
	assert_int_equal(chmod(path, 0770), 0);
}

static void gpu_writable(const char *path)
{
	assert_int_equal(chmod(t_image_path(path, "gpu"), 0707), 0);
}

static void sums_missing(const char *path)
{
	assert_int_equal(unlink(t_image_path(path, SUMS)), 0);
}

static void manifest_missing(const char *path)
{
	assert_int_equal(unlink(t_image_path(path, "manifest.json")), 0);
}

static void manifest_empty(const char *path)
{
	assert_int_equal(truncate(t_image_path(path, "manifest.json"), 0), 0);
}

static void manifest_fifo(const char *path)
{
	manifest_missing(path);
	assert_int_equal(mkfifo(t_image_path(path, "manifest.json"), 0600), 0);
}

static void manifest_directory(const char *path)
{
	manifest_missing(path);
	assert_int_equal(mkdir(t_image_path(path, "manifest.json"), 0700), 0);
}

static void manifest_symlink(const char *path)
{
	manifest_missing(path);
	assert_int_equal(symlink("/etc/passwd", t_image_path(path, "manifest.json")), 0);
}

static void manifest_huge(const char *path)
{
	assert_int_equal(truncate(t_image_path(path, "manifest.json"), (off_t)1 << 40), 0);
}

static void manifest_only_staged(const char *path)
{
	assert_int_equal(rename(t_image_path(path, "manifest.json"),
				t_image_path(path, "manifest.partial.json")),
			 0);
}

static void gpu_missing(const char *path)
{
	assert_int_equal(rename(t_image_path(path, "gpu"), t_image_path(path, "../gpu")), 0);
}

static void gpu_symlink(const char *path)
{
	gpu_missing(path);
	assert_int_equal(symlink("../gpu", t_image_path(path, "gpu")), 0);
}

static void extra_file(const char *path)
{
	t_file_store(path, "extra\033[31m", "x", 1);
}

static void extra_hidden(const char *path)
{
	t_file_store(path, ".extra", "x", 1);
}

static void extra_stripe(const char *path)
{
	t_file_store(path, "gpu/P0-D0-custom.2", "x", 1);
}

static void extra_extent(const char *path)
{
	t_file_store(path, "gpu/P0-D1-custom.sums", "x", 1);
}

static void extra_directory(const char *path)
{
	assert_int_equal(mkdir(t_image_path(path, "criu"), 0700), 0);
}

static void stripes_swapped(const char *path)
{
	assert_int_equal(rename(t_image_path(path, STRIPE), t_image_path(path, "gpu/x")), 0);
	assert_int_equal(
		rename(t_image_path(path, "gpu/P0-D0-custom.1"), t_image_path(path, STRIPE)), 0);
	assert_int_equal(
		rename(t_image_path(path, "gpu/x"), t_image_path(path, "gpu/P0-D0-custom.1")), 0);
}

static void partial_name(const char *path)
{
	const char *partial = t_image_path(path, "../image.partial-0123456789abcdef");

	assert_int_equal(rename(path, partial), 0);
	/* Also where the path that leads there has another name. */
	assert_int_equal(symlink("image.partial-0123456789abcdef", path), 0);
}

static const struct damage {
	void (*apply)(const char *path);
	const char *wanted;
} damages[] = {
	{stripe_missing, "open '" STRIPE "': No such file"},
	{stripe_short, "'" STRIPE "' has 135167 bytes, 1 too few: it needs 135168"},
	{stripe_long, "'" STRIPE "' has 135169 bytes, 1 too many: it needs 135168"},
	{stripe_empty, "'" STRIPE "' has 0 bytes, 135168 too few"},
	{stripe_fifo, "open '" STRIPE "': it is not a regular file"},
	{stripe_symlink, "open '" STRIPE "': it is a symbolic link"},
	{stripe_directory, "open '" STRIPE "': it is not a regular file"},
	{stripe_writable, "'" STRIPE "' can be written by others (mode 0620)"},
	{stripes_swapped, "'" STRIPE "' has 65536 bytes"},
	{sums_missing, "open '" SUMS "': No such file"},
	{sums_short, "'" SUMS "' has 279 bytes, 1 too few: it needs 280"},
	{sums_long, "'" SUMS "' has 281 bytes, 1 too many: it needs 280"},
	{sums_writable, "'" SUMS "' can be written by others (mode 0602)"},
	{manifest_missing, "open 'manifest.json': No such file"},
	{manifest_empty, "manifest.json: is empty"},
	{manifest_fifo, "open 'manifest.json': it is not a regular file"},
	{manifest_directory, "open 'manifest.json': it is not a regular file"},
	{manifest_symlink, "open 'manifest.json': it is a symbolic link"},
	{manifest_huge, "more than the 16777216 allowed"},
	{manifest_writable, "'manifest.json' can be written by others (mode 0660)"},
	{manifest_only_staged, "open 'manifest.json': No such file"},
	{image_writable, "'the directory' can be written by others (mode 0770)"},
	{gpu_writable, "'gpu' can be written by others (mode 0707)"},
	{gpu_missing, "open the directory 'gpu': No such file"},
	{gpu_symlink, "open the directory 'gpu'"},
	{extra_file, "'./extra?[31m' does not belong to the image"},
	{extra_hidden, "'./.extra' does not belong to the image"},
	{extra_stripe, "'gpu/P0-D0-custom.2' does not belong to the image"},
	{extra_extent, "'gpu/P0-D1-custom.sums' does not belong to the image"},
	{extra_directory, "'./criu' does not belong to the image"},
	{partial_name, "it is the partial directory of a capture that did not end"},
};

static void each_damage_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(damages); i++) {
		const char *path = published();

		damages[i].apply(path);
		t_image_refused(path, damages[i].wanted);
		t_image_refused(path, path);
	}
}

static void places_that_are_no_image_are_named(void **state)
{
	const char *folder = t_image_folder();

	(void)state;
	t_file_store(folder, "file", "x", 1);
	t_image_refused(t_image_path(folder, "none"), "No such file or directory");
	t_image_refused(t_image_path(folder, "file"), "it is not a directory");
	t_image_refused(folder, "open 'manifest.json': No such file");
}

static void other_users_files_are_refused(void **state)
{
	static const char *const names[] = {".", "manifest.json", "gpu", STRIPE, SUMS};
	const struct stasis_image_open_options trusted = {.is_trusted = true};

	(void)state;
	if (geteuid() != 0)
		skip();
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		const char *path = published();
		struct stasis_error err = STASIS_ERROR_INIT;
		struct stasis_image *image = NULL;

		assert_int_equal(chown(t_image_path(path, names[i]), 1234, (gid_t)-1), 0);
		t_image_refused(path, "belongs to user 1234, and an image is code");
		t_image_refused(path, i == 0 ? "'the directory'" : names[i]);
		assert_done(stasis_image_open(path, &trusted, &image, &err), &err);
		stasis_image_close(image);
	}
}

static void trust_accepts_what_others_can_write(void **state)
{
	const struct stasis_image_open_options trusted = {.is_trusted = true};
	const char *path = published();
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_image *image = NULL;

	(void)state;
	stripe_writable(path);
	image_writable(path);
	assert_done(stasis_image_open(path, &trusted, &image, &err), &err);
	stasis_image_close(image);
	/* It accepts nothing else. */
	stripe_short(path);
	assert_refused(stasis_image_open(path, &trusted, &image, &err), &err, STASIS_BAD_IMAGE,
		       "1 too few");
}

static void files_others_may_read_are_accepted(void **state)
{
	const char *path = published();

	(void)state;
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(chmod(t_image_path(path, STRIPE), 0444), 0);
	t_image_accepted(path);
	/* A kill in the moment after publication leaves this. */
	t_file_store(path, "owner.json", "x", 1);
	t_image_accepted(path);
}

static void a_link_to_an_image_leads_to_it(void **state)
{
	const char *path = published();
	const char *link = t_image_path(path, "../latest");

	(void)state;
	assert_int_equal(symlink("image", link), 0);
	t_image_accepted(link);
}

static void sums_are_refused_when_any_byte_is_damaged(void **state)
{
	const char *path = published();
	size_t bytes = 0;
	CLEANUP(free) char *data = t_file_load(path, SUMS, &bytes);

	(void)state;
	for (size_t at = 0; at < bytes; at++) {
		data[at] = (char)(data[at] ^ 0x40);
		t_file_store(path, SUMS, data, bytes);
		t_image_refused(path,
				"'" SUMS "' does not have the digest that the manifest gives");
		data[at] = (char)(data[at] ^ 0x40);
	}
	t_file_store(path, SUMS, data, bytes);
	t_image_accepted(path);
}

static void manifests_are_refused_when_cut_at_any_length(void **state)
{
	const char *path = published();
	size_t bytes = 0;
	CLEANUP(free) char *text = t_file_load(path, "manifest.json", &bytes);

	(void)state;
	for (size_t length = 0; length < bytes; length++) {
		t_file_store(path, "manifest.json", text, length);
		t_image_refused(path, "manifest.json: ");
	}
	t_file_store(path, "manifest.json", text, bytes);
	t_image_accepted(path);
}

/* Writes sums into the image so that every digest above them fits. */
static void sums_replace(const char *path, const struct stasis_image_sums *sums)
{
	CLEANUP(free) uint8_t *data = NULL;
	CLEANUP(json) json_t *root = t_manifest_load(path);
	struct stasis_error err = STASIS_ERROR_INIT;
	size_t bytes = stasis_image_sums_bytes(sums->chunk_count);
	struct stasis_digest digest;
	char text[STASIS_DIGEST_TEXT_BYTES];
	json_t *extent = json_array_get(json_object_get(root, "extents"), 0);

	assert_done(stasis_image_sums_encode(sums, &data, &err), &err);
	digest = stasis_digest_of(data, bytes);
	t_file_store(path, SUMS, data, bytes);
	assert_int_equal(json_object_set_new(extent, "sums_digest",
					     json_string(stasis_digest_format(&digest, text))),
			 0);
	t_manifest_store(path, root);
}

static void sums_load(const char *path, struct stasis_image_sums *ret_sums)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	size_t bytes = 0;
	CLEANUP(free) char *data = t_file_load(path, SUMS, &bytes);

	assert_done(stasis_image_sums_decode("x", (uint8_t *)data, bytes, ret_sums, &err), &err);
}

static void flipped_zero_flags_are_refused_under_right_digests(void **state)
{
	const char *path = published();
	CLEANUP(image_sums) struct stasis_image_sums sums = {0};

	(void)state;
	sums_load(path, &sums);
	sums_replace(path, &sums);
	t_image_accepted(path);
	sums.chunks[1].flags = 0;
	sums_replace(path, &sums);
	t_image_refused(path, "chunk 1 is not flagged as zeros, but stores 0 bytes");
	sums.chunks[1].flags = STASIS_CHUNK_ZERO;
	sums.chunks[3].flags = STASIS_CHUNK_ZERO;
	sums_replace(path, &sums);
	t_image_refused(path, "chunk 3 is flagged as zeros and yet has stored bytes");
	sums.chunks[3].stored_bytes = 0;
	sums.chunks[3].stored_offset = 0;
	sums_replace(path, &sums);
	t_image_refused(path, "chunk 3 is flagged as zeros, but its digest is not that of zeros");
}

static void sums_of_another_extent_are_refused(void **state)
{
	const char *path = published();
	const char *other = published();
	CLEANUP(image_sums) struct stasis_image_sums sums = {0};

	(void)state;
	sums_load(other, &sums);
	sums_replace(path, &sums);
	t_image_refused(path, "is of another extent than the manifest says");
}

static void want_of_descriptors_is_not_the_images_fault(void **state)
{
	const char *path = published();
	struct rlimit old;
	struct rlimit few;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_image *image = NULL;
	int lowest = dup(0);
	int result;

	(void)state;
	assert_true(lowest >= 0);
	(void)close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = old;
	few.rlim_cur = (rlim_t)lowest + 2;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	result = stasis_image_open(path, NULL, &image, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_refused(result, &err, STASIS_REFUSED, "Too many open files");
	/* Nothing stayed open. */
	assert_int_equal(dup(0), lowest);
	(void)close(lowest);
}

static void an_image_is_described_as_json(void **state)
{
	const char *path = published();
	CLEANUP(free) char *text = NULL;
	CLEANUP(json) json_t *root = NULL;
	const json_t *extent;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_image *image = NULL;

	(void)state;
	assert_done(stasis_image_open(path, NULL, &image, &err), &err);
	assert_done(stasis_image_describe(image, &text, &err), &err);
	stasis_image_close(image);
	root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(root, "path")), path);
	assert_string_equal(json_string_value(json_object_get(root, "bytes_are_in")), "image");
	assert_false(json_is_true(json_object_get(root, "is_partial")));
	extent = json_array_get(json_object_get(root, "extents"), 0);
	assert_int_equal(json_integer_value(json_object_get(extent, "chunk_count")),
			 T_IMAGE_CHUNKS);
	assert_int_equal(json_integer_value(json_object_get(extent, "zero_bytes")),
			 T_IMAGE_CHUNK_BYTES);
	assert_int_equal(json_integer_value(json_object_get(extent, "logical_bytes")),
			 T_IMAGE_BYTES);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_read_back_as_written),
		cmocka_unit_test(what_was_checked_is_what_is_read),
		cmocka_unit_test(each_damage_is_named),
		cmocka_unit_test(places_that_are_no_image_are_named),
		cmocka_unit_test(other_users_files_are_refused),
		cmocka_unit_test(trust_accepts_what_others_can_write),
		cmocka_unit_test(files_others_may_read_are_accepted),
		cmocka_unit_test(a_link_to_an_image_leads_to_it),
		cmocka_unit_test(sums_are_refused_when_any_byte_is_damaged),
		cmocka_unit_test(manifests_are_refused_when_cut_at_any_length),
		cmocka_unit_test(flipped_zero_flags_are_refused_under_right_digests),
		cmocka_unit_test(sums_of_another_extent_are_refused),
		cmocka_unit_test(want_of_descriptors_is_not_the_images_fault),
		cmocka_unit_test(an_image_is_described_as_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
