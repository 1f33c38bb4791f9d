/*
 * See chunk.h.
 */

#include "transfer/chunk.h"

#include <errno.h>
#include <stdio.h>
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

/* A file that ends too early is damage; anything else is the file's failure. */
static void fail_read(struct stasis_transfer_control *control,
		      const struct stasis_transfer_job *job, int code)
{
	if (code == ENODATA)
		fail_damage(control, job, "the file ends before it does");
	else
		fail_file(control, job, "read", job->chunk->stored_offset, code);
}

static struct stasis_digest content_place(const struct stasis_transfer_job *job,
					  struct stasis_digest content)
{
	return stasis_digest_placed(&job->extent_plan->extent->id, job->chunk_index, &content,
				    (size_t)job->bytes);
}

/*
 * Writes and digests step by step, so that the bytes come from memory once: a save is bound by how often they
 * do. Written first, since the processor's copy fetches bytes that a device has just put there faster than
 * the digest does, which then finds them in the cache. Returns 0 or an errno.
 */
static int chunk_write(struct stasis_transfer_control *control,
		       const struct stasis_transfer_job *job, uint8_t *buffer, uint64_t offset)
{
	const struct stasis_transfer_store_ops *ops = job->extent_plan->files.ops;
	size_t whole = (size_t)stasis_round_up(job->bytes, STASIS_STORED_ALIGNMENT);
	struct stasis_digest_stream stream;
	int code = 0;

	memset(buffer + job->bytes, 0, whole - (size_t)job->bytes);
	stasis_digest_begin(&stream);
	for (size_t at = 0; at < whole && !code; at += ops->step_bytes) {
		size_t step = (size_t)stasis_min_u64(ops->step_bytes, whole - at);

		code = ops->write(job->file, buffer + at, step, offset + at, &control->is_stopped);
		stasis_digest_update(&stream, buffer + at,
				     (size_t)stasis_min_u64(step, job->bytes - at));
	}
	if (!code)
		job->chunk->digest = content_place(job, stasis_digest_end(&stream));
	return code;
}

/* Writes what was packed of a job: `stored_bytes` in the packing's buffer. Returns 0 or an errno. */
static int packed_write(struct stasis_transfer_control *control,
			const struct stasis_transfer_job *job, const uint8_t *buffer,
			const struct stasis_transfer_packing *packing)
{
	struct stasis_chunk *chunk = job->chunk;
	size_t whole = (size_t)stasis_round_up(chunk->stored_bytes, STASIS_STORED_ALIGNMENT);

	chunk->flags = job->extent_plan->codec->flag;
	chunk->digest = content_place(job, stasis_digest_of(buffer, (size_t)job->bytes));
	return job->extent_plan->files.ops->write(job->file, packing->buffer, whole,
						  chunk->stored_offset, &control->is_stopped);
}

static int chunk_store(struct stasis_transfer_control *control,
		       const struct stasis_transfer_job *job, uint8_t *buffer,
		       struct stasis_transfer_packing *packing)
{
	const struct stasis_transfer_codec *codec = job->extent_plan->codec;
	struct stasis_chunk *chunk = job->chunk;
	size_t packed =
		codec ? stasis_transfer_pack(packing, codec, buffer, (size_t)job->bytes) : 0;
	int code;

	chunk->stored_bytes = packed ? packed : job->bytes;
	/* Hands out a place; what is written there is published when the worker leaves the control. */
	chunk->stored_offset = atomic_fetch_add_explicit(
		&job->file->cursor, stasis_round_up(chunk->stored_bytes, STASIS_STORED_ALIGNMENT),
		memory_order_relaxed);
	code = packed ? packed_write(control, job, buffer, packing)
		      : chunk_write(control, job, buffer, chunk->stored_offset);
	if (code) {
		fail_file(control, job, "write", chunk->stored_offset, code);
		return -1;
	}
	stasis_transfer_control_count(&control->stored_bytes, chunk->stored_bytes);
	return 0;
}

/* The digest that a job's bytes have if they are all zeros. `scratch` may be overwritten with zeros. */
static struct stasis_digest zero_digest(const struct stasis_transfer_job *job, uint8_t *scratch)
{
	const struct stasis_transfer_extent *extent = job->extent_plan->extent;

	if (job->bytes == extent->chunk_bytes)
		return content_place(job, job->extent_plan->zero_content);
	memset(scratch, 0, (size_t)job->bytes);
	return stasis_digest_chunk(&extent->id, job->chunk_index, scratch, (size_t)job->bytes);
}

int stasis_transfer_chunk_save(struct stasis_transfer_control *control,
			       const struct stasis_transfer_job *job, uint8_t *buffer,
			       struct stasis_transfer_packing *packing)
{
	struct stasis_chunk *chunk = job->chunk;

	*chunk = (struct stasis_chunk){.flags = 0};
	if (stasis_bytes_are_zero(buffer, (size_t)job->bytes)) {
		chunk->digest = zero_digest(job, buffer);
		chunk->flags = STASIS_CHUNK_ZERO;
		stasis_transfer_control_count(&control->zero_bytes, job->bytes);
	} else if (chunk_store(control, job, buffer, packing) != 0) {
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

/* Reads and digests step by step, as chunk_write does; without `verify` the digest is left empty. */
static int chunk_read(const struct stasis_transfer_job *job, uint8_t *buffer, bool verify,
		      const atomic_bool *stop, struct stasis_digest *ret_digest)
{
	const struct stasis_transfer_store_ops *ops = job->extent_plan->files.ops;
	size_t bytes = (size_t)job->chunk->stored_bytes;
	struct stasis_digest_stream stream;
	int code = 0;

	stasis_digest_begin(&stream);
	for (size_t at = 0; at < bytes && !code; at += ops->step_bytes) {
		size_t step = (size_t)stasis_min_u64(ops->step_bytes, bytes - at);

		code = ops->read(job->file, buffer + at, step, job->chunk->stored_offset + at,
				 stop);
		if (!code && verify)
			stasis_digest_update(&stream, buffer + at, step);
	}
	if (!code && verify)
		*ret_digest = content_place(job, stasis_digest_end(&stream));
	return code;
}

/* Reads what was packed of a job and unpacks it; -1: failed, as the control was told. */
static int packed_read(struct stasis_transfer_control *control,
		       const struct stasis_transfer_job *job, uint8_t *buffer,
		       struct stasis_transfer_packing *packing, const atomic_bool *stop)
{
	const struct stasis_chunk *chunk = job->chunk;
	const char *name = NULL;
	char fault[96];
	int code = job->extent_plan->files.ops->read(job->file, packing->buffer,
						     (size_t)chunk->stored_bytes,
						     chunk->stored_offset, stop);

	if (code) {
		fail_read(control, job, code);
		return -1;
	}
	if (stasis_transfer_unpack(packing, chunk, buffer, (size_t)job->bytes, &name))
		return 0;
	(void)snprintf(fault, sizeof(fault), "its %llu bytes of %s do not unpack to its %llu bytes",
		       (unsigned long long)chunk->stored_bytes, name,
		       (unsigned long long)job->bytes);
	fail_damage(control, job, fault);
	return -1;
}

static int digest_check(struct stasis_transfer_control *control,
			const struct stasis_transfer_job *job, const struct stasis_digest *digest)
{
	if (stasis_digest_equal(digest, &job->chunk->digest))
		return 0;
	fail_damage(control, job, "its bytes are not those that were saved");
	return -1;
}

int stasis_transfer_chunk_load(struct stasis_transfer_control *control,
			       const struct stasis_transfer_job *job, uint8_t *buffer,
			       struct stasis_transfer_packing *packing, bool verify,
			       const atomic_bool *stop)
{
	const struct stasis_chunk *chunk = job->chunk;
	struct stasis_digest digest = {{0}};
	int code;

	if (chunk->flags & STASIS_CHUNK_ZERO)
		return zeros_load(control, job, buffer, verify);
	if (stasis_chunk_is_packed(chunk)) {
		if (packed_read(control, job, buffer, packing, stop) != 0)
			return -1;
		if (verify)
			digest = content_place(job, stasis_digest_of(buffer, (size_t)job->bytes));
	} else {
		code = chunk_read(job, buffer, verify, stop, &digest);
		if (code) {
			fail_read(control, job, code);
			return -1;
		}
	}
	stasis_transfer_control_count(&control->stored_bytes, chunk->stored_bytes);
	return verify ? digest_check(control, job, &digest) : 0;
}
