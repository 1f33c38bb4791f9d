#ifndef STASIS_IMAGE_MANIFEST_FIELDS_H
#define STASIS_IMAGE_MANIFEST_FIELDS_H

/*
 * The fields of manifest.json, and what its encoder and decoder share. Internal to the image module.
 */

#include <jansson.h>

#include "base/compiler.h"
#include "image/fields.h"
#include "image/manifest.h"

#define STASIS_IMAGE_FORMAT_NAME "stasis-image"

/* A manifest's text begins so; the digits of its digest and `",` follow. */
#define STASIS_IMAGE_MANIFEST_BEGIN "{\n  \"digest\": \""
#define STASIS_IMAGE_DIGEST_DIGITS (STASIS_DIGEST_TEXT_BYTES - 1)

extern const struct stasis_image_field_table stasis_image_manifest_table;
extern const struct stasis_image_field_table stasis_image_gpu_table;
extern const struct stasis_image_field_table stasis_image_process_table;
extern const struct stasis_image_field_table stasis_image_extent_table;
extern const struct stasis_image_field_table stasis_image_option_table;
extern const struct stasis_image_field_table stasis_image_phase_table;
extern const struct stasis_image_field_table stasis_image_shared_table;

/* The manifest as JSON with an empty digest. */
NODISCARD int stasis_image_manifest_to_json(const struct stasis_image_manifest *manifest,
					    json_t **ret_json, struct stasis_error *err);

/* The rules that hold between fields; `manifest` is otherwise well formed. */
NODISCARD int stasis_image_manifest_check(const struct stasis_image_manifest *manifest,
					  struct stasis_error *err);

#endif
