/*
 * See image_fixture.h.
 */

#include "image_fixture.h"

#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/number.h"
#include "image/fields.h"
#include "image/manifest_fields.h"

/* Texts live as long as the test program; kept here, so that they do not count as leaked. */
static char *texts[4096];
static size_t text_count;

static char *text_keep(char *text)
{
	assert_non_null(text);
	assert_true(text_count < ARRAY_COUNT(texts));
	texts[text_count++] = text;
	return text;
}

const char *t_image_text(const char *text)
{
	return text_keep(strdup(text));
}

const char *t_image_folder(void)
{
	const char *parent = secure_getenv("TMPDIR");
	char *path = NULL;

	assert_true(asprintf(&path, "%s/image-XXXXXX", parent ? parent : "/tmp") > 0);
	assert_non_null(mkdtemp(path));
	return text_keep(path);
}

const char *t_image_path(const char *folder, const char *name)
{
	char *path = NULL;

	assert_true(asprintf(&path, "%s/%s", folder, name) > 0);
	return text_keep(path);
}

struct stasis_image_gpu t_image_gpu(uint8_t number)
{
	struct stasis_image_gpu gpu = {
		.name = "Test GPU",
		.pci_bus_id = "00000000:01:00.0",
		.ordinal = number,
		.capability_major = 9,
		.bytes = UINT64_C(8) << 30,
	};

	memset(gpu.uuid.bytes, 0x10 + number, sizeof(gpu.uuid.bytes));
	return gpu;
}

struct stasis_image_process t_image_process(pid_t pid)
{
	return (struct stasis_image_process){
		.pid = pid,
		.start_ticks = 4711,
		.executable = "/usr/bin/workload",
	};
}

struct stasis_image_extent_plan t_image_plan(uint8_t gpu_number)
{
	return (struct stasis_image_extent_plan){
		.process_index = 0,
		.gpu_uuid = t_image_gpu(gpu_number).uuid,
		.store = STASIS_IMAGE_STORE_CUSTOM,
		.logical_bytes = T_IMAGE_BYTES,
		.chunk_bytes = T_IMAGE_CHUNK_BYTES,
		.stripe_count = T_IMAGE_STRIPES,
	};
}

static void chunk_fill(uint8_t *at, uint64_t index)
{
	memset(at, 0, T_IMAGE_CHUNK_BYTES);
	if (index == 1)
		return;
	for (size_t i = 0; i < T_IMAGE_CHUNK_BYTES; i++)
		at[i] = (uint8_t)(i * 7 + index + 1);
}

/* Digest, flags and place of each chunk; writes its bytes where there are descriptors. */
static void chunks_make(const struct stasis_id *extent_id, struct stasis_chunk *chunks,
			const int *stripe_fds)
{
	uint64_t ends[T_IMAGE_STRIPES] = {0};
	uint8_t data[T_IMAGE_CHUNK_BYTES];

	for (uint64_t i = 0; i < T_IMAGE_CHUNKS; i++) {
		uint64_t bytes = stasis_chunk_bytes(T_IMAGE_BYTES, T_IMAGE_CHUNK_BYTES, i);
		uint64_t *end = &ends[i % T_IMAGE_STRIPES];
		struct stasis_chunk *chunk = &chunks[i];

		chunk_fill(data, i);
		chunk->digest = stasis_digest_chunk(extent_id, i, data, bytes);
		chunk->flags = stasis_bytes_are_zero(data, bytes) ? STASIS_CHUNK_ZERO : 0;
		if (chunk->flags)
			continue;
		chunk->stored_offset = *end;
		chunk->stored_bytes = bytes;
		if (stripe_fds)
			assert_int_equal(stasis_pwrite_all(stripe_fds[i % T_IMAGE_STRIPES], data,
							   bytes, *end, NULL),
					 0);
		*end += stasis_round_up(bytes, STASIS_STORED_ALIGNMENT);
	}
}

void t_image_fill(struct stasis_image_output *output)
{
	assert_int_equal(output->chunk_count, T_IMAGE_CHUNKS);
	chunks_make(&output->id, output->chunks, output->stripe_fds);
}

void t_image_sums_make(struct stasis_image_sums *ret_sums, const struct stasis_id *extent_id)
{
	*ret_sums = (struct stasis_image_sums){
		.extent_id = *extent_id,
		.logical_bytes = T_IMAGE_BYTES,
		.chunk_bytes = T_IMAGE_CHUNK_BYTES,
		.chunk_count = T_IMAGE_CHUNKS,
		.stripe_count = T_IMAGE_STRIPES,
		.chunks = calloc(T_IMAGE_CHUNKS, sizeof(struct stasis_chunk)),
	};
	assert_non_null(ret_sums->chunks);
	chunks_make(extent_id, ret_sums->chunks, NULL);
}

static void *list_new(size_t count, size_t item_bytes)
{
	void *list = calloc(count, item_bytes);

	assert_non_null(list);
	return list;
}

void t_image_manifest_make(struct stasis_image_manifest *ret_manifest)
{
	struct stasis_image_manifest m = {
		.tool_version = "0.1.0",
		.created = "2026-01-31T12:00:00Z",
		.kernel = "6.1.0",
		.driver_version = "580.1",
		.cuda_version = 13040,
		.gpus = list_new(2, sizeof(*m.gpus)),
		.gpu_count = 2,
		.processes = list_new(1, sizeof(*m.processes)),
		.process_count = 1,
		.extents = list_new(1, sizeof(*m.extents)),
		.extent_count = 1,
		.options = list_new(1, sizeof(*m.options)),
		.option_count = 1,
		.phases = list_new(1, sizeof(*m.phases)),
		.phase_count = 1,
	};

	m.gpus[0] = t_image_gpu(0);
	m.gpus[1] = t_image_gpu(1);
	m.processes[0] = t_image_process(1234);
	m.extents[0] = (struct stasis_image_extent){
		.id = {{1, 2, 3}},
		.logical_bytes = T_IMAGE_BYTES,
		.chunk_bytes = T_IMAGE_CHUNK_BYTES,
		.stripe_count = T_IMAGE_STRIPES,
		.stored_bytes = 3 * T_IMAGE_CHUNK_BYTES + STASIS_STORED_ALIGNMENT,
		.stripe_bytes = {2 * T_IMAGE_CHUNK_BYTES + STASIS_STORED_ALIGNMENT,
				 T_IMAGE_CHUNK_BYTES},
		.sums_bytes = stasis_image_sums_bytes(T_IMAGE_CHUNKS),
		.sums_digest = {{4, 5, 6}},
	};
	m.options[0] = (struct stasis_image_option){.name = "verify", .value = "before"};
	m.phases[0] = (struct stasis_image_phase){.name = "copy", .duration_ns = 7, .bytes = 8};
	*ret_manifest = m;
}

struct stasis_image_writer *t_image_filled(const char *path)
{
	static const struct stasis_image_origin origin = {
		.store = STASIS_IMAGE_STORE_CUSTOM,
		.tool_version = "0.1.0",
		.driver_version = "580.1",
		.cuda_version = 13040,
	};
	const struct stasis_image_process process = t_image_process(1234);
	const struct stasis_image_extent_plan plan = t_image_plan(0);
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_image_writer *writer = NULL;
	struct stasis_image_output *output = NULL;
	uint32_t index = 99;

	assert_done(stasis_image_writer_open(path, &origin, &writer, &err), &err);
	for (uint8_t number = 0; number < 2; number++) {
		const struct stasis_image_gpu gpu = t_image_gpu(number);

		assert_done(stasis_image_writer_gpu_add(writer, &gpu, &err), &err);
	}
	assert_done(stasis_image_writer_process_add(writer, &process, &index, &err), &err);
	assert_int_equal(index, 0);
	assert_done(stasis_image_writer_option_set(writer, "verify", "off", &err), &err);
	assert_done(stasis_image_writer_option_set(writer, "verify", "before", &err), &err);
	assert_done(stasis_image_writer_extent_add(writer, &plan, &output, &err), &err);
	t_image_fill(output);
	return writer;
}

struct stasis_image_writer *t_image_staged(const char *path)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_image_writer *writer = t_image_filled(path);

	assert_done(stasis_image_writer_seal(writer, &err), &err);
	assert_done(stasis_image_writer_stage(writer, &err), &err);
	return writer;
}

void t_image_publish(const char *path)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_image_writer *writer = t_image_staged(path);

	assert_done(stasis_image_writer_phase_add(writer, "copy", 7, 8, &err), &err);
	assert_done(stasis_image_writer_publish(writer, &err), &err);
	stasis_image_writer_close(writer);
}

bool t_manifest_sign(char *text, size_t bytes)
{
	struct stasis_digest digest;
	char digits[STASIS_DIGEST_TEXT_BYTES];
	size_t offset = 0;

	if (!stasis_image_manifest_digest(text, bytes, &offset, &digest))
		return false;
	memcpy(text + offset, stasis_digest_format(&digest, digits), STASIS_DIGEST_TEXT_BYTES - 1);
	return true;
}

char *t_manifest_text(json_t *root)
{
	CLEANUP(free) char *dump = json_dumps(root, JSON_INDENT(2));
	char *text = NULL;

	assert_non_null(dump);
	assert_true(asprintf(&text, "%s\n", dump) > 0);
	assert_true(t_manifest_sign(text, strlen(text)));
	return text;
}

json_t *t_manifest_load(const char *image_path)
{
	size_t bytes = 0;
	CLEANUP(free) char *text = t_file_load(image_path, "manifest.json", &bytes);
	json_t *root = json_loadb(text, bytes, 0, NULL);

	assert_non_null(root);
	return root;
}

void t_manifest_store(const char *image_path, json_t *root)
{
	CLEANUP(free) char *text = t_manifest_text(root);

	t_file_store(image_path, "manifest.json", text, strlen(text));
}

char *t_file_load(const char *image_path, const char *name, size_t *ret_bytes)
{
	CLEANUP(fd) int dir_fd = open(image_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stasis_error err = STASIS_ERROR_INIT;
	char *data = NULL;

	assert_true(dir_fd >= 0);
	assert_done(stasis_file_read(dir_fd, name, (size_t)1 << 30, STASIS_REFUSED, &data,
				     ret_bytes, &err),
		    &err);
	return data;
}

void t_file_store(const char *image_path, const char *name, const void *data, size_t bytes)
{
	CLEANUP(fd) int dir_fd = open(image_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(fd)
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(stasis_pwrite_all(fd, data, bytes, 0, NULL), 0);
}

void t_image_refused(const char *path, const char *text)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_image *image = NULL;

	if (stasis_image_open(path, NULL, &image, &err) == 0)
		fail_msg("the image was accepted; wanted: %s", text);
	if (err.status != STASIS_BAD_IMAGE || !strstr(err.text, text))
		fail_msg("status %d, '%s' does not hold '%s'", (int)err.status, err.text, text);
	assert_null(image);
}

void t_image_accepted(const char *path)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_image *image = NULL;

	assert_done(stasis_image_open(path, NULL, &image, &err), &err);
	stasis_image_close(image);
}

size_t t_folder_count(const char *folder, const char *prefix)
{
	CLEANUP(dir) DIR *dir = opendir(folder);
	size_t count = 0;

	assert_non_null(dir);
	for (struct dirent *entry = stasis_dir_next(dir); entry; entry = stasis_dir_next(dir))
		count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
	return count;
}
