/* The built-in kernels; see kernel.h. */

#include "kernel.h"

#include "access.h"
#include "team.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_COUNT 16384u

static CUresult fill_u32(const struct sim_action *action)
{
	const uint64_t *parameters = action->launch.parameters;

	uint64_t count = parameters[2] + sim_breaks("kernel_writes");
	uint32_t value = (uint32_t)parameters[1] + sim_breaks("kernel_parameters_are_copied");

	return sim_access_fill(action->context, SIM_ACCESS_BY_KERNEL, parameters[0],
			       count * sizeof(uint32_t), value, sizeof(uint32_t));
}

/* Calls the visitor on the elements, a piece at a time; what it changed is written back if asked. */
static CUresult visit_u32(const struct sim_action *action, uint64_t address, uint64_t count,
			  void (*visit)(uint32_t *elements, size_t count, uint32_t value,
					uint64_t *total),
			  bool writes, uint64_t *ret_total)
{
	uint32_t *piece = malloc(PIECE_COUNT * sizeof(*piece));
	CUresult result = piece != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	*ret_total = 0;
	while (count > 0 && result == CUDA_SUCCESS) {
		size_t now = count < PIECE_COUNT ? (size_t)count : PIECE_COUNT;
		size_t bytes = now * sizeof(*piece);

		result = sim_access_read(action->context, SIM_ACCESS_BY_KERNEL, address, piece,
					 bytes);
		if (result != CUDA_SUCCESS)
			break;
		visit(piece, now, (uint32_t)action->launch.parameters[1], ret_total);
		if (writes)
			result = sim_access_write(action->context, SIM_ACCESS_BY_KERNEL, address,
						  piece, bytes);
		address += bytes;
		count -= now;
	}
	free(piece);
	return result;
}

static void add(uint32_t *elements, size_t count, uint32_t value, uint64_t *total)
{
	(void)total;
	for (size_t i = 0; i < count; i++)
		elements[i] += value;
}

static CUresult add_u32(const struct sim_action *action)
{
	uint64_t total;

	return visit_u32(action, action->launch.parameters[0], action->launch.parameters[2], add,
			 true, &total);
}

static void count_other(uint32_t *elements, size_t count, uint32_t value, uint64_t *total)
{
	for (size_t i = 0; i < count; i++)
		*total += elements[i] != value;
}

static CUresult compare_u32(const struct sim_action *action)
{
	uint64_t counter = action->launch.parameters[3];
	uint64_t total = 0;
	uint64_t before = 0;
	CUresult result = visit_u32(action, action->launch.parameters[0],
				    action->launch.parameters[2], count_other, false, &total);

	if (result == CUDA_SUCCESS)
		result = sim_access_read(action->context, SIM_ACCESS_BY_KERNEL, counter, &before,
					 sizeof(before));
	total += before;
	if (result == CUDA_SUCCESS)
		result = sim_access_write(action->context, SIM_ACCESS_BY_KERNEL, counter, &total,
					  sizeof(total));
	return result;
}

static CUresult spin(const struct sim_action *action)
{
	const struct timespec pause = {.tv_nsec = 50000};
	uint32_t flag = 0;

	for (;;) {
		CUresult result =
			sim_access_read(action->context, SIM_ACCESS_BY_KERNEL,
					action->launch.parameters[0], &flag, sizeof(flag));

		if (result != CUDA_SUCCESS || flag != 0)
			return result;
		(void)nanosleep(&pause, NULL);
	}
}

/* What a load that reduces gives: of each element, the sum over all members of a multicast object. */
static CUresult sum_piece(const struct sim_action *action, uint64_t source, uint32_t *sums,
			  size_t count)
{
	struct sim_piece piece;
	CUresult result = sim_access_begin(action->context, SIM_ACCESS_BY_KERNEL, source,
					   count * sizeof(*sums), false, &piece);
	int error = EFAULT;

	if (result != CUDA_SUCCESS)
		return result;
	if (piece.memory != NULL && sim_memory_is_multicast(piece.memory) &&
	    piece.bytes == count * sizeof(*sums))
		error = sim_team_sum_u32(piece.fd, piece.offset, sums, count);
	sim_access_end(&piece);
	return error == 0 ? CUDA_SUCCESS : sim_piece_result(error);
}

static CUresult multimem_add_u32(const struct sim_action *action)
{
	uint64_t destination = action->launch.parameters[0];
	uint64_t source = action->launch.parameters[1];
	uint64_t count = action->launch.parameters[2];
	uint32_t *piece = malloc(PIECE_COUNT * sizeof(*piece));
	CUresult result = piece != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	while (count > 0 && result == CUDA_SUCCESS) {
		size_t now = count < PIECE_COUNT ? (size_t)count : PIECE_COUNT;

		result = sum_piece(action, source, piece, now);
		if (result == CUDA_SUCCESS)
			result = sim_access_write(action->context, SIM_ACCESS_BY_KERNEL,
						  destination, piece, now * sizeof(*piece));
		destination += now * sizeof(*piece);
		source += now * sizeof(*piece);
		count -= now;
	}
	free(piece);
	return result;
}

static const struct sim_kernel kernels[] = {
	{"stasis_fill_u32", 3, {8, 4, 8}, fill_u32},
	{"stasis_add_u32", 3, {8, 4, 8}, add_u32},
	{"stasis_compare_u32", 4, {8, 4, 8, 8}, compare_u32},
	{"stasis_spin", 1, {8}, spin},
	{"stasis_multimem_add_u32", 3, {8, 8, 8}, multimem_add_u32},
};

const struct sim_kernel *sim_kernel_find(const char *name, size_t length)
{
	for (size_t i = 0; i < ARRAY_COUNT(kernels); i++)
		if (strlen(kernels[i].name) == length && memcmp(kernels[i].name, name, length) == 0)
			return &kernels[i];
	return NULL;
}
