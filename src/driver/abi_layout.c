/*
 * Holds our declarations of the CUDA ABI against the lists of abi_layout.h, at compile time.
 */

#include "driver/abi_layout.h"

#include <stddef.h>

#include "driver/abi.h"

_Static_assert(sizeof(void *) == 8, "the CUDA ABI declared here is the 64-bit one");

#define ASSERT_SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), "size of " #type);
STASIS_ABI_SIZES(ASSERT_SIZE)

#define ASSERT_OFFSET(type, member, offset)                                                        \
	_Static_assert(offsetof(type, member) == (offset), "offset of " #type "." #member);
STASIS_ABI_OFFSETS(ASSERT_OFFSET)

#define ASSERT_VALUE(enumerator, value)                                                            \
	_Static_assert((int)(enumerator) == (value), "value of " #enumerator);
STASIS_ABI_VALUES(ASSERT_VALUE)
