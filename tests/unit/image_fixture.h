#ifndef STASIS_TESTS_IMAGE_FIXTURE_H
#define STASIS_TESTS_IMAGE_FIXTURE_H

/*
 * Small images for the tests of src/image: two GPUs, one process, one extent on the first GPU in two stripes,
 * with stored chunks, a chunk of zeros and a short last chunk; and means to change what is in them.
 *
 *     chunk   0 stored   1 zeros   2 stored   3 stored   4 stored, 100 bytes
 *     stripe  0          1         0          1          0
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "image/image.h"
#include "image/sums.h"

#define T_IMAGE_CHUNK_BYTES STASIS_CHUNK_BYTES_MIN
#define T_IMAGE_BYTES (4 * T_IMAGE_CHUNK_BYTES + 100)
#define T_IMAGE_CHUNKS 5
#define T_IMAGE_STRIPES 2

/* A copy of a text, a new folder for the test to work in, a path in it; freed by nobody. */
const char *t_image_text(const char *text);
const char *t_image_folder(void);
const char *t_image_path(const char *folder, const char *name);

struct stasis_image_gpu t_image_gpu(uint8_t number);
struct stasis_image_process t_image_process(pid_t pid);
struct stasis_image_extent_plan t_image_plan(uint8_t gpu_number);

/* A manifest in memory with the lists that t_image_publish makes; sizes fit, digests are invented. */
void t_image_manifest_make(struct stasis_image_manifest *ret_manifest);

/* Up to the extent, whose bytes have been written; then sealed and staged; then published and closed. */
struct stasis_image_writer *t_image_filled(const char *path);
struct stasis_image_writer *t_image_staged(const char *path);
void t_image_publish(const char *path);

/* Writes an extent as the transfer engine does. */
void t_image_fill(struct stasis_image_output *output);

/* Valid sums of the same extent, their digests those of t_image_fill. */
void t_image_sums_make(struct stasis_image_sums *ret_sums, const struct stasis_id *extent_id);

/* Puts the right digest into a manifest's text; false where it does not begin as one. */
bool t_manifest_sign(char *text, size_t bytes);

/* The text of `root` as a manifest, signed; the caller frees it. */
char *t_manifest_text(json_t *root);

/* A manifest file as JSON, and back, signed. */
json_t *t_manifest_load(const char *image_path);
void t_manifest_store(const char *image_path, json_t *root);

/* Whole files below an image. */
char *t_file_load(const char *image_path, const char *name, size_t *ret_bytes);
void t_file_store(const char *image_path, const char *name, const void *data, size_t bytes);

/* Opening the image is refused with STASIS_BAD_IMAGE and a text that holds `text`. */
void t_image_refused(const char *path, const char *text);
void t_image_accepted(const char *path);

/* Names in a folder that begin with `prefix`. */
size_t t_folder_count(const char *folder, const char *prefix);

#endif
