/* See busy.h. */

#include "interpose/busy.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "interpose/names.h"

#define THREAD_NAME_BYTES 16

/* Appends to a text that has room for it; no stdio here. */
static size_t text_add(char *text, size_t at, const char *part)
{
	while (*part != '\0')
		text[at++] = *part++;
	text[at] = '\0';
	return at;
}

/* "/proc/self/task/TID/comm" */
static void comm_path(pid_t tid, char path[64])
{
	char digits[16];
	size_t first = sizeof(digits) - 1;
	size_t at = text_add(path, 0, "/proc/self/task/");

	digits[first] = '\0';
	for (uint32_t rest = (uint32_t)tid; rest > 0; rest /= 10)
		digits[--first] = (char)('0' + rest % 10);
	at = text_add(path, at, digits + first);
	(void)text_add(path, at, "/comm");
}

/* "?" where there is none: the thread has ended. */
static void thread_name(pid_t tid, char name[THREAD_NAME_BYTES + 1])
{
	CLEANUP(fd) int fd = -1;
	char path[64];
	ssize_t bytes = 0;

	comm_path(tid, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		bytes = read(fd, name, THREAD_NAME_BYTES);
	if (bytes <= 0) {
		name[0] = '?';
		bytes = 1;
	}
	name[bytes] = '\0';
	name[strcspn(name, "\n")] = '\0';
	for (char *at = name; *at != '\0'; at++) {
		if (*at < ' ' || *at == 0x7f)
			*at = '?';
	}
}

int stasis_busy_gate(int code, const struct stasis_gate_busy *busy, struct stasis_error *err)
{
	char name[THREAD_NAME_BYTES + 1];

	if (code == ENOTSUP)
		return stasis_fail(err, STASIS_REFUSED,
				   "close the gate: calls in flight cannot be told (membarrier is "
				   "refused to this process, or it is out of memory)");
	if (busy->count == 0)
		return stasis_fail_code(err, STASIS_REFUSED, code, "close the gate");
	if (busy->tid == 0)
		return stasis_fail(err, STASIS_REFUSED,
				   "close the gate: %u threads are in calls that do not return",
				   busy->count);
	thread_name(busy->tid, name);
	return stasis_fail(err, STASIS_REFUSED,
			   "close the gate: thread %d ('%s') is in %s, which does not return; %u "
			   "threads in all",
			   (int)busy->tid, name, stasis_entry_name(busy->entry), busy->count);
}

int stasis_busy_capture(const struct stasis_stream_record *capture, CUstreamCaptureStatus status,
			struct stasis_error *err)
{
	const char *what = status == CU_STREAM_CAPTURE_STATUS_INVALIDATED
				   ? "in a capture that was invalidated"
				   : "being captured";
	char name[THREAD_NAME_BYTES + 1];

	thread_name(capture->begun_by, name);
	return stasis_fail(err, STASIS_REFUSED,
			   "close the gate: stream 0x%llx is %s; thread %d ('%s') began it and it "
			   "has not been "
			   "ended",
			   (unsigned long long)(uintptr_t)capture->key.stream, what,
			   (int)capture->begun_by, name);
}

/* NULL: none of those that are known. */
static CUstream stream_busy(const struct stasis_calls *calls, CUcontext context)
{
	CLEANUP(free) struct stasis_stream_record *records = NULL;
	uint32_t count = 0;

	if (!stasis_streams_copy(STASIS_STREAMS, &records, &count))
		return NULL;
	for (uint32_t i = 0; i < count; i++) {
		if (records[i].context == context &&
		    calls->cuStreamQuery(records[i].key.stream) == CUDA_ERROR_NOT_READY)
			return records[i].key.stream;
	}
	return NULL;
}

int stasis_busy_context(const struct stasis_calls *calls, CUcontext context,
			struct stasis_error *err)
{
	CUstream stream = stream_busy(calls, context);

	if (!stream)
		return stasis_fail(err, STASIS_REFUSED,
				   "drain: the work of a default stream, or of one that is not "
				   "known, does not end; it waits for another process, or for a "
				   "thread that the gate holds");
	return stasis_fail(err, STASIS_REFUSED,
			   "drain: the work of stream 0x%llx does not end; it waits for another "
			   "process, or for a thread that the gate holds",
			   (unsigned long long)(uintptr_t)stream);
}
