/*
 * Makes the image of a group that shares memory, without a driver: many processes on one GPU, each with private bytes
 * and bytes of shared memory, host memory of the first, and a file shared.json.
 *
 * usage: shared_image PATH PROCESSES
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "image/image.h"

#define EXTENT_BYTES 100

static const char text[] =
	"{\"format\": \"stasis-shared\", \"version\": 1, \"members\": [], \"places\": []}\n";

static int extent_add(struct stasis_image_writer *writer, uint32_t process_index,
		      enum stasis_image_store store, struct stasis_error *err)
{
	const struct stasis_image_extent_plan plan = {
		.process_index = process_index,
		.gpu_uuid = {{1, 2, 3}},
		.store = store,
		.logical_bytes = EXTENT_BYTES,
		.chunk_bytes = STASIS_CHUNK_BYTES_MIN,
		.stripe_count = 1,
	};
	struct stasis_image_output *output = NULL;
	uint8_t data[EXTENT_BYTES];
	int code;

	if (stasis_image_writer_extent_add(writer, &plan, &output, err) != 0)
		return -1;
	memset(data, (int)(process_index % 100) + 1, sizeof(data));
	output->chunks[0].digest = stasis_digest_chunk(&output->id, 0, data, sizeof(data));
	output->chunks[0].stored_bytes = sizeof(data);
	code = stasis_pwrite_all(output->stripe_fds[0], data, sizeof(data), 0, NULL);
	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "write an extent");
	return 0;
}

static int process_add(struct stasis_image_writer *writer, uint32_t number,
		       struct stasis_error *err)
{
	const struct stasis_image_process process = {
		.pid = (int32_t)(1000 + number),
		.executable = "/usr/bin/workload",
		.has_participant = true,
		.participant = {{7, (uint8_t)number}},
	};
	uint32_t index = 0;

	if (stasis_image_writer_process_add(writer, &process, &index, err) != 0 ||
	    extent_add(writer, index, STASIS_IMAGE_STORE_CUSTOM, err) != 0)
		return -1;
	return extent_add(writer, index, STASIS_IMAGE_STORE_SHARED, err);
}

static int image_make(const char *path, uint32_t process_count, struct stasis_error *err)
{
	static const struct stasis_image_origin origin = {
		.store = STASIS_IMAGE_STORE_CUSTOM,
		.tool_version = "0.1.0",
	};
	static const struct stasis_image_gpu gpu = {
		.uuid = {{1, 2, 3}},
		.name = "Test GPU",
		.bytes = UINT64_C(1) << 30,
	};
	CLEANUP(image_writer) struct stasis_image_writer *writer = NULL;

	if (stasis_image_writer_open(path, &origin, &writer, err) != 0 ||
	    stasis_image_writer_gpu_add(writer, &gpu, err) != 0)
		return -1;
	for (uint32_t i = 0; i < process_count; i++) {
		if (process_add(writer, i, err) != 0)
			return -1;
	}
	if (extent_add(writer, 0, STASIS_IMAGE_STORE_HOST, err) != 0 ||
	    stasis_image_writer_shared_set(writer, text, sizeof(text) - 1, err) != 0 ||
	    stasis_image_writer_seal(writer, err) != 0 ||
	    stasis_image_writer_stage(writer, err) != 0)
		return -1;
	return stasis_image_writer_publish(writer, err);
}

int main(int argc, char **argv)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	if (argc != 3)
		return 2;
	if (image_make(argv[1], (uint32_t)strtoul(argv[2], NULL, 10), &err) != 0) {
		(void)fprintf(stderr, "shared_image: %s\n", err.text);
		return 1;
	}
	return 0;
}
