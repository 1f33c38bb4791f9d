#ifndef STASIS_CLI_PHASES_H
#define STASIS_CLI_PHASES_H

/*
 * What each phase of a round trip means, for people.
 */

/* One short sentence; empty where the phase has none. */
const char *stasis_cli_phase_sentence(const char *phase);

#endif
