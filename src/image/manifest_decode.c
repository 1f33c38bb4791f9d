/*
 * Reading of manifest.json; see manifest.h. The version is looked at before all else, then the digest, then
 * each field, then the rules between fields.
 */

#include "image/manifest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "image/manifest_fields.h"

#define WHERE_BYTES 64

/* Reads object `index` of a list into its structure. */
typedef int item_decode(struct stasis_image_manifest *manifest, const json_t *object, size_t index,
			struct stasis_error *err);

static int version_check(const json_t *root, struct stasis_error *err)
{
	const char *format = json_string_value(json_object_get(root, "format"));
	const json_t *version = json_object_get(root, "format_version");

	if (!format || strcmp(format, STASIS_IMAGE_FORMAT_NAME) != 0)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "manifest.json: field 'format' is not '%s': this is no image",
				   STASIS_IMAGE_FORMAT_NAME);
	if (!json_is_integer(version))
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "manifest.json: field 'format_version' is missing or no number");
	if (json_integer_value(version) != STASIS_IMAGE_FORMAT_VERSION)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "manifest.json: the image has format version %lld, this stasis "
				   "reads version %d; use the stasis that wrote it",
				   (long long)json_integer_value(version),
				   STASIS_IMAGE_FORMAT_VERSION);
	return 0;
}

static int digest_check(const char *text, size_t bytes, struct stasis_error *err)
{
	struct stasis_digest found;
	char digits[STASIS_DIGEST_TEXT_BYTES];
	size_t offset = 0;

	if (!stasis_image_manifest_digest(text, bytes, &offset, &found))
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "manifest.json: does not begin with its digest");
	if (strncmp(text + offset, stasis_digest_format(&found, digits),
		    STASIS_IMAGE_DIGEST_DIGITS) != 0)
		return stasis_fail(
			err, STASIS_BAD_IMAGE,
			"manifest.json: its digest says %.32s, its text has %s: the file "
			"was damaged or changed",
			text + offset, digits);
	return 0;
}

static bool created_is_valid(const char *text)
{
	static const char pattern[] = "0000-00-00T00:00:00Z";

	for (size_t i = 0; i < sizeof(pattern); i++) {
		bool is_digit = text[i] >= '0' && text[i] <= '9';

		if (pattern[i] == '0' ? !is_digit : text[i] != pattern[i])
			return false;
	}
	return true;
}

static int top_decode(const json_t *root, struct stasis_image_manifest *manifest,
		      struct stasis_error *err)
{
	if (stasis_image_fields_decode(&stasis_image_manifest_table, root, "manifest.json",
				       manifest, err) != 0)
		return -1;
	if (!created_is_valid(manifest->created))
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "manifest.json: field 'created' must be a time in UTC such as "
				   "2026-01-31T12:00:00Z");
	if (!json_is_null(json_object_get(root, "interposer_build_id")))
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "manifest.json: field 'interposer_build_id' must be null: this "
				   "stasis restores no processes with an interposer");
	return 0;
}

static int gpu_decode(struct stasis_image_manifest *manifest, const json_t *object, size_t index,
		      struct stasis_error *err)
{
	char where[WHERE_BYTES];

	(void)snprintf(where, sizeof(where), "manifest.json: gpus[%zu]", index);
	return stasis_image_fields_decode(&stasis_image_gpu_table, object, where,
					  &manifest->gpus[index], err);
}

static int process_decode(struct stasis_image_manifest *manifest, const json_t *object,
			  size_t index, struct stasis_error *err)
{
	struct stasis_image_process *process = &manifest->processes[index];
	const json_t *participant = json_object_get(object, "participant");
	char where[WHERE_BYTES];

	(void)snprintf(where, sizeof(where), "manifest.json: processes[%zu]", index);
	if (stasis_image_fields_decode(&stasis_image_process_table, object, where, process, err) !=
	    0)
		return -1;
	process->has_participant = !json_is_null(participant);
	if (process->has_participant &&
	    (!json_is_string(participant) ||
	     !stasis_id_parse(json_string_value(participant), &process->participant)))
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "%s: field 'participant' must be null or 32 lower-case "
				   "hexadecimal digits",
				   where);
	return 0;
}

static int stripe_bytes_decode(struct stasis_image_extent *extent, const json_t *array,
			       const char *where, struct stasis_error *err)
{
	if (!json_is_array(array) || json_array_size(array) != extent->stripe_count)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "%s: field 'stripe_bytes' must be a list of %u numbers", where,
				   extent->stripe_count);
	for (uint32_t s = 0; s < extent->stripe_count; s++) {
		const json_t *item = json_array_get(array, s);
		json_int_t bytes = json_integer_value(item);

		if (!json_is_integer(item) || bytes < 0 || (uint64_t)bytes > STASIS_IMAGE_BYTES_MAX)
			return stasis_fail(err, STASIS_BAD_IMAGE,
					   "%s: stripe_bytes[%u] must be a whole number from 0 to "
					   "%llu",
					   where, s, (unsigned long long)STASIS_IMAGE_BYTES_MAX);
		extent->stripe_bytes[s] = (uint64_t)bytes;
	}
	return 0;
}

/* File names are never taken from a manifest: the one that belongs to the extent must stand there. */
static int name_check(const struct stasis_image_extent *extent, const json_t *value,
		      const char *where, struct stasis_error *err)
{
	const char *name = json_string_value(value);
	char stem[STASIS_IMAGE_STEM_BYTES];

	(void)stasis_image_extent_stem(extent, stem);
	if (!name)
		return stasis_fail(err, STASIS_BAD_IMAGE, "%s: field 'name' must be text", where);
	if (strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "%s: field 'name' leads out of the image; it must be '%s'",
				   where, stem);
	if (strcmp(name, stem) != 0)
		return stasis_fail(err, STASIS_BAD_IMAGE, "%s: field 'name' must be '%s'", where,
				   stem);
	return 0;
}

static int gpu_reference_decode(const struct stasis_image_manifest *manifest,
				struct stasis_image_extent *extent, const json_t *value,
				const char *where, struct stasis_error *err)
{
	const char *text = json_string_value(value);
	struct stasis_id uuid;

	if (!text || !stasis_uuid_parse(text, &uuid))
		return stasis_fail(err, STASIS_BAD_IMAGE, "%s: field 'gpu' must be a GPU's UUID",
				   where);
	if (!stasis_image_gpu_find(manifest, &uuid, &extent->gpu_index))
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "%s: GPU %s is not among the manifest's GPUs", where, text);
	return 0;
}

static int extent_decode(struct stasis_image_manifest *manifest, const json_t *object, size_t index,
			 struct stasis_error *err)
{
	struct stasis_image_extent *extent = &manifest->extents[index];
	const char *algorithm;
	char where[WHERE_BYTES];

	(void)snprintf(where, sizeof(where), "manifest.json: extents[%zu]", index);
	if (stasis_image_fields_decode(&stasis_image_extent_table, object, where, extent, err) != 0)
		return -1;
	if (extent->process_index >= manifest->process_count)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "%s: process %u is not among the manifest's %zu processes",
				   where, extent->process_index, manifest->process_count);
	algorithm = json_string_value(json_object_get(object, "digest_algorithm"));
	if (!algorithm || strcmp(algorithm, STASIS_DIGEST_NAME) != 0)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "%s: field 'digest_algorithm' must be '%s'", where,
				   STASIS_DIGEST_NAME);
	if (gpu_reference_decode(manifest, extent, json_object_get(object, "gpu"), where, err) != 0)
		return -1;
	if (name_check(extent, json_object_get(object, "name"), where, err) != 0)
		return -1;
	return stripe_bytes_decode(extent, json_object_get(object, "stripe_bytes"), where, err);
}

static int phase_decode(struct stasis_image_manifest *manifest, const json_t *object, size_t index,
			struct stasis_error *err)
{
	char where[WHERE_BYTES];

	(void)snprintf(where, sizeof(where), "manifest.json: phases[%zu]", index);
	return stasis_image_fields_decode(&stasis_image_phase_table, object, where,
					  &manifest->phases[index], err);
}

static int option_decode(struct stasis_image_manifest *manifest, const json_t *object, size_t index,
			 struct stasis_error *err)
{
	char where[WHERE_BYTES];

	(void)snprintf(where, sizeof(where), "manifest.json: options[%zu]", index);
	return stasis_image_fields_decode(&stasis_image_option_table, object, where,
					  &manifest->options[index], err);
}

/* In this order: an extent names a GPU and a process. */
static const struct list {
	const char *name;
	size_t max;
	size_t item_bytes;
	size_t items_offset;
	size_t count_offset;
	item_decode *decode;
} lists[] = {
#define LIST(items, number, limit, decode)                                                         \
	{                                                                                          \
#items, limit, sizeof(*((struct stasis_image_manifest *)0)->items),                \
			offsetof(struct stasis_image_manifest, items),                             \
			offsetof(struct stasis_image_manifest, number), decode                     \
	}
	LIST(gpus, gpu_count, STASIS_IMAGE_GPUS_MAX, gpu_decode),
	LIST(processes, process_count, STASIS_IMAGE_PROCESSES_MAX, process_decode),
	LIST(extents, extent_count, STASIS_IMAGE_EXTENTS_MAX, extent_decode),
	LIST(options, option_count, STASIS_IMAGE_OPTIONS_MAX, option_decode),
	LIST(phases, phase_count, STASIS_IMAGE_PHASES_MAX, phase_decode),
#undef LIST
};

static int list_decode(const struct list *list, const json_t *root,
		       struct stasis_image_manifest *manifest, struct stasis_error *err)
{
	const json_t *array = json_object_get(root, list->name);
	void **items = (void **)((char *)manifest + list->items_offset);
	size_t *count = (size_t *)((char *)manifest + list->count_offset);
	size_t wanted = json_array_size(array);

	if (!json_is_array(array) || wanted > list->max)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "manifest.json: field '%s' must be a list of at most %zu",
				   list->name, list->max);
	if (wanted == 0)
		return 0;
	*items = calloc(wanted, list->item_bytes);
	if (!*items)
		return stasis_fail_errno(err, STASIS_REFUSED, "read the manifest");
	*count = wanted;
	for (size_t i = 0; i < wanted; i++) {
		if (list->decode(manifest, json_array_get(array, i), i, err) != 0)
			return -1;
	}
	return 0;
}

/* Counts that a process states; a lost extent shows here even where the list was cut with care. */
static int extent_counts_check(const json_t *root, const struct stasis_image_manifest *manifest,
			       struct stasis_error *err)
{
	const json_t *processes = json_object_get(root, "processes");

	for (size_t i = 0; i < manifest->process_count; i++) {
		const json_t *stated =
			json_object_get(json_array_get(processes, i), "extent_count");
		json_int_t found = 0;

		for (size_t k = 0; k < manifest->extent_count; k++)
			found += manifest->extents[k].process_index == i;
		if (!json_is_integer(stated) || json_integer_value(stated) != found)
			return stasis_fail(
				err, STASIS_BAD_IMAGE,
				"manifest.json: processes[%zu]: field 'extent_count' must "
				"be %lld, the number of its extents",
				i, (long long)found);
	}
	return 0;
}

/* Where there is such a field, there is such a file. */
static int shared_decode(const json_t *root, struct stasis_image_manifest *manifest,
			 struct stasis_error *err)
{
	const json_t *shared = json_object_get(root, "shared");

	if (!shared)
		return 0;
	return stasis_image_fields_decode(&stasis_image_shared_table, shared,
					  "manifest.json: shared", &manifest->shared, err);
}

static int root_decode(const json_t *root, struct stasis_image_manifest *manifest,
		       struct stasis_error *err)
{
	if (top_decode(root, manifest, err) != 0)
		return -1;
	for (size_t i = 0; i < ARRAY_COUNT(lists); i++) {
		if (list_decode(&lists[i], root, manifest, err) != 0)
			return -1;
	}
	if (extent_counts_check(root, manifest, err) != 0 ||
	    shared_decode(root, manifest, err) != 0)
		return -1;
	return stasis_image_manifest_check(manifest, err);
}

int stasis_image_manifest_decode(const char *text, size_t bytes,
				 struct stasis_image_manifest *ret_manifest,
				 struct stasis_error *err)
{
	CLEANUP(image_manifest) struct stasis_image_manifest manifest = {0};
	CLEANUP(json) json_t *root = NULL;
	json_error_t why;

	if (bytes == 0)
		return stasis_fail(err, STASIS_BAD_IMAGE, "manifest.json: is empty");
	root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &why);
	if (!root)
		return stasis_fail(err, STASIS_BAD_IMAGE, "manifest.json: line %d, column %d: %s",
				   why.line, why.column, stasis_image_text_clean(why.text));
	if (version_check(root, err) != 0 || digest_check(text, bytes, err) != 0 ||
	    root_decode(root, &manifest, err) != 0)
		return -1;
	*ret_manifest = manifest;
	manifest = (struct stasis_image_manifest){0};
	return 0;
}
