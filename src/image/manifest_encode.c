/*
 * Writing of manifest.json; see manifest.h. What is written is read back before it is handed out, so that
 * no image can be published that would be refused.
 */

#include "image/manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "image/manifest_fields.h"

/* Sets a field that was written as null; takes `value`, and reports its absence as want of memory. */
static int other_set(json_t *object, const char *name, json_t *value)
{
	return json_object_set_new(object, name, value);
}

static json_t *gpu_encode(const struct stasis_image_manifest *manifest, size_t index)
{
	return stasis_image_fields_encode(&stasis_image_gpu_table, &manifest->gpus[index]);
}

static size_t extent_count_of(const struct stasis_image_manifest *manifest, size_t process_index)
{
	size_t count = 0;

	for (size_t i = 0; i < manifest->extent_count; i++)
		count += manifest->extents[i].process_index == process_index;
	return count;
}

static json_t *process_encode(const struct stasis_image_manifest *manifest, size_t index)
{
	const struct stasis_image_process *process = &manifest->processes[index];
	CLEANUP(json)
	json_t *object = stasis_image_fields_encode(&stasis_image_process_table, process);
	char text[STASIS_ID_TEXT_BYTES];

	if (!object || other_set(object, "extent_count",
				 json_integer((json_int_t)extent_count_of(manifest, index))) != 0)
		return NULL;
	if (process->has_participant &&
	    other_set(object, "participant",
		      json_string(stasis_id_format(&process->participant, text))) != 0)
		return NULL;
	return ptr_steal(&object);
}

static json_t *stripe_bytes_encode(const struct stasis_image_extent *extent)
{
	CLEANUP(json) json_t *array = json_array();

	for (uint32_t s = 0; s < extent->stripe_count; s++) {
		if (json_array_append_new(array,
					  json_integer((json_int_t)extent->stripe_bytes[s])) != 0)
			return NULL;
	}
	return ptr_steal(&array);
}

static json_t *extent_encode(const struct stasis_image_manifest *manifest, size_t index)
{
	const struct stasis_image_extent *extent = &manifest->extents[index];
	CLEANUP(json)
	json_t *object = stasis_image_fields_encode(&stasis_image_extent_table, extent);
	char stem[STASIS_IMAGE_STEM_BYTES];
	char uuid[STASIS_UUID_TEXT_BYTES];

	if (!object ||
	    other_set(object, "name", json_string(stasis_image_extent_stem(extent, stem))) != 0 ||
	    other_set(object, "gpu",
		      json_string(stasis_uuid_format(&manifest->gpus[extent->gpu_index].uuid,
						     uuid))) != 0 ||
	    other_set(object, "stripe_bytes", stripe_bytes_encode(extent)) != 0 ||
	    other_set(object, "digest_algorithm", json_string(STASIS_DIGEST_NAME)) != 0)
		return NULL;
	return ptr_steal(&object);
}

static json_t *phase_encode(const struct stasis_image_manifest *manifest, size_t index)
{
	return stasis_image_fields_encode(&stasis_image_phase_table, &manifest->phases[index]);
}

static json_t *option_encode(const struct stasis_image_manifest *manifest, size_t index)
{
	return stasis_image_fields_encode(&stasis_image_option_table, &manifest->options[index]);
}

/* Leaves the field away where there is no such file. */
static int shared_set(json_t *root, const struct stasis_image_manifest *manifest)
{
	if (manifest->shared.bytes == 0)
		return 0;
	return other_set(root, "shared",
			 stasis_image_fields_encode(&stasis_image_shared_table, &manifest->shared));
}

static json_t *list_encode(const struct stasis_image_manifest *manifest, size_t count,
			   json_t *(*encode)(const struct stasis_image_manifest *manifest,
					     size_t index))
{
	CLEANUP(json) json_t *array = json_array();

	for (size_t i = 0; i < count; i++) {
		if (json_array_append_new(array, encode(manifest, i)) != 0)
			return NULL;
	}
	return ptr_steal(&array);
}

int stasis_image_manifest_to_json(const struct stasis_image_manifest *manifest, json_t **ret_json,
				  struct stasis_error *err)
{
	CLEANUP(json)
	json_t *root = stasis_image_fields_encode(&stasis_image_manifest_table, manifest);

	if (!root || other_set(root, "digest", json_string("")) != 0 ||
	    other_set(root, "format", json_string(STASIS_IMAGE_FORMAT_NAME)) != 0 ||
	    other_set(root, "format_version", json_integer(STASIS_IMAGE_FORMAT_VERSION)) != 0 ||
	    other_set(root, "gpus", list_encode(manifest, manifest->gpu_count, gpu_encode)) != 0 ||
	    other_set(root, "processes",
		      list_encode(manifest, manifest->process_count, process_encode)) != 0 ||
	    other_set(root, "extents",
		      list_encode(manifest, manifest->extent_count, extent_encode)) != 0 ||
	    other_set(root, "options",
		      list_encode(manifest, manifest->option_count, option_encode)) != 0 ||
	    other_set(root, "phases", list_encode(manifest, manifest->phase_count, phase_encode)) !=
		    0 ||
	    shared_set(root, manifest) != 0)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "build the manifest");
	*ret_json = ptr_steal(&root);
	return 0;
}

bool stasis_image_manifest_digest(const char *text, size_t bytes, size_t *ret_offset,
				  struct stasis_digest *ret_digest)
{
	const size_t offset = sizeof(STASIS_IMAGE_MANIFEST_BEGIN) - 1;
	CLEANUP(free) char *copy = NULL;

	if (bytes < offset + STASIS_IMAGE_DIGEST_DIGITS ||
	    memcmp(text, STASIS_IMAGE_MANIFEST_BEGIN, offset) != 0)
		return false;
	copy = malloc(bytes);
	if (!copy)
		return false;
	memcpy(copy, text, bytes);
	memset(copy + offset, '0', STASIS_IMAGE_DIGEST_DIGITS);
	*ret_digest = stasis_digest_of(copy, bytes);
	*ret_offset = offset;
	return true;
}

/* Text with the digest put in its place, and an end of line. */
static int text_make(json_t *root, char **ret_text, size_t *ret_bytes)
{
	static const char zeros[] = "00000000000000000000000000000000";
	CLEANUP(json_text) char *dump = NULL;
	CLEANUP(free) char *text = NULL;
	char digits[STASIS_DIGEST_TEXT_BYTES];
	struct stasis_digest digest;
	size_t offset = 0;
	size_t bytes;

	_Static_assert(sizeof(zeros) == STASIS_DIGEST_TEXT_BYTES, "as many digits as a digest");
	if (json_object_set_new(root, "digest", json_string(zeros)) != 0)
		return -1;
	dump = json_dumps(root, JSON_INDENT(2));
	if (!dump)
		return -1;
	bytes = strlen(dump) + 1;
	text = malloc(bytes + 1);
	if (!text)
		return -1;
	memcpy(text, dump, bytes - 1);
	text[bytes - 1] = '\n';
	text[bytes] = '\0';
	if (!stasis_image_manifest_digest(text, bytes, &offset, &digest))
		return -1;
	memcpy(text + offset, stasis_digest_format(&digest, digits), STASIS_IMAGE_DIGEST_DIGITS);
	*ret_text = ptr_steal(&text);
	*ret_bytes = bytes;
	return 0;
}

int stasis_image_manifest_encode(const struct stasis_image_manifest *manifest, char **ret_text,
				 size_t *ret_bytes, struct stasis_error *err)
{
	CLEANUP(image_manifest) struct stasis_image_manifest check = {0};
	CLEANUP(json) json_t *root = NULL;
	CLEANUP(free) char *text = NULL;
	struct stasis_error why = STASIS_ERROR_INIT;
	size_t bytes = 0;

	if (stasis_image_manifest_to_json(manifest, &root, err) != 0)
		return -1;
	if (text_make(root, &text, &bytes) != 0)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "build the manifest");
	if (stasis_image_manifest_decode(text, bytes, &check, &why) != 0)
		return stasis_fail(err, STASIS_REFUSED, "the capture cannot be described: %s",
				   why.text);
	*ret_text = ptr_steal(&text);
	*ret_bytes = bytes;
	return 0;
}
