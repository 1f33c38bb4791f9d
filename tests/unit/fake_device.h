#ifndef STASIS_TESTS_FAKE_DEVICE_H
#define STASIS_TESTS_FAKE_DEVICE_H

/*
 * A driver table whose devices are plain memory. Copies and memsets are carried out by a thread of its own,
 * later, in the order of their stream, as a GPU does; it watches its caller: a pinned buffer that is written,
 * given to another copy or freed while a copy uses it, or a call without the right context, is a violation.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "driver/driver.h"

#define T_FAKE_DEVICES 3

/* Which call is to fail; calls are counted from 1 over all devices. */
struct t_fake_faults {
	uint64_t copy_refused; /* the N-th copy or memset is not accepted: INVALID_VALUE */
	uint64_t
		copy_broken; /* the N-th is accepted and fails in flight: ILLEGAL_ADDRESS, for good */
	uint64_t copy_hung; /* the N-th never ends */
	uint64_t record_refused;
	uint64_t alloc_refused;       /* the N-th and all later pinned allocations: OUT_OF_MEMORY */
	uint64_t alloc_broken;        /* the N-th pinned allocation: ILLEGAL_ADDRESS */
	bool is_register_unsupported; /* only memory of the driver's can be pinned */
	uint64_t stream_refused;
	uint64_t event_refused;
	uint64_t context_refused;
	/* The N-th copy or memset sets *cancel and holds the device until somebody queries its stream. */
	uint64_t copy_cancels;
	atomic_bool *cancel;
};

/* A fresh driver with devices of `bytes` each, all without faults. One at a time. */
const struct stasis_driver *t_fake_start(uint64_t bytes);

/* Ends the driver; fails the test where anything was violated, or a stream, event or pinned byte is left. */
void t_fake_stop(void);

/* As above, but `expected_bytes` are expected to be left, with their streams and events. */
void t_fake_stop_leaking(uint64_t expected_bytes);

void t_fake_set_faults(const struct t_fake_faults *wanted_faults);

CUcontext t_fake_context(int ordinal);
CUdeviceptr t_fake_address(int ordinal, uint64_t offset);

/* The memory itself, for filling and comparing while no copy runs. */
uint8_t *t_fake_bytes(int ordinal);

uint64_t t_fake_pinned_bytes(void);
uint64_t t_fake_pinned_peak_bytes(void);
uint64_t t_fake_copy_count(void);
uint64_t t_fake_memset_count(void);

#endif
