/* The queues, their order and their workers; see stream.h. The exported calls are in stream_api.c. */

#include "stream.h"

#include "capture.h"

#include <signal.h>
#include <stdlib.h>

#define QUEUE_WORKS_MAX 1024 /* driver 580: 1021 */

void sim_work_ref(struct sim_work *work)
{
	work->references++;
}

static void drop_dependencies(struct sim_work *work)
{
	for (size_t i = 0; i < work->dependency_count; i++)
		sim_work_unref(work->dependencies[i]);
	free(work->dependencies);
	work->dependencies = NULL;
	work->dependency_count = 0;
}

void sim_work_unref(struct sim_work *work)
{
	if (work == NULL || --work->references != 0)
		return;
	drop_dependencies(work);
	free(work->owned);
	free(work);
}

void sim_work_wait(const struct sim_work *work)
{
	while (!work->is_done)
		(void)pthread_cond_wait(&sim_core.progress, &sim_core.lock);
}

void sim_work_hold_and_wait(struct sim_work *work)
{
	sim_work_ref(work);
	sim_work_wait(work);
	sim_work_unref(work);
}

static bool may_begin(const struct sim_work *work)
{
	for (size_t i = 0; i < work->dependency_count; i++)
		if (!work->dependencies[i]->is_done)
			return false;
	return true;
}

/* Runs the first work of the queue; the lock is let go of meanwhile. */
static void run_first(struct sim_stream *stream)
{
	struct sim_work *work = stream->first;
	const struct sim_action *action = &work->action;
	CUresult result;

	while (!may_begin(work))
		(void)pthread_cond_wait(&sim_core.progress, &sim_core.lock);
	result = sim_context_error(work->context);
	if (action->run != NULL && (result == CUDA_SUCCESS || action->runs_after_error)) {
		sim_core_unlock();
		result = action->run(action);
		sim_core_lock();
	}
	if ((result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_LAUNCH_FAILED) &&
	    !sim_breaks("fault_stays"))
		sim_core.devices[work->context->device].error = result;
	work->result = result;
	work->done_ns = sim_now_ns();
	work->is_done = true;
	drop_dependencies(work);
	stream->first = work->next;
	stream->queued--;
	if (stream->first == NULL)
		stream->last = NULL;
	sim_work_unref(work);
	(void)pthread_cond_broadcast(&sim_core.progress);
}

static void stream_free(struct sim_stream *stream)
{
	sim_work_unref(stream->latest);
	(void)pthread_cond_destroy(&stream->has_work);
	free(stream->capture_ends);
	free(stream);
}

static void *worker(void *argument)
{
	struct sim_stream *stream = argument;

	sim_core_lock();
	for (;;) {
		if (stream->first != NULL)
			run_first(stream);
		else if (stream->is_destroyed || stream->is_stopping)
			break;
		else
			(void)pthread_cond_wait(&stream->has_work, &sim_core.lock);
	}
	if (stream->is_destroyed) {
		stream->context->orphans -= stream->is_orphan;
		(void)pthread_cond_broadcast(&sim_core.progress);
		(void)pthread_detach(pthread_self());
		stream_free(stream);
	}
	sim_core_unlock();
	return NULL;
}

static CUresult worker_start(struct sim_stream *stream)
{
	sigset_t all;
	sigset_t before;
	int error;

	if (stream->has_worker)
		return CUDA_SUCCESS;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&stream->worker, NULL, worker, stream);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	stream->has_worker = error == 0;
	return error == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_stream_new(struct sim_context *context, unsigned flags, int priority,
			struct sim_stream **ret_stream)
{
	struct sim_stream *stream = calloc(1, sizeof(*stream));

	if (stream == NULL || !sim_set_add(&sim_core.streams, stream)) {
		free(stream);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	stream->context = context;
	stream->id = sim_core_new_id_locked();
	stream->flags = flags;
	stream->priority = priority;
	(void)pthread_cond_init(&stream->has_work, NULL);
	*ret_stream = stream;
	return CUDA_SUCCESS;
}

void sim_stream_drop(struct sim_stream *stream)
{
	sim_capture_stream_dropped(stream);
	sim_set_remove(&sim_core.streams, stream);
	stream->is_destroyed = true;
	stream->is_orphan = stream->first != NULL;
	if (stream->is_orphan && sim_breaks("destroyed_stream_finishes"))
		for (struct sim_work *work = stream->first->next; work; work = work->next)
			work->action.run = NULL;
	stream->context->orphans += stream->is_orphan;
	if (stream->has_worker)
		(void)pthread_cond_signal(&stream->has_work);
	else
		stream_free(stream);
}

void sim_stream_drop_context(struct sim_context *context)
{
	size_t i = 0;

	sim_stream_wait_context(context);
	while (i < sim_core.streams.count) {
		struct sim_stream *stream = sim_core.streams.items[i];

		if (stream->context == context && !stream->is_per_thread)
			sim_stream_drop(stream);
		else
			i++;
	}
	context->legacy_stream = NULL;
}

/* A blocking stream waits for the legacy stream and the legacy stream for all blocking ones. */
static bool must_follow(const struct sim_stream *stream, const struct sim_stream *other)
{
	if (other == stream || other->context != stream->context || other->latest == NULL ||
	    other->latest->is_done)
		return false;
	if (sim_breaks("streams_are_independent"))
		return true;
	if (sim_breaks("default_stream_waits") || sim_breaks("copy_waits_for_blocking_streams"))
		return false;
	if (((stream->flags | other->flags) & CU_STREAM_NON_BLOCKING) != 0 &&
	    !sim_breaks("non_blocking_is_not_waited_for"))
		return false;
	return stream->is_legacy || other->is_legacy;
}

static bool depend_on(struct sim_work *work, struct sim_work *other)
{
	struct sim_work **dependencies;

	if (other == NULL || other->is_done)
		return true;
	dependencies = realloc(work->dependencies,
			       (work->dependency_count + 1) * sizeof(struct sim_work *));
	if (dependencies == NULL)
		return false;
	work->dependencies = dependencies;
	work->dependencies[work->dependency_count++] = other;
	sim_work_ref(other);
	return true;
}

static bool add_dependencies(struct sim_stream *stream, struct sim_work *work,
			     struct sim_work *after)
{
	bool ok = depend_on(work, after);

	for (size_t i = 0; i < sim_core.streams.count && ok; i++) {
		struct sim_stream *other = sim_core.streams.items[i];

		if (must_follow(stream, other))
			ok = depend_on(work, other->latest);
	}
	return ok;
}

static void enqueue(struct sim_stream *stream, struct sim_work *work)
{
	if (stream->last != NULL)
		stream->last->next = work;
	else
		stream->first = work;
	stream->last = work;
	sim_work_unref(stream->latest);
	stream->latest = work;
	stream->queued++;
	work->references++;
	(void)pthread_cond_signal(&stream->has_work);
}

static CUresult submit(struct sim_stream *stream, const struct sim_action *action, void *owned,
		       struct sim_work *after, struct sim_work **ret_work)
{
	struct sim_work *work = calloc(1, sizeof(*work));
	CUresult result = worker_start(stream);

	if (work == NULL || result != CUDA_SUCCESS) {
		free(work);
		free(owned);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	work->references = 1;
	work->context = stream->context;
	work->action = *action;
	work->owned = owned;
	if (!add_dependencies(stream, work, after)) {
		sim_work_unref(work);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	enqueue(stream, work);
	if (ret_work != NULL) {
		sim_work_ref(work);
		*ret_work = work;
	}
	return CUDA_SUCCESS;
}

static void wait_for_room(struct sim_stream *stream)
{
	struct sim_context *context = stream->context;

	if (stream->capture != NULL || stream->queued < QUEUE_WORKS_MAX ||
	    sim_breaks("full_queue_waits"))
		return;
	context->submitters++;
	while (stream->queued >= QUEUE_WORKS_MAX)
		(void)pthread_cond_wait(&sim_core.progress, &sim_core.lock);
	context->submitters--;
	(void)pthread_cond_broadcast(&sim_core.progress);
}

void sim_stream_wait_submitters(const struct sim_context *context)
{
	while (context->submitters > 0 && !sim_breaks("full_queue_shuts_out"))
		(void)pthread_cond_wait(&sim_core.progress, &sim_core.lock);
}

CUresult sim_stream_submit(struct sim_stream *stream, const struct sim_action *action, void *owned,
			   struct sim_work **ret_work)
{
	CUresult result;

	wait_for_room(stream);
	result = sim_capture_check_submit(stream);

	if (ret_work != NULL)
		*ret_work = NULL;
	if (result == CUDA_SUCCESS && stream->capture != NULL && !sim_breaks("capture_records"))
		return sim_capture_add(stream, action, owned);
	if (result == CUDA_SUCCESS)
		return submit(stream, action, owned, NULL, ret_work);
	free(owned);
	return result;
}

CUresult sim_stream_submit_after(struct sim_stream *stream, const struct sim_action *action,
				 struct sim_work *after, struct sim_work **ret_work)
{
	return submit(stream, action, NULL, after, ret_work);
}

CUresult sim_stream_run(struct sim_stream *stream, const struct sim_action *action)
{
	struct sim_work *work = NULL;
	CUresult result = sim_stream_submit(stream, action, NULL, &work);

	if (result != CUDA_SUCCESS || work == NULL)
		return result;
	sim_work_wait(work);
	result = work->result;
	sim_work_unref(work);
	return result;
}

bool sim_stream_is_idle(const struct sim_stream *stream)
{
	return stream->latest == NULL || stream->latest->is_done;
}

/* What was queued when the wait began; the stream itself may go meanwhile. */
void sim_stream_wait(const struct sim_stream *stream)
{
	if (stream->latest != NULL)
		sim_work_hold_and_wait(stream->latest);
}

bool sim_stream_context_is_idle(const struct sim_context *context)
{
	for (size_t i = 0; i < sim_core.streams.count; i++) {
		const struct sim_stream *stream = sim_core.streams.items[i];

		if (stream->context == context && !sim_stream_is_idle(stream))
			return false;
	}
	return context->orphans == 0;
}

/* What was queued when the wait began, so that others who go on submitting do not make it endless. */
void sim_stream_wait_context(const struct sim_context *context)
{
	struct sim_work **works = calloc(sim_core.streams.count + 1, sizeof(struct sim_work *));
	size_t count = 0;

	for (size_t i = 0; i < sim_core.streams.count && works != NULL; i++) {
		const struct sim_stream *stream = sim_core.streams.items[i];

		if (stream->context != context || sim_stream_is_idle(stream))
			continue;
		works[count] = stream->latest;
		sim_work_ref(works[count++]);
	}
	while (count-- > 0) {
		sim_work_wait(works[count]);
		sim_work_unref(works[count]);
	}
	while (context->orphans > 0 || (works == NULL && !sim_stream_context_is_idle(context)))
		(void)pthread_cond_wait(&sim_core.progress, &sim_core.lock);
	free(works);
}

bool sim_stream_all_idle(void)
{
	for (size_t i = 0; i < sim_core.contexts.count; i++)
		if (!sim_stream_context_is_idle(sim_core.contexts.items[i]))
			return false;
	return true;
}

void sim_stream_stop_workers(void)
{
	size_t i = 0;

	sim_core_lock();
	while (i < sim_core.streams.count) {
		struct sim_stream *stream = sim_core.streams.items[i++];
		pthread_t thread = stream->worker;

		if (!stream->has_worker || stream->first != NULL)
			continue;
		stream->is_stopping = true;
		(void)pthread_cond_signal(&stream->has_work);
		sim_core_unlock();
		(void)pthread_join(thread, NULL);
		sim_core_lock();
		stream->is_stopping = false;
		stream->has_worker = false;
		i = 0;
	}
	sim_core_unlock();
}
