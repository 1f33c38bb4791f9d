/*
 * See clock.h.
 */

#include "base/clock.h"

#include <limits.h>
#include <time.h>

#include "base/number.h"

uint64_t stasis_clock_now_ns(void)
{
	struct timespec now;

	/* CLOCK_MONOTONIC with a valid pointer cannot fail. */
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * STASIS_NS_PER_S + (uint64_t)now.tv_nsec;
}

uint64_t stasis_deadline_after_ns(uint64_t delay_ns)
{
	uint64_t deadline = STASIS_NO_DEADLINE;

	if (!stasis_add_u64(stasis_clock_now_ns(), delay_ns, &deadline))
		return STASIS_NO_DEADLINE;
	return deadline;
}

bool stasis_deadline_passed(uint64_t deadline_ns)
{
	return deadline_ns != STASIS_NO_DEADLINE && stasis_clock_now_ns() >= deadline_ns;
}

int stasis_deadline_poll_ms(uint64_t deadline_ns)
{
	uint64_t now = stasis_clock_now_ns();
	uint64_t left_ms;

	if (deadline_ns == STASIS_NO_DEADLINE)
		return -1;
	if (now >= deadline_ns)
		return 0;
	left_ms = (deadline_ns - now + STASIS_NS_PER_MS - 1) / STASIS_NS_PER_MS;
	return left_ms > INT_MAX ? INT_MAX : (int)left_ms;
}

double stasis_seconds(uint64_t ns)
{
	return (double)ns / (double)STASIS_NS_PER_S;
}
