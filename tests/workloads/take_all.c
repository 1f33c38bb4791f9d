/*
 * Takes all memory that is free on every device, in pieces, and fills it with garbage: what somebody else left there is
 * gone. Prints "device N free F total T taken K" for each, holds everything until its input ends, and lets go. With
 * --look it takes nothing.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "device.h"

#define GARBAGE 0xa5
#define PIECE_MIN ((size_t)2 << 20)

/* In halves of what is left, until not even the smallest piece is to be had. */
static size_t take(size_t free_bytes)
{
	size_t taken = 0;
	size_t piece = free_bytes / PIECE_MIN * PIECE_MIN;

	while (piece >= PIECE_MIN) {
		CUdeviceptr address;
		CUresult result = cuMemAlloc_v2(&address, piece);

		if (result == CUDA_SUCCESS) {
			T_OK(cuMemsetD8_v2(address, GARBAGE, piece));
			taken += piece;
			continue;
		}
		T_IS(result, CUDA_ERROR_OUT_OF_MEMORY);
		piece = piece / 2 / PIECE_MIN * PIECE_MIN;
	}
	return taken;
}

int main(int argument_count, char **arguments)
{
	bool is_looking = argument_count > 1 && strcmp(arguments[1], "--look") == 0;
	int count = 0;
	char byte;

	T_OK(cuInit(0));
	T_OK(cuDeviceGetCount(&count));
	for (int i = 0; i < count; i++) {
		CUcontext context;
		size_t free_bytes;
		size_t total_bytes;
		size_t taken;

		T_OK(cuDevicePrimaryCtxRetain(&context, i));
		T_OK(cuCtxSetCurrent(context));
		T_OK(cuMemGetInfo_v2(&free_bytes, &total_bytes));
		taken = is_looking ? 0 : take(free_bytes);
		T_OK(cuCtxSynchronize());
		(void)printf("device %d free %zu total %zu taken %zu\n", i, free_bytes, total_bytes,
			     taken);
	}
	(void)fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		continue;
	return 0;
}
