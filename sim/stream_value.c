/* Streams that wait for a value in memory, or write one. A wait looks every 50 microseconds. */

#include "access.h"
#include "stream.h"

#define WAIT_FLAGS ((unsigned)(CU_STREAM_WAIT_VALUE_NOR | CU_STREAM_WAIT_VALUE_FLUSH))
#define WRITE_FLAGS ((unsigned)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)

/* "Greater or equal" is cyclic: the difference, as a signed number, is not negative. */
static bool is_met(uint64_t present, const struct sim_value *wanted)
{
	uint64_t mask = wanted->bytes == 4 ? UINT32_MAX : UINT64_MAX;
	uint64_t sign = (mask >> 1) + 1;

	switch (wanted->flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return ((present - wanted->value) & sign) == 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return present == wanted->value;
	case CU_STREAM_WAIT_VALUE_AND:
		return (present & wanted->value) != 0;
	default:
		return (~(present | wanted->value) & mask) != 0;
	}
}

static CUresult run_wait(const struct sim_action *action)
{
	const struct timespec pause = {.tv_nsec = 50000};
	uint64_t present = 0;

	for (;;) {
		CUresult result =
			sim_access_read(action->context, SIM_ACCESS_BY_COPY, action->value.address,
					&present, action->value.bytes);

		if (result != CUDA_SUCCESS || is_met(present, &action->value) ||
		    sim_breaks("wait_value"))
			return result;
		(void)nanosleep(&pause, NULL);
	}
}

static CUresult run_write(const struct sim_action *action)
{
	if (sim_breaks("write_value"))
		return CUDA_SUCCESS;
	return sim_access_write(action->context, SIM_ACCESS_BY_COPY, action->value.address,
				&action->value.value, action->value.bytes);
}

static CUresult submit(CUstream handle, CUresult (*run)(const struct sim_action *action),
		       struct sim_value value, unsigned allowed_flags)
{
	struct sim_action action = {.run = run, .value = value};
	struct sim_stream *stream = NULL;
	CUresult result = sim_stream_get(handle, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if ((value.flags & ~allowed_flags) != 0 || value.address % value.bytes != 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_access_check(stream->context, value.address, value.bytes, run == run_write);
	if (result != CUDA_SUCCESS)
		return result;
	action.context = stream->context;
	return sim_stream_submit(stream, &action, NULL, NULL);
}

SIM_API CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
					unsigned int flags)
{
	struct sim_value wanted = {address, value, 4, flags};

	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       submit(stream, run_wait, wanted, WAIT_FLAGS));
}

SIM_API CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
					unsigned int flags)
{
	struct sim_value wanted = {address, value, 8, flags};

	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       submit(stream, run_wait, wanted, WAIT_FLAGS));
}

SIM_API CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
					 unsigned int flags)
{
	struct sim_value wanted = {address, value, 4, flags};

	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       submit(stream, run_write, wanted, WRITE_FLAGS));
}

SIM_API CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
					 unsigned int flags)
{
	struct sim_value wanted = {address, value, 8, flags};

	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       submit(stream, run_write, wanted, WRITE_FLAGS));
}
