/*
 * See pinned.h.
 */

#include "transfer/pinned.h"

#include <string.h>
#include <sys/mman.h>

#include "base/fault.h"
#include "base/number.h"

#define HUGE_BYTES (2 * STASIS_MIB)

/* Anonymous memory that begins with a huge page and ends where it should; NULL: there is none. */
static uint8_t *aligned_map(size_t bytes)
{
	size_t whole = bytes + HUGE_BYTES;
	uint8_t *map =
		mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t head;

	if (map == MAP_FAILED)
		return NULL;
	head = -(uintptr_t)map % HUGE_BYTES;
	if (head > 0)
		(void)munmap(map, head);
	if (head < HUGE_BYTES)
		(void)munmap(map + head + bytes, HUGE_BYTES - head);
	return map + head;
}

/* Huge pages only where they are filled: a bound on pinned memory must hold. */
static CUresult registered_alloc(const struct stasis_driver *driver, size_t bytes,
				 struct stasis_transfer_pinned *ret_pinned)
{
	size_t huge_bytes = bytes / HUGE_BYTES * HUGE_BYTES;
	uint8_t *base = aligned_map(bytes);
	CUresult result;

	if (!base)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (huge_bytes > 0)
		(void)madvise(base, huge_bytes, MADV_HUGEPAGE);
	/* A child must not share pages that a device writes. */
	(void)madvise(base, bytes, MADV_DONTFORK);
	memset(base, 0, bytes);
	result = driver->cuMemHostRegister(base, bytes, CU_MEMHOSTREGISTER_PORTABLE);
	if (result != CUDA_SUCCESS) {
		(void)munmap(base, bytes);
		return result;
	}
	*ret_pinned = (struct stasis_transfer_pinned){base, bytes, true};
	return CUDA_SUCCESS;
}

CUresult stasis_transfer_pinned_alloc(const struct stasis_driver *driver, size_t bytes,
				      struct stasis_transfer_pinned *ret_pinned)
{
	void *base = NULL;
	CUresult result;

	if (stasis_fault_point("transfer_alloc") != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = registered_alloc(driver, bytes, ret_pinned);
	/* As in confidential computing, where only the driver's own memory will do. */
	if (result != CUDA_ERROR_NOT_SUPPORTED && result != CUDA_ERROR_NOT_PERMITTED)
		return result;
	result = driver->cuMemHostAlloc(&base, bytes, CU_MEMHOSTALLOC_PORTABLE);
	if (result == CUDA_SUCCESS)
		*ret_pinned = (struct stasis_transfer_pinned){base, bytes, false};
	return result;
}

CUresult stasis_transfer_pinned_free(const struct stasis_driver *driver,
				     struct stasis_transfer_pinned *pinned)
{
	struct stasis_transfer_pinned old = *pinned;
	CUresult result;

	*pinned = (struct stasis_transfer_pinned){0};
	if (!old.base)
		return CUDA_SUCCESS;
	if (!old.is_registered)
		return driver->cuMemFreeHost(old.base);
	result = driver->cuMemHostUnregister(old.base);
	if (result == CUDA_SUCCESS)
		(void)munmap(old.base, old.bytes);
	return result;
}
