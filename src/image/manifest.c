/*
 * See manifest.h: names, sizes, the table of fields, and the rules that hold between fields.
 */

#include "image/manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "image/manifest_fields.h"
#include "image/sums.h"

#define TEXT_MAX (STASIS_IMAGE_TEXT_BYTES - 1)
#define JSON_MAX ((uint64_t)INT64_MAX)
#define AT(type, member) offsetof(struct stasis_image_##type, member)
#define TABLE(array)                                                                               \
	{                                                                                          \
		array, ARRAY_COUNT(array)                                                          \
	}

static const char *const store_names[] = {
	[STASIS_IMAGE_STORE_CUSTOM] = "custom",
	[STASIS_IMAGE_STORE_NATIVE] = "native",
	[STASIS_IMAGE_STORE_SHARED] = "shared",
	[STASIS_IMAGE_STORE_HOST] = "host",
};

/* Fields of names are read and written through that type. */
_Static_assert(sizeof(enum stasis_image_store) == sizeof(uint32_t), "a store is 32 bits");

/* clang-format off */
static const struct stasis_image_field manifest_fields[] = {
	{"digest",              STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"format",              STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"format_version",      STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"capture_id",          STASIS_IMAGE_FIELD_ID, AT(manifest, capture_id), 0, 0, NULL},
	{"store",               STASIS_IMAGE_FIELD_NAME, AT(manifest, store), STASIS_IMAGE_STORE_CUSTOM, STASIS_IMAGE_STORE_NATIVE, store_names},
	{"tool_version",        STASIS_IMAGE_FIELD_TEXT, AT(manifest, tool_version), 1, TEXT_MAX, NULL},
	{"interposer_build_id", STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"created",             STASIS_IMAGE_FIELD_TEXT, AT(manifest, created), 20, 20, NULL},
	{"kernel",              STASIS_IMAGE_FIELD_TEXT, AT(manifest, kernel), 1, TEXT_MAX, NULL},
	{"driver_version",      STASIS_IMAGE_FIELD_TEXT_OR_NULL, AT(manifest, driver_version), 1, TEXT_MAX, NULL},
	{"cuda_version",        STASIS_IMAGE_FIELD_U32, AT(manifest, cuda_version), 0, INT32_MAX, NULL},
	{"gpus",                STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"processes",           STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"extents",             STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"options",             STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"phases",              STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"shared",              STASIS_IMAGE_FIELD_OPTIONAL, 0, 0, 0, NULL},
};

static const struct stasis_image_field gpu_fields[] = {
	{"uuid",             STASIS_IMAGE_FIELD_UUID, AT(gpu, uuid), 0, 0, NULL},
	{"name",             STASIS_IMAGE_FIELD_TEXT, AT(gpu, name), 1, TEXT_MAX, NULL},
	{"pci_bus_id",       STASIS_IMAGE_FIELD_TEXT_OR_NULL, AT(gpu, pci_bus_id), 1, TEXT_MAX, NULL},
	{"ordinal",          STASIS_IMAGE_FIELD_U32, AT(gpu, ordinal), 0, INT32_MAX, NULL},
	{"capability_major", STASIS_IMAGE_FIELD_U32, AT(gpu, capability_major), 0, INT32_MAX, NULL},
	{"capability_minor", STASIS_IMAGE_FIELD_U32, AT(gpu, capability_minor), 0, INT32_MAX, NULL},
	{"bytes",            STASIS_IMAGE_FIELD_U64, AT(gpu, bytes), 1, STASIS_IMAGE_BYTES_MAX, NULL},
};

static const struct stasis_image_field process_fields[] = {
	{"pid",          STASIS_IMAGE_FIELD_S32, AT(process, pid), 1, INT32_MAX, NULL},
	{"start_ticks",  STASIS_IMAGE_FIELD_U64, AT(process, start_ticks), 0, JSON_MAX, NULL},
	{"executable",   STASIS_IMAGE_FIELD_TEXT, AT(process, executable), 1, STASIS_IMAGE_PATH_BYTES - 1, NULL},
	{"participant",  STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"extent_count", STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
};

static const struct stasis_image_field extent_fields[] = {
	{"id",               STASIS_IMAGE_FIELD_ID, AT(extent, id), 0, 0, NULL},
	{"name",             STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"process",          STASIS_IMAGE_FIELD_U32, AT(extent, process_index), 0, STASIS_IMAGE_PROCESSES_MAX - 1, NULL},
	{"gpu",              STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"store",            STASIS_IMAGE_FIELD_NAME, AT(extent, store), STASIS_IMAGE_STORE_CUSTOM, STASIS_IMAGE_STORE_HOST, store_names},
	{"logical_bytes",    STASIS_IMAGE_FIELD_U64, AT(extent, logical_bytes), 1, STASIS_IMAGE_BYTES_MAX, NULL},
	{"stored_bytes",     STASIS_IMAGE_FIELD_U64, AT(extent, stored_bytes), 0, STASIS_IMAGE_BYTES_MAX, NULL},
	{"chunk_bytes",      STASIS_IMAGE_FIELD_U64, AT(extent, chunk_bytes), STASIS_CHUNK_BYTES_MIN, STASIS_CHUNK_BYTES_MAX, NULL},
	{"stripe_count",     STASIS_IMAGE_FIELD_U32, AT(extent, stripe_count), 1, STASIS_STRIPES_MAX, NULL},
	{"stripe_bytes",     STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"digest_algorithm", STASIS_IMAGE_FIELD_OTHER, 0, 0, 0, NULL},
	{"sums_bytes",       STASIS_IMAGE_FIELD_U64, AT(extent, sums_bytes), 0, JSON_MAX, NULL},
	{"sums_digest",      STASIS_IMAGE_FIELD_DIGEST, AT(extent, sums_digest), 0, 0, NULL},
};

static const struct stasis_image_field option_fields[] = {
	{"name",  STASIS_IMAGE_FIELD_TEXT, AT(option, name), 1, TEXT_MAX, NULL},
	{"value", STASIS_IMAGE_FIELD_TEXT, AT(option, value), 0, TEXT_MAX, NULL},
};

static const struct stasis_image_field phase_fields[] = {
	{"name",        STASIS_IMAGE_FIELD_TEXT, AT(phase, name), 1, TEXT_MAX, NULL},
	{"duration_ns", STASIS_IMAGE_FIELD_U64, AT(phase, duration_ns), 0, JSON_MAX, NULL},
	{"bytes",       STASIS_IMAGE_FIELD_U64, AT(phase, bytes), 0, JSON_MAX, NULL},
};

static const struct stasis_image_field shared_fields[] = {
	{"bytes",  STASIS_IMAGE_FIELD_U64, AT(shared_file, bytes), 1, STASIS_IMAGE_SHARED_BYTES_MAX, NULL},
	{"digest", STASIS_IMAGE_FIELD_DIGEST, AT(shared_file, digest), 0, 0, NULL},
};
/* clang-format on */

const struct stasis_image_field_table stasis_image_manifest_table = TABLE(manifest_fields);
const struct stasis_image_field_table stasis_image_gpu_table = TABLE(gpu_fields);
const struct stasis_image_field_table stasis_image_process_table = TABLE(process_fields);
const struct stasis_image_field_table stasis_image_extent_table = TABLE(extent_fields);
const struct stasis_image_field_table stasis_image_option_table = TABLE(option_fields);
const struct stasis_image_field_table stasis_image_phase_table = TABLE(phase_fields);
const struct stasis_image_field_table stasis_image_shared_table = TABLE(shared_fields);

void stasis_image_manifest_fini(struct stasis_image_manifest *manifest)
{
	free(manifest->gpus);
	free(manifest->processes);
	free(manifest->extents);
	free(manifest->options);
	free(manifest->phases);
	*manifest = (struct stasis_image_manifest){0};
}

const char *stasis_image_store_name(enum stasis_image_store store)
{
	return store_names[store];
}

const char *stasis_image_extent_stem(const struct stasis_image_extent *extent,
				     char text[STASIS_IMAGE_STEM_BYTES])
{
	(void)snprintf(text, STASIS_IMAGE_STEM_BYTES, "P%u-D%u-%s", extent->process_index,
		       extent->gpu_index, stasis_image_store_name(extent->store));
	return text;
}

bool stasis_image_gpu_find(const struct stasis_image_manifest *manifest,
			   const struct stasis_id *uuid, uint32_t *ret_index)
{
	for (size_t i = 0; i < manifest->gpu_count; i++) {
		if (stasis_id_equal(&manifest->gpus[i].uuid, uuid)) {
			*ret_index = (uint32_t)i;
			return true;
		}
	}
	return false;
}

static int gpus_check(const struct stasis_image_manifest *manifest, struct stasis_error *err)
{
	for (size_t i = 0; i < manifest->gpu_count; i++) {
		char text[STASIS_UUID_TEXT_BYTES];
		uint32_t first = 0;

		if (stasis_image_gpu_find(manifest, &manifest->gpus[i].uuid, &first) && first != i)
			return stasis_fail(err, STASIS_BAD_IMAGE,
					   "manifest.json: gpus[%u] and gpus[%zu] are both %s",
					   first, i,
					   stasis_uuid_format(&manifest->gpus[i].uuid, text));
	}
	return 0;
}

static int processes_check(const struct stasis_image_manifest *manifest, struct stasis_error *err)
{
	for (size_t i = 0; i < manifest->process_count; i++) {
		for (size_t k = 0; k < i; k++) {
			if (manifest->processes[i].pid == manifest->processes[k].pid)
				return stasis_fail(
					err, STASIS_BAD_IMAGE,
					"manifest.json: processes[%zu] and processes[%zu] "
					"have the same pid %d",
					k, i, manifest->processes[i].pid);
		}
	}
	return 0;
}

static int options_check(const struct stasis_image_manifest *manifest, struct stasis_error *err)
{
	for (size_t i = 0; i < manifest->option_count; i++) {
		for (size_t k = 0; k < i; k++) {
			if (strcmp(manifest->options[i].name, manifest->options[k].name) == 0)
				return stasis_fail(err, STASIS_BAD_IMAGE,
						   "manifest.json: two options are named '%s'",
						   manifest->options[i].name);
		}
	}
	return 0;
}

/* Whether the sizes of one extent agree with each other. */
static int extent_sizes_check(const struct stasis_image_extent *extent, size_t index,
			      struct stasis_error *err)
{
	uint64_t stored = 0;

	if (extent->chunk_bytes % STASIS_STORED_ALIGNMENT != 0)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "manifest.json: extents[%zu]: chunks of %llu bytes are not a "
				   "multiple of %d",
				   index, (unsigned long long)extent->chunk_bytes,
				   STASIS_STORED_ALIGNMENT);
	if (stasis_chunk_count(extent->logical_bytes, extent->chunk_bytes) >
	    STASIS_IMAGE_CHUNKS_MAX)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "manifest.json: extents[%zu]: more than %llu chunks", index,
				   (unsigned long long)STASIS_IMAGE_CHUNKS_MAX);
	/* At most 16 stripes of at most 2^50 bytes: the sum fits. */
	for (uint32_t s = 0; s < extent->stripe_count; s++) {
		stored += extent->stripe_bytes[s];
		if (extent->stripe_bytes[s] % STASIS_STORED_ALIGNMENT != 0)
			return stasis_fail(
				err, STASIS_BAD_IMAGE,
				"manifest.json: extents[%zu]: stripe %u of %llu bytes is "
				"not a multiple of %d",
				index, s, (unsigned long long)extent->stripe_bytes[s],
				STASIS_STORED_ALIGNMENT);
	}
	if (stored != extent->stored_bytes)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "manifest.json: extents[%zu]: stored_bytes is %llu, but its "
				   "stripes have %llu bytes",
				   index, (unsigned long long)extent->stored_bytes,
				   (unsigned long long)stored);
	if (extent->sums_bytes !=
	    stasis_image_sums_bytes(stasis_chunk_count(extent->logical_bytes, extent->chunk_bytes)))
		return stasis_fail(
			err, STASIS_BAD_IMAGE,
			"manifest.json: extents[%zu]: sums_bytes is %llu, which does not "
			"fit the number of chunks",
			index, (unsigned long long)extent->sums_bytes);
	return 0;
}

static int extent_pair_check(const struct stasis_image_manifest *manifest, size_t first,
			     size_t second, struct stasis_error *err)
{
	const struct stasis_image_extent *a = &manifest->extents[first];
	const struct stasis_image_extent *b = &manifest->extents[second];
	char text[STASIS_UUID_TEXT_BYTES];

	if (a->process_index == b->process_index && a->gpu_index == b->gpu_index &&
	    a->store == b->store)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "manifest.json: two extents of process %u for GPU %s and store "
				   "'%s'",
				   a->process_index,
				   stasis_uuid_format(&manifest->gpus[a->gpu_index].uuid, text),
				   stasis_image_store_name(a->store));
	if (stasis_id_equal(&a->id, &b->id))
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "manifest.json: extents[%zu] and extents[%zu] have the same id",
				   first, second);
	return 0;
}

/* Whether an extent of this store may be in the image. */
static int extent_store_check(const struct stasis_image_manifest *manifest, size_t index,
			      struct stasis_error *err)
{
	enum stasis_image_store store = manifest->extents[index].store;

	if (store == STASIS_IMAGE_STORE_NATIVE)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "manifest.json: extents[%zu]: field 'store' must be 'custom', "
				   "'shared' or 'host'",
				   index);
	if (store == STASIS_IMAGE_STORE_CUSTOM && manifest->store != STASIS_IMAGE_STORE_CUSTOM)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "manifest.json: extents[%zu]: the store of the image is '%s', "
				   "which has no extents of private memory",
				   index, stasis_image_store_name(manifest->store));
	if (store != STASIS_IMAGE_STORE_CUSTOM && manifest->shared.bytes == 0)
		return stasis_fail(err, STASIS_BAD_IMAGE,
				   "manifest.json: extents[%zu]: its store is '%s', but field "
				   "'shared' is missing: nothing says what the bytes belong to",
				   index, stasis_image_store_name(store));
	return 0;
}

int stasis_image_manifest_check(const struct stasis_image_manifest *manifest,
				struct stasis_error *err)
{
	if (gpus_check(manifest, err) != 0 || processes_check(manifest, err) != 0 ||
	    options_check(manifest, err) != 0)
		return -1;
	for (size_t i = 0; i < manifest->extent_count; i++) {
		if (extent_store_check(manifest, i, err) != 0 ||
		    extent_sizes_check(&manifest->extents[i], i, err) != 0)
			return -1;
		for (size_t k = 0; k < i; k++) {
			if (extent_pair_check(manifest, k, i, err) != 0)
				return -1;
		}
	}
	return 0;
}
