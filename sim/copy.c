/* How copies and fills are done when their turn in a stream comes; the calls are in copy_api.c. */

#include "copy.h"

#include "access.h"
#include "storage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MULTICAST_STEP ((uint64_t)1 << 20)

static bool is_multicast(const struct sim_piece *piece)
{
	return piece->memory != NULL && sim_memory_is_multicast(piece->memory);
}

static struct sim_piece part(const struct sim_piece *piece, uint64_t at, uint64_t bytes)
{
	struct sim_piece result = *piece;

	result.offset += at;
	result.host = piece->host != NULL ? piece->host + at : NULL;
	result.bytes = bytes;
	return result;
}

/* By way of a buffer, since there is not one place that the bytes come from or go to. */
static int move_multicast(const struct sim_piece *to, const struct sim_piece *from, uint64_t bytes)
{
	unsigned char *buffer = malloc(MULTICAST_STEP);
	int error = buffer != NULL ? 0 : ENOMEM;

	for (uint64_t at = 0; at < bytes && error == 0; at += MULTICAST_STEP) {
		uint64_t now = bytes - at < MULTICAST_STEP ? bytes - at : MULTICAST_STEP;
		struct sim_piece source = part(from, at, now);
		struct sim_piece destination = part(to, at, now);

		if (source.memory != NULL)
			error = sim_piece_read(&source, buffer);
		else
			memcpy(buffer, source.host, now);
		if (error == 0 && destination.memory != NULL)
			error = sim_piece_write(&destination, buffer);
		else if (error == 0)
			memcpy(destination.host, buffer, now);
	}
	free(buffer);
	return error;
}

/* From one piece to another of the same length. */
static int move(const struct sim_piece *to, const struct sim_piece *from, uint64_t bytes)
{
	if (to->memory != NULL &&
	    sim_breaks(from->memory != NULL ? "copies_move_bytes" : "host_reaches_device"))
		return 0;
	if (is_multicast(to) || is_multicast(from))
		return move_multicast(to, from, bytes);
	if (to->memory != NULL && from->memory != NULL)
		return sim_storage_copy(to->fd, to->offset, from->fd, from->offset, bytes);
	if (to->memory != NULL)
		return sim_storage_write(to->fd, to->offset, from->host, bytes);
	if (from->memory != NULL)
		return sim_storage_read(from->fd, from->offset, to->host, bytes);
	memmove(to->host, from->host, bytes);
	return 0;
}

/* Copies up to the next end of a piece on either side. */
static CUresult copy_some(const struct sim_action *action, uint64_t destination, uint64_t source,
			  uint64_t bytes, uint64_t *ret_copied)
{
	const struct sim_context *writer = action->copy.destination_context;
	const struct sim_context *reader = action->copy.source_context;
	struct sim_piece from;
	struct sim_piece to;
	int error;
	CUresult result = sim_access_begin(reader != NULL ? reader : action->context,
					   SIM_ACCESS_BY_COPY, source, bytes, false, &from);

	if (result != CUDA_SUCCESS)
		return result;
	result = sim_access_begin(writer != NULL ? writer : action->context, SIM_ACCESS_BY_COPY,
				  destination, from.bytes, true, &to);
	if (result != CUDA_SUCCESS) {
		sim_access_end(&from);
		return result;
	}
	error = move(&to, &from, to.bytes);
	sim_access_end(&to);
	sim_access_end(&from);
	*ret_copied = to.bytes;
	if (error == EFAULT)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	return error == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult copy_row(const struct sim_action *action, uint64_t destination, uint64_t source,
			 uint64_t bytes)
{
	CUresult result = CUDA_SUCCESS;

	while (bytes > 0 && result == CUDA_SUCCESS) {
		uint64_t copied = 0;

		result = copy_some(action, destination, source, bytes, &copied);
		destination += copied;
		source += copied;
		bytes -= copied;
	}
	return result;
}

CUresult sim_copy_run(const struct sim_action *action)
{
	const struct sim_copy *copy = &action->copy;
	uint64_t height = sim_breaks("copy_in_two_dimensions") ? 1 : copy->height;
	CUresult result = CUDA_SUCCESS;

	for (uint64_t row = 0; row < height && result == CUDA_SUCCESS; row++)
		result = copy_row(action, copy->destination + row * copy->destination_pitch,
				  copy->source + row * copy->source_pitch, copy->width);
	return result;
}

CUresult sim_fill_run(const struct sim_action *action)
{
	const struct sim_fill *fill = &action->fill;
	CUresult result = CUDA_SUCCESS;

	for (uint64_t row = 0; row < fill->height && result == CUDA_SUCCESS; row++)
		result = sim_access_fill(action->context, SIM_ACCESS_BY_COPY,
					 fill->destination + row * fill->pitch, fill->width,
					 fill->value, fill->element_bytes);
	return result;
}
