/*
 * What is done when the library is loaded: the handlers are registered while there is one thread, and the
 * real dlsym is found. No thread, no socket, nothing that a program without CUDA would notice. Constructors
 * of other libraries may call us before this one runs; then the first call does the same.
 */

#include "interpose/gate.h"
#include "interpose/resolve.h"
#include "interpose/settings.h"

/* glibc calls constructors with what main is called with. */
__attribute__((constructor)) static void loaded(int argument_count, char **arguments,
						char **environment)
{
	(void)argument_count;
	(void)arguments;
	(void)stasis_resolve_dlsym();
	stasis_gate_prepare();
	stasis_settings_read(environment);
}
