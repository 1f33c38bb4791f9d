/*
 * cuInit: a process that uses CUDA becomes a participant, whether it shares anything or not.
 */

#include "interpose/control.h"
#include "interpose/handlers.h"

CUresult stasis_handle_cuInit(CUresult (*target)(unsigned int), unsigned int flags)
{
	CUresult result = target(flags);

	if (result == CUDA_SUCCESS)
		stasis_control_start();
	return result;
}
