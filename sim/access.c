/* From addresses to bytes; see access.h. */

#include "access.h"

#include "address.h"
#include "allocation.h"
#include "storage.h"
#include "team.h"

#include <errno.h>
#include <string.h>

static bool allows(const struct sim_range *range, const struct sim_context *context,
		   enum sim_access_by by, bool write)
{
	CUmemAccess_flags rights = range->device_rights[context->device];

	if (rights == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
	    (rights == CU_MEM_ACCESS_FLAGS_PROT_READ && !write))
		return true;
	if (range->is_vmm)
		return false;
	return by == SIM_ACCESS_BY_COPY ||
	       (range->memory->device >= 0 && context->peer_access[range->memory->device]);
}

static CUresult check_mapped(const struct sim_context *context, uint64_t address, uint64_t bytes,
			     bool write)
{
	uint64_t end = address + bytes;

	while (address < end) {
		const struct sim_range *range = sim_address_find(address);

		if (range == NULL || !allows(range, context, SIM_ACCESS_BY_COPY, write))
			return CUDA_ERROR_INVALID_VALUE;
		address = sim_span_end(&range->span);
		if (address < end && sim_breaks("copy_across_mappings"))
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult sim_access_check(const struct sim_context *context, uint64_t address, uint64_t bytes,
			  bool write)
{
	const struct sim_allocation *allocation = sim_allocation_find(address);
	const struct sim_range *range;

	if (address + bytes < address)
		return CUDA_ERROR_INVALID_VALUE;
	if (allocation != NULL &&
	    (allocation->is_freeing || bytes > sim_span_end(&allocation->span) - address))
		return CUDA_ERROR_INVALID_VALUE;
	if (allocation != NULL)
		return CUDA_SUCCESS;
	range = sim_address_find(address);
	if (range == NULL || !range->is_vmm)
		return CUDA_ERROR_INVALID_VALUE;
	return check_mapped(context, address, bytes, write);
}

bool sim_access_is_pageable(uint64_t address)
{
	return !sim_address_in_window(address) && sim_allocation_find(address) == NULL;
}

static CUresult begin_device(const struct sim_context *context, enum sim_access_by by,
			     uint64_t address, bool write, struct sim_piece *ret_piece)
{
	const struct sim_range *range;
	uint64_t inside;

	sim_core_lock();
	range = sim_address_find(address);
	if (range == NULL || !allows(range, context, by, write)) {
		sim_core_unlock();
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	}
	sim_memory_ref(range->memory);
	inside = address - range->span.start;
	ret_piece->memory = range->memory;
	ret_piece->fd = range->memory->fd;
	ret_piece->offset = range->memory->offset + range->memory_offset + inside;
	if (ret_piece->bytes > range->span.bytes - inside)
		ret_piece->bytes = range->span.bytes - inside;
	sim_core_unlock();
	return CUDA_SUCCESS;
}

CUresult sim_access_begin(const struct sim_context *context, enum sim_access_by by,
			  uint64_t address, uint64_t bytes, bool write, struct sim_piece *ret_piece)
{
	bool is_known;

	*ret_piece = (struct sim_piece){.fd = -1, .bytes = bytes};
	if (sim_address_in_window(address))
		return begin_device(context, by, address, write, ret_piece);
	sim_core_lock();
	is_known = sim_allocation_find(address) != NULL;
	sim_core_unlock();
	if (by == SIM_ACCESS_BY_KERNEL && !is_known)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	ret_piece->host = (unsigned char *)(uintptr_t)address; /* NOLINT */
	return CUDA_SUCCESS;
}

void sim_access_end(struct sim_piece *piece)
{
	if (piece->memory == NULL)
		return;
	sim_core_lock();
	sim_memory_unref(piece->memory);
	sim_core_unlock();
	piece->memory = NULL;
}

/*
 * Flags that a program polls are seen whole. To a race detector a GPU is no thread: what a program and
 * the device do to one word (spin flags, wait values) is for the program to order.
 */
__attribute__((no_sanitize("thread"))) static void move_at_once(void *to, const void *from,
								uint64_t bytes)
{
	uintptr_t both = (uintptr_t)to | (uintptr_t)from;

	if (bytes == 4 && both % 4 == 0)
		__atomic_store_n((uint32_t *)to,
				 __atomic_load_n((const uint32_t *)from, __ATOMIC_SEQ_CST),
				 __ATOMIC_SEQ_CST);
	else if (bytes == 8 && both % 8 == 0)
		__atomic_store_n((uint64_t *)to,
				 __atomic_load_n((const uint64_t *)from, __ATOMIC_SEQ_CST),
				 __ATOMIC_SEQ_CST);
	else
		memcpy(to, from, bytes);
}

int sim_piece_read(const struct sim_piece *piece, void *buffer)
{
	if (sim_memory_is_multicast(piece->memory))
		return sim_team_read(piece->fd, piece->offset, buffer, piece->bytes);
	return sim_storage_read(piece->fd, piece->offset, buffer, piece->bytes);
}

int sim_piece_write(const struct sim_piece *piece, const void *buffer)
{
	if (sim_memory_is_multicast(piece->memory))
		return sim_team_write(piece->fd, piece->offset, buffer, piece->bytes);
	return sim_storage_write(piece->fd, piece->offset, buffer, piece->bytes);
}

static int piece_fill(const struct sim_piece *piece, uint64_t element, unsigned element_bytes)
{
	if (sim_memory_is_multicast(piece->memory))
		return sim_team_fill(piece->fd, piece->offset, piece->bytes, element,
				     element_bytes);
	return sim_storage_fill(piece->fd, piece->offset, piece->bytes, element, element_bytes);
}

CUresult sim_piece_result(int error)
{
	return error == EFAULT ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_ERROR_UNKNOWN;
}

CUresult sim_access_read(const struct sim_context *context, enum sim_access_by by, uint64_t address,
			 void *buffer, uint64_t bytes)
{
	unsigned char *to = buffer;

	while (bytes > 0) {
		struct sim_piece piece;
		CUresult result = sim_access_begin(context, by, address, bytes, false, &piece);
		int error = 0;

		if (result != CUDA_SUCCESS)
			return result;
		if (piece.memory != NULL)
			error = sim_piece_read(&piece, to);
		else
			move_at_once(to, piece.host, piece.bytes);
		sim_access_end(&piece);
		if (error != 0)
			return sim_piece_result(error);
		to += piece.bytes;
		address += piece.bytes;
		bytes -= piece.bytes;
	}
	return CUDA_SUCCESS;
}

CUresult sim_access_write(const struct sim_context *context, enum sim_access_by by,
			  uint64_t address, const void *buffer, uint64_t bytes)
{
	const unsigned char *from = buffer;

	while (bytes > 0) {
		struct sim_piece piece;
		CUresult result = sim_access_begin(context, by, address, bytes, true, &piece);
		int error = 0;

		if (result != CUDA_SUCCESS)
			return result;
		if (piece.memory != NULL)
			error = sim_piece_write(&piece, from);
		else
			move_at_once(piece.host, from, piece.bytes);
		sim_access_end(&piece);
		if (error != 0)
			return sim_piece_result(error);
		from += piece.bytes;
		address += piece.bytes;
		bytes -= piece.bytes;
	}
	return CUDA_SUCCESS;
}

static void fill_host(unsigned char *to, uint64_t bytes, uint64_t element, unsigned element_bytes)
{
	for (uint64_t at = 0; at < bytes; at += element_bytes)
		memcpy(to + at, &element, element_bytes);
}

CUresult sim_access_fill(const struct sim_context *context, enum sim_access_by by, uint64_t address,
			 uint64_t bytes, uint64_t element, unsigned element_bytes)
{
	while (bytes > 0) {
		struct sim_piece piece;
		CUresult result = sim_access_begin(context, by, address, bytes, true, &piece);
		int error = 0;

		if (result != CUDA_SUCCESS)
			return result;
		if (piece.memory != NULL)
			error = piece_fill(&piece, element, element_bytes);
		else
			fill_host(piece.host, piece.bytes, element, element_bytes);
		sim_access_end(&piece);
		if (error != 0)
			return sim_piece_result(error);
		address += piece.bytes;
		bytes -= piece.bytes;
	}
	return CUDA_SUCCESS;
}
