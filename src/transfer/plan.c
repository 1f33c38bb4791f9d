/*
 * See plan.h.
 */

#include "transfer/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/number.h"

static int extent_check(const struct stasis_transfer_extent *extent, struct stasis_error *err)
{
	const char *name = extent->name;

	if (extent->chunk_bytes < STASIS_CHUNK_BYTES_MIN ||
	    extent->chunk_bytes > STASIS_CHUNK_BYTES_MAX ||
	    extent->chunk_bytes % STASIS_STORED_ALIGNMENT != 0)
		return stasis_fail(err, STASIS_REFUSED,
				   "extent '%s': chunks of %llu bytes are not allowed", name,
				   (unsigned long long)extent->chunk_bytes);
	if (extent->stripe_count == 0 || extent->stripe_count > STASIS_STRIPES_MAX)
		return stasis_fail(err, STASIS_REFUSED,
				   "extent '%s': %u stripes are not between 1 and %d", name,
				   extent->stripe_count, STASIS_STRIPES_MAX);
	if (extent->memory && extent->stripe_count != 1)
		return stasis_fail(err, STASIS_REFUSED,
				   "extent '%s': host memory is one stripe, not %u", name,
				   extent->stripe_count);
	if (extent->bytes > 0 && !extent->chunks)
		return stasis_fail(err, STASIS_REFUSED, "extent '%s': it has no chunk table", name);
	return 0;
}

static int segment_check(const struct stasis_transfer_plan *plan,
			 const struct stasis_transfer_segment *segment, struct stasis_error *err)
{
	uint64_t end;

	if (segment->extent_index >= plan->extent_count)
		return stasis_fail(err, STASIS_REFUSED,
				   "a segment names extent %zu, but the plan has %zu",
				   segment->extent_index, plan->extent_count);
	if (segment->bytes > 0 && (segment->device_pointer == 0 || !segment->context ||
				   !stasis_add_u64(segment->device_pointer, segment->bytes, &end)))
		return stasis_fail(
			err, STASIS_REFUSED,
			"extent '%s': a segment of %llu bytes has no valid device address",
			plan->extents[segment->extent_index].name,
			(unsigned long long)segment->bytes);
	return 0;
}

static size_t device_find_or_add(struct stasis_transfer_ready_plan *ready,
				 const struct stasis_transfer_segment *segment)
{
	for (size_t i = 0; i < ready->device_count; i++) {
		if (ready->devices[i].context == segment->context)
			return i;
	}
	ready->devices[ready->device_count] = (struct stasis_transfer_device_plan){
		.context = segment->context,
		.ordinal = segment->device_ordinal,
	};
	return ready->device_count++;
}

/* Hangs the segments of one extent behind each other. */
static int extent_gather(struct stasis_transfer_ready_plan *ready,
			 const struct stasis_transfer_plan *plan,
			 struct stasis_transfer_extent_plan *extent_plan, const size_t *order,
			 struct stasis_error *err)
{
	struct stasis_transfer_piece *pieces = ready->pieces + extent_plan->first_segment;
	const struct stasis_transfer_extent *extent = extent_plan->extent;
	uint64_t covered = 0;

	for (size_t i = 0; i < extent_plan->segment_count; i++) {
		const struct stasis_transfer_segment *segment =
			&plan->segments[order[extent_plan->first_segment + i]];
		size_t device_index = device_find_or_add(ready, segment);

		if (i > 0 && device_index != extent_plan->device_index)
			return stasis_fail(err, STASIS_REFUSED,
					   "extent '%s': its segments are of several devices",
					   extent->name);
		extent_plan->device_index = device_index;
		pieces[i] = (struct stasis_transfer_piece){
			.device_pointer = segment->device_pointer,
			.bytes = segment->bytes,
			.extent_offset = covered,
		};
		if (!stasis_add_u64(covered, segment->bytes, &covered))
			return stasis_fail(err, STASIS_REFUSED,
					   "extent '%s': its segments are larger than 2^64 bytes",
					   extent->name);
	}
	if (covered != extent->bytes)
		return stasis_fail(
			err, STASIS_REFUSED,
			"extent '%s': its segments cover %llu bytes, but it is %llu bytes long",
			extent->name, (unsigned long long)covered,
			(unsigned long long)extent->bytes);
	return 0;
}

/*
 * A counting sort: order[] gets the indices of all segments that are not empty, extent by extent, each
 * extent's in the order of the plan.
 */
static int segments_sort(struct stasis_transfer_ready_plan *ready,
			 const struct stasis_transfer_plan *plan, size_t *order,
			 struct stasis_error *err)
{
	size_t first = 0;

	for (size_t i = 0; i < plan->segment_count; i++) {
		const struct stasis_transfer_segment *segment = &plan->segments[i];

		if (segment_check(plan, segment, err) != 0)
			return -1;
		if (segment->bytes > 0)
			ready->extents[segment->extent_index].segment_count++;
	}
	for (size_t i = 0; i < ready->extent_count; i++) {
		ready->extents[i].first_segment = first;
		first += ready->extents[i].segment_count;
		ready->extents[i].segment_count = 0;
	}
	ready->piece_count = first;
	for (size_t i = 0; i < plan->segment_count; i++) {
		struct stasis_transfer_extent_plan *extent_plan;

		if (plan->segments[i].bytes == 0)
			continue;
		extent_plan = &ready->extents[plan->segments[i].extent_index];
		order[extent_plan->first_segment + extent_plan->segment_count++] = i;
	}
	return 0;
}

static int digest_of_zeros(uint64_t bytes, struct stasis_digest *ret_digest,
			   struct stasis_error *err)
{
	/* calloc of this size is fresh memory that all reads as one shared page of zeros. */
	CLEANUP(free) void *zeros = calloc(1, (size_t)bytes);

	if (!zeros)
		return stasis_fail_errno(err, STASIS_REFUSED, "make a plan");
	*ret_digest = stasis_digest_of(zeros, (size_t)bytes);
	return 0;
}

static int extents_init(struct stasis_transfer_ready_plan *ready,
			const struct stasis_transfer_extent *extents, size_t extent_count,
			struct stasis_error *err)
{
	ready->extents = calloc(extent_count + 1, sizeof(*ready->extents));
	ready->devices = calloc(extent_count + 1, sizeof(*ready->devices));
	ready->device_extents = calloc(extent_count + 1, sizeof(*ready->device_extents));
	if (!ready->extents || !ready->devices || !ready->device_extents)
		return stasis_fail_errno(err, STASIS_REFUSED, "make a plan");
	ready->extent_count = extent_count;
	for (size_t i = 0; i < extent_count; i++) {
		const struct stasis_transfer_extent *extent = &extents[i];
		struct stasis_transfer_extent_plan *extent_plan = &ready->extents[i];

		if (extent_check(extent, err) != 0)
			return -1;
		extent_plan->extent = extent;
		extent_plan->index = i;
		extent_plan->chunk_count = stasis_chunk_count(extent->bytes, extent->chunk_bytes);
		if (!stasis_add_u64(ready->total_bytes, extent->bytes, &ready->total_bytes))
			return stasis_fail(err, STASIS_REFUSED,
					   "the plan is larger than 2^64 bytes");
		if (i > 0 && extents[i - 1].chunk_bytes == extent->chunk_bytes)
			extent_plan->zero_content = ready->extents[i - 1].zero_content;
		else if (digest_of_zeros(extent->chunk_bytes, &extent_plan->zero_content, err) != 0)
			return -1;
	}
	return 0;
}

/* Numbers the chunks of each device, extent after extent. */
static void jobs_number(struct stasis_transfer_ready_plan *ready)
{
	size_t used = 0;

	for (size_t d = 0; d < ready->device_count; d++) {
		struct stasis_transfer_device_plan *device = &ready->devices[d];

		device->extents = ready->device_extents + used;
		for (size_t i = 0; i < ready->extent_count; i++) {
			struct stasis_transfer_extent_plan *extent_plan = &ready->extents[i];

			if (extent_plan->chunk_count == 0 || extent_plan->device_index != d)
				continue;
			device->extents[device->extent_count++] = i;
			extent_plan->first_job = device->job_count;
			device->job_count += extent_plan->chunk_count;
			if (extent_plan->extent->chunk_bytes > device->chunk_bytes)
				device->chunk_bytes = extent_plan->extent->chunk_bytes;
		}
		used += device->extent_count;
	}
}

static int directions_check(const struct stasis_transfer_plan *plan, struct stasis_error *err)
{
	for (size_t i = 0; i < plan->extent_count; i++) {
		if (plan->extents[i].direction != STASIS_TRANSFER_SAVE &&
		    plan->extents[i].direction != STASIS_TRANSFER_LOAD)
			return stasis_fail(err, STASIS_REFUSED,
					   "extent '%s': it is neither to be saved nor loaded",
					   plan->extents[i].name);
	}
	return 0;
}

int stasis_transfer_plan_init(struct stasis_transfer_ready_plan *ready,
			      const struct stasis_transfer_plan *plan, struct stasis_error *err)
{
	CLEANUP(free) size_t *order = calloc(plan->segment_count + 1, sizeof(*order));

	memset(ready, 0, sizeof(*ready));
	ready->verify = plan->verify;
	ready->pieces = calloc(plan->segment_count + 1, sizeof(*ready->pieces));
	if (!order || !ready->pieces)
		return stasis_fail_errno(err, STASIS_REFUSED, "make a plan");
	if (directions_check(plan, err) != 0 ||
	    extents_init(ready, plan->extents, plan->extent_count, err) != 0 ||
	    segments_sort(ready, plan, order, err) != 0)
		return -1;
	for (size_t i = 0; i < ready->extent_count; i++) {
		if (extent_gather(ready, plan, &ready->extents[i], order, err) != 0)
			return -1;
	}
	jobs_number(ready);
	return 0;
}

int stasis_transfer_plan_init_files(struct stasis_transfer_ready_plan *ready,
				    const struct stasis_transfer_extent *extents,
				    size_t extent_count, struct stasis_error *err)
{
	memset(ready, 0, sizeof(*ready));
	ready->verify = true;
	ready->is_ordered = true;
	if (extents_init(ready, extents, extent_count, err) != 0)
		return -1;
	ready->device_count = 1;
	jobs_number(ready);
	return 0;
}

void stasis_transfer_plan_fini(struct stasis_transfer_ready_plan *ready)
{
	for (size_t i = 0; i < ready->extent_count; i++)
		stasis_transfer_files_close(&ready->extents[i].files);
	free(ready->extents);
	free(ready->pieces);
	free(ready->devices);
	free(ready->device_extents);
	memset(ready, 0, sizeof(*ready));
}

struct stasis_transfer_job stasis_transfer_job_of(struct stasis_transfer_extent_plan *extent_plan,
						  uint64_t chunk_index)
{
	const struct stasis_transfer_extent *extent = extent_plan->extent;

	return (struct stasis_transfer_job){
		.extent_plan = extent_plan,
		.chunk_index = chunk_index,
		.extent_offset = chunk_index * extent->chunk_bytes,
		.bytes = stasis_chunk_bytes(extent->bytes, extent->chunk_bytes, chunk_index),
		.file = &extent_plan->files.files[chunk_index % extent->stripe_count],
		.chunk = &extent->chunks[chunk_index],
	};
}

bool stasis_transfer_plan_take(struct stasis_transfer_ready_plan *ready, size_t device_index,
			       struct stasis_transfer_job *ret_job)
{
	struct stasis_transfer_device_plan *device = &ready->devices[device_index];
	/* The counter hands out numbers and orders nothing else. */
	uint64_t number = atomic_fetch_add_explicit(&device->next_job, 1, memory_order_relaxed);
	struct stasis_transfer_extent_plan *extent_plan;
	size_t low = 0;
	size_t high = device->extent_count;

	if (number >= device->job_count)
		return false;
	/* The last extent whose first job is not above the number. */
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (ready->extents[device->extents[middle]].first_job <= number)
			low = middle;
		else
			high = middle;
	}
	extent_plan = &ready->extents[device->extents[low]];
	*ret_job = stasis_transfer_job_of(extent_plan, number - extent_plan->first_job);
	ret_job->order = ready->is_ordered ? number : 0;
	return true;
}

const struct stasis_transfer_piece *
stasis_transfer_plan_piece(const struct stasis_transfer_ready_plan *ready,
			   const struct stasis_transfer_job *job)
{
	const struct stasis_transfer_piece *pieces =
		ready->pieces + job->extent_plan->first_segment;
	size_t low = 0;
	size_t high = job->extent_plan->segment_count;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (pieces[middle].extent_offset <= job->extent_offset)
			low = middle;
		else
			high = middle;
	}
	return &pieces[low];
}

/* The chunk table of a save is yet to be written. */
static bool extent_is_packed(const struct stasis_transfer_extent_plan *extent_plan)
{
	const struct stasis_chunk *chunks = extent_plan->extent->chunks;

	for (uint64_t i = 0; i < extent_plan->chunk_count; i++) {
		if (stasis_chunk_is_packed(&chunks[i]))
			return true;
	}
	return false;
}

bool stasis_transfer_plan_is_packed(const struct stasis_transfer_ready_plan *ready)
{
	for (size_t i = 0; i < ready->extent_count; i++) {
		const struct stasis_transfer_extent_plan *extent_plan = &ready->extents[i];
		bool is_read =
			ready->is_ordered || extent_plan->extent->direction == STASIS_TRANSFER_LOAD;

		if (extent_plan->codec || (is_read && extent_is_packed(extent_plan)))
			return true;
	}
	return false;
}

const char *stasis_transfer_chunk_fault(const struct stasis_transfer_job *job)
{
	const struct stasis_chunk *chunk = job->chunk;
	uint64_t end;

	if (!stasis_chunk_flags_are_known(chunk->flags))
		return "it has flags that are not known";
	if (chunk->flags & STASIS_CHUNK_ZERO)
		return chunk->stored_bytes == 0 && chunk->stored_offset == 0
			       ? NULL
			       : "it is recorded as zeros, but as stored too";
	if (!stasis_chunk_stored_bytes_fit(chunk, job->bytes))
		return stasis_chunk_is_packed(chunk)
			       ? "it is compressed, but no shorter than its own length"
			       : "its stored length is not its length";
	if (chunk->stored_offset % STASIS_STORED_ALIGNMENT != 0)
		return "its offset is not aligned";
	if (!stasis_add_u64(chunk->stored_offset, chunk->stored_bytes, &end) ||
	    end > job->file->bytes)
		return "the file ends before it does";
	return NULL;
}

void stasis_transfer_damage_say(const struct stasis_transfer_job *job, const char *fault,
				struct stasis_error *err)
{
	const char *extent = job->extent_plan->extent->name;
	unsigned long long offset = (unsigned long long)job->chunk->stored_offset;

	if (job->chunk->flags & STASIS_CHUNK_ZERO)
		(void)stasis_fail(err, STASIS_BAD_IMAGE,
				  "extent '%s': chunk %llu at offset %llu of the extent is "
				  "damaged: %s",
				  extent, (unsigned long long)job->chunk_index,
				  (unsigned long long)job->extent_offset, fault);
	else
		(void)stasis_fail(err, STASIS_BAD_IMAGE,
				  "'%s': chunk %llu at offset %llu is damaged: %s (offset %llu of "
				  "extent '%s')",
				  job->file->name, (unsigned long long)job->chunk_index, offset,
				  fault, (unsigned long long)job->extent_offset, extent);
}

struct stasis_transfer_failure stasis_transfer_damage_at(const struct stasis_transfer_job *job)
{
	return (struct stasis_transfer_failure){
		.side = STASIS_TRANSFER_FILE_SIDE,
		.has_damage = true,
		.extent_index = job->extent_plan->index,
		.chunk_index = job->chunk_index,
		.file_offset = job->chunk->stored_offset,
	};
}
