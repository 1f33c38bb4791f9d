/*
 * See fake_pinned.h.
 */

#include "fake_pinned.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fake_device.h"

#define PINNED_MAX 128

struct pinned {
	uint8_t *memory;
	size_t bytes;
	bool is_registered; /* it is the engine's */
};

static struct pinned pinned[PINNED_MAX];
static atomic_uint_fast64_t sum_bytes;
static atomic_uint_fast64_t peak_bytes;

static struct pinned *find(const uint8_t *memory)
{
	for (size_t i = 0; i < PINNED_MAX; i++) {
		if (pinned[i].memory == memory)
			return &pinned[i];
	}
	return NULL;
}

uint8_t *t_fake_pinned_add(uint8_t *memory, size_t bytes)
{
	struct pinned *place = find(NULL);
	uint64_t sum;

	if (!place)
		return NULL;
	*place = (struct pinned){
		.memory = memory ? memory : aligned_alloc(4096, bytes),
		.bytes = bytes,
		.is_registered = memory != NULL,
	};
	/* What is not written is not zero. */
	memset(place->memory, 0xa5, bytes);
	sum = atomic_fetch_add(&sum_bytes, bytes) + bytes;
	if (sum > atomic_load(&peak_bytes))
		atomic_store(&peak_bytes, sum);
	return place->memory;
}

bool t_fake_pinned_remove(const uint8_t *memory, bool is_registered)
{
	struct pinned *place = memory ? find(memory) : NULL;

	if (!place || place->is_registered != is_registered)
		return false;
	(void)atomic_fetch_sub(&sum_bytes, place->bytes);
	if (!is_registered)
		free(place->memory);
	place->memory = NULL;
	return true;
}

size_t t_fake_pinned_size(const uint8_t *memory)
{
	const struct pinned *place = memory ? find(memory) : NULL;

	return place ? place->bytes : 0;
}

bool t_fake_pinned_holds(const uint8_t *memory, size_t bytes)
{
	for (size_t i = 0; i < PINNED_MAX; i++) {
		if (pinned[i].memory && memory >= pinned[i].memory &&
		    memory + bytes <= pinned[i].memory + pinned[i].bytes)
			return true;
	}
	return false;
}

void t_fake_pinned_clear(void)
{
	for (size_t i = 0; i < PINNED_MAX; i++) {
		if (pinned[i].is_registered && pinned[i].memory)
			(void)munmap(pinned[i].memory, pinned[i].bytes);
		else
			free(pinned[i].memory);
		pinned[i].memory = NULL;
	}
	atomic_store(&sum_bytes, 0);
	atomic_store(&peak_bytes, 0);
}

uint64_t t_fake_pinned_bytes(void)
{
	return atomic_load(&sum_bytes);
}

uint64_t t_fake_pinned_peak_bytes(void)
{
	return atomic_load(&peak_bytes);
}
