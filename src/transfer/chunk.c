/*
 * See chunk.h.
 */

#include "transfer/chunk.h"

#include <errno.h>
#include <string.h>

#include "base/number.h"

static void fail_file(struct stasis_transfer_control *control,
		      const struct stasis_transfer_job *job, const char *verb, uint64_t offset,
		      int code)
{
	struct stasis_transfer_failure failure = {.side = STASIS_TRANSFER_FILE_SIDE};
	struct stasis_error error = STASIS_ERROR_INIT;

	/* Stopped: whoever stopped the transfer has said why. */
	if (code == ECANCELED)
		return;
	(void)stasis_fail_code(&error, STASIS_REFUSED, code, "%s '%s': chunk %llu at offset %llu",
			       verb, job->file->name, (unsigned long long)job->chunk_index,
			       (unsigned long long)offset);
	if (code == ENOSPC)
		stasis_error_append(&error, "; free space there or choose another directory");
	stasis_transfer_control_fail(control, job->order, &failure, &error);
}

static void fail_damage(struct stasis_transfer_control *control,
			const struct stasis_transfer_job *job, const char *fault)
{
	struct stasis_transfer_failure failure = stasis_transfer_damage_at(job);
	struct stasis_error error = STASIS_ERROR_INIT;

	stasis_transfer_damage_say(job, fault, &error);
	stasis_transfer_control_fail(control, job->order, &failure, &error);
}

static int chunk_store(struct stasis_transfer_control *control,
		       const struct stasis_transfer_job *job, uint8_t *buffer)
{
	const struct stasis_transfer_file_set *files = &job->extent_plan->files;
	uint64_t whole = stasis_round_up(job->bytes, STASIS_STORED_ALIGNMENT);
	/* Hands out a place; what is written there is published when the worker leaves the control. */
	uint64_t offset =
		atomic_fetch_add_explicit(&job->file->cursor, whole, memory_order_relaxed);
	int code;

	memset(buffer + job->bytes, 0, (size_t)(whole - job->bytes));
	code = files->ops->write(job->file, buffer, (size_t)whole, offset, &control->is_stopped);
	if (code) {
		fail_file(control, job, "write", offset, code);
		return -1;
	}
	job->chunk->stored_offset = offset;
	job->chunk->stored_bytes = job->bytes;
	stasis_transfer_control_count(&control->stored_bytes, job->bytes);
	return 0;
}

/* The digest that a job's bytes have if they are all zeros. `scratch` may be overwritten with zeros. */
static struct stasis_digest zero_digest(const struct stasis_transfer_job *job, uint8_t *scratch)
{
	const struct stasis_transfer_extent *extent = job->extent_plan->extent;

	if (job->bytes == extent->chunk_bytes)
		return stasis_digest_placed(&extent->id, job->chunk_index,
					    &job->extent_plan->zero_content, (size_t)job->bytes);
	memset(scratch, 0, (size_t)job->bytes);
	return stasis_digest_chunk(&extent->id, job->chunk_index, scratch, (size_t)job->bytes);
}

int stasis_transfer_chunk_save(struct stasis_transfer_control *control,
			       const struct stasis_transfer_job *job, uint8_t *buffer)
{
	struct stasis_chunk *chunk = job->chunk;

	*chunk = (struct stasis_chunk){.flags = 0};
	if (stasis_bytes_are_zero(buffer, (size_t)job->bytes)) {
		chunk->digest = zero_digest(job, buffer);
		chunk->flags = STASIS_CHUNK_ZERO;
		stasis_transfer_control_count(&control->zero_bytes, job->bytes);
	} else {
		chunk->digest = stasis_digest_chunk(&job->extent_plan->extent->id, job->chunk_index,
						    buffer, (size_t)job->bytes);
		if (chunk_store(control, job, buffer) != 0)
			return -1;
	}
	stasis_transfer_control_count(&control->done_bytes, job->bytes);
	return 0;
}

static int zeros_load(struct stasis_transfer_control *control,
		      const struct stasis_transfer_job *job, uint8_t *buffer, bool verify)
{
	struct stasis_digest digest;

	if (verify) {
		digest = zero_digest(job, buffer);
		if (!stasis_digest_equal(&digest, &job->chunk->digest)) {
			fail_damage(control, job,
				    "it is recorded as zeros, but its digest is another");
			return -1;
		}
	}
	stasis_transfer_control_count(&control->zero_bytes, job->bytes);
	return 0;
}

int stasis_transfer_chunk_load(struct stasis_transfer_control *control,
			       const struct stasis_transfer_job *job, uint8_t *buffer, bool verify,
			       const atomic_bool *stop)
{
	const struct stasis_chunk *chunk = job->chunk;
	struct stasis_digest digest;
	int code;

	if (chunk->flags & STASIS_CHUNK_ZERO)
		return zeros_load(control, job, buffer, verify);
	code = job->extent_plan->files.ops->read(job->file, buffer, (size_t)chunk->stored_bytes,
						 chunk->stored_offset, stop);
	if (code == ENODATA) {
		fail_damage(control, job, "the file ends before it does");
		return -1;
	}
	if (code) {
		fail_file(control, job, "read", chunk->stored_offset, code);
		return -1;
	}
	stasis_transfer_control_count(&control->stored_bytes, chunk->stored_bytes);
	if (!verify)
		return 0;
	digest = stasis_digest_chunk(&job->extent_plan->extent->id, job->chunk_index, buffer,
				     (size_t)job->bytes);
	if (!stasis_digest_equal(&digest, &chunk->digest)) {
		fail_damage(control, job, "its bytes are not those that were saved");
		return -1;
	}
	return 0;
}
