/* Locks a process through the driver, says so, and unlocks it at the end of its input: `hold_locked PID`. */

#include <stdio.h>

#include "base/error.h"
#include "base/number.h"
#include "check.h"
#include "checkpoint.h"
#include "device.h"

int main(int argument_count, char **arguments)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	uint64_t pid = 0;

	T_EQ(argument_count, 2);
	T_EQ(stasis_parse_u64("pid", arguments[1], &pid, &err), 0);
	t_init_only();
	T_OK(t_lock((pid_t)pid));
	(void)printf("locked\n");
	(void)fflush(stdout);
	while (getchar() != EOF)
		;
	T_OK(t_unlock((pid_t)pid));
	return 0;
}
