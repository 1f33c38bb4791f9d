/*
 * What is done when the library is loaded: the handlers are registered while there is one thread, and the
 * real dlsym is found. No thread, no socket, nothing that a program without CUDA would notice. Constructors
 * of other libraries may call us before this one runs; then the first call does the same.
 */

#include "interpose/gate.h"
#include "interpose/resolve.h"

__attribute__((constructor)) static void loaded(void)
{
	(void)stasis_resolve_dlsym();
	stasis_gate_prepare();
}
