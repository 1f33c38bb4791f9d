/* Stream capture; see capture.h. */

#include "capture.h"
CUresult sim_capture_check_unsafe(void)
{
	return CUDA_SUCCESS;
}
CUresult sim_capture_check_context(struct sim_context *context)
{
	(void)context;
	return CUDA_SUCCESS;
}
CUresult sim_capture_check_stream(struct sim_stream *stream)
{
	(void)stream;
	return CUDA_SUCCESS;
}
CUresult sim_capture_check_legacy(struct sim_stream *stream)
{
	(void)stream;
	return CUDA_SUCCESS;
}
CUresult sim_capture_check_submit(struct sim_stream *stream)
{
	(void)stream;
	return CUDA_SUCCESS;
}
CUresult sim_capture_add(struct sim_stream *stream, const struct sim_action *action, void *owned)
{
	(void)stream;
	(void)action;
	(void)owned;
	return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult sim_capture_record_event(struct sim_stream *stream, struct sim_event *event)
{
	(void)stream;
	(void)event;
	return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult sim_capture_wait_event(struct sim_stream *stream, struct sim_event *event)
{
	(void)stream;
	(void)event;
	return CUDA_ERROR_NOT_SUPPORTED;
}
void sim_capture_stream_dropped(struct sim_stream *stream)
{
	(void)stream;
}
void sim_capture_context_dropped(struct sim_context *context)
{
	(void)context;
}
