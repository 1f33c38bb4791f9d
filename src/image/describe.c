/*
 * An image as JSON, for people's tools: the manifest, and what was found beside it.
 */

#include <errno.h>

#include "base/cleanup.h"
#include "image/manifest_fields.h"
#include "image/reader.h"

static int extent_extend(json_t *object, const struct stasis_image_input *input)
{
	uint64_t zero_bytes = 0;

	for (uint64_t i = 0; i < input->chunk_count; i++) {
		if ((input->chunks[i].flags & STASIS_CHUNK_ZERO) != 0)
			zero_bytes += stasis_chunk_bytes(input->extent->logical_bytes,
							 input->extent->chunk_bytes, i);
	}
	if (json_object_set_new(object, "chunk_count",
				json_integer((json_int_t)input->chunk_count)) != 0)
		return -1;
	return json_object_set_new(object, "zero_bytes", json_integer((json_int_t)zero_bytes));
}

int stasis_image_describe(const struct stasis_image *image, char **ret_json,
			  struct stasis_error *err)
{
	CLEANUP(json) json_t *root = NULL;
	json_t *extents;
	char *text;
	int failed = 0;

	if (stasis_image_manifest_to_json(&image->manifest, &root, err) != 0)
		return -1;
	extents = json_object_get(root, "extents");
	for (size_t i = 0; i < image->manifest.extent_count; i++)
		failed |= extent_extend(json_array_get(extents, i), &image->inputs[i].public);
	failed |= json_object_del(root, "digest");
	failed |= json_object_set_new(root, "path", stasis_image_text_encode(image->path));
	failed |= json_object_set_new(root, "is_partial", json_boolean(image->is_partial));
	/* Where bytes of private memory are that no extent holds. */
	failed |= json_object_set_new(root, "bytes_are_in",
				      json_string(image->manifest.store == STASIS_IMAGE_STORE_NATIVE
							  ? "processes"
							  : "image"));
	text = failed ? NULL : json_dumps(root, JSON_INDENT(2));
	if (!text)
		return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "describe image '%s'",
					image->path);
	*ret_json = text;
	return 0;
}
