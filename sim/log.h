#ifndef SIM_LOG_H
#define SIM_LOG_H

/*
 * The call log: with STASIS_SIM_LOG=path every outermost call, reached fault and change of state adds a
 * line to that file, in one write:
 *
 *     4711 workload cuMemAlloc SUCCESS
 *     4711 workload fault cuMemAlloc:3=OUT_OF_MEMORY
 *     4711 workload state RUNNING->LOCKED
 *
 * The file is opened for each line, so that a checkpointed process holds nothing. Any thread.
 */

#include <stdbool.h>

#include "compiler.h"

bool sim_log_is_on(void);

/* What follows pid and executable; without a line end. Does nothing when the log is off. */
void sim_log_line(const char *format, ...) FORMAT(1, 2);

/* The base name of this process's executable. */
const char *sim_log_executable(void);

#endif
