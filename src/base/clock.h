#ifndef STASIS_BASE_CLOCK_H
#define STASIS_BASE_CLOCK_H

/*
 * Monotonic time in nanoseconds, and deadlines made of it. Any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#define STASIS_NS_PER_MS UINT64_C(1000000)
#define STASIS_NS_PER_S UINT64_C(1000000000)

/* A deadline that never comes. */
#define STASIS_NO_DEADLINE UINT64_MAX

uint64_t stasis_clock_now_ns(void);
uint64_t stasis_deadline_after_ns(uint64_t delay_ns);
bool stasis_deadline_passed(uint64_t deadline_ns);

/* What is left, for poll(2): at least 0, at most INT_MAX; -1 for STASIS_NO_DEADLINE. */
int stasis_deadline_poll_ms(uint64_t deadline_ns);

/* Seconds, for reports. */
double stasis_seconds(uint64_t ns);

#endif
