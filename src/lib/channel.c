/*
 * See channel.h.
 */

#include "lib/channel.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fault.h"

static void record_send(struct stasis_lib_channel *channel, const struct stasis_lib_record *record,
			int flags)
{
	ssize_t count;

	do {
		count = send(channel->fd, record, sizeof(*record), MSG_NOSIGNAL | flags);
	} while (count < 0 && errno == EINTR);
	if (count < 0 && (errno == EPIPE || errno == ECONNRESET))
		channel->is_peer_gone = true;
}

static struct stasis_lib_record event_record(const char *key, const char *value)
{
	struct stasis_lib_record record = {.kind = STASIS_LIB_RECORD_EVENT};

	(void)snprintf(record.key, sizeof(record.key), "%s", key);
	(void)snprintf(record.text, sizeof(record.text), "%s", value);
	return record;
}

/* A stasis_event_function. */
static void event_send(const char *key, const char *value, void *argument)
{
	struct stasis_lib_record record = event_record(key, value);

	record_send(argument, &record, 0);
}

void stasis_lib_channel_init(struct stasis_lib_channel *channel, int fd,
			     stasis_lib_call_word *call_word)
{
	*channel = (struct stasis_lib_channel){
		.fd = fd,
		.call_word = call_word,
		.sink = {.function = event_send, .argument = channel},
	};
}

void stasis_lib_channel_send(struct stasis_lib_channel *channel,
			     const struct stasis_lib_record *record)
{
	record_send(channel, record, 0);
}

void stasis_lib_channel_fact(struct stasis_lib_channel *channel, enum stasis_lib_fact fact,
			     const char *text)
{
	struct stasis_lib_record record = {
		.kind = STASIS_LIB_RECORD_FACT,
		.number = (int32_t)fact,
	};

	(void)snprintf(record.text, sizeof(record.text), "%s", text);
	record_send(channel, &record, 0);
}

void stasis_lib_channel_workload(struct stasis_lib_channel *channel, pid_t pid)
{
	struct stasis_lib_record record = {.kind = STASIS_LIB_RECORD_WORKLOAD, .number = pid};

	record_send(channel, &record, 0);
}

void stasis_lib_channel_end(struct stasis_lib_channel *channel, const struct stasis_error *err)
{
	struct stasis_lib_record record = {.kind = STASIS_LIB_RECORD_END, .err = *err};

	record_send(channel, &record, 0);
}

void stasis_lib_channel_progress(struct stasis_lib_channel *channel, const char *label,
				 uint64_t done_bytes, uint64_t total_bytes)
{
	struct stasis_lib_record record;
	char value[96];

	(void)snprintf(value, sizeof(value), "%s %" PRIu64 " %" PRIu64, label, done_bytes,
		       total_bytes);
	record = event_record("progress", value);
	record_send(channel, &record, MSG_DONTWAIT);
}

bool stasis_lib_channel_is_cancelled(struct stasis_lib_channel *channel)
{
	char byte;
	ssize_t count;

	if (channel->is_past_cancel)
		return false;
	if (channel->is_peer_gone || channel->is_giving_up)
		return true;
	count = recv(channel->fd, &byte, sizeof(byte), MSG_DONTWAIT);
	if (count == 0 || (count < 0 && errno == ECONNRESET))
		channel->is_peer_gone = true;
	else if (count > 0)
		channel->is_giving_up = true;
	return count >= 0 || channel->is_peer_gone;
}

/* Reports the phase and passes its fault point; the errno with which that is to fail, or 0. */
static int phase_report(struct stasis_lib_channel *channel, enum stasis_lib_phase phase)
{
	struct stasis_lib_record record = {
		.kind = STASIS_LIB_RECORD_PHASE,
		.number = (int32_t)phase,
	};
	char point[48];

	record_send(channel, &record, 0);
	(void)snprintf(point, sizeof(point), "%s_%s", stasis_lib_phase_family(phase),
		       stasis_lib_phase_name(phase));
	return stasis_fault_point(point);
}

void stasis_lib_phase_enter(struct stasis_lib_channel *channel, enum stasis_lib_phase phase)
{
	(void)phase_report(channel, phase);
}

int stasis_lib_phase_begin(struct stasis_lib_channel *channel, enum stasis_lib_phase phase,
			   struct stasis_error *err)
{
	int code = phase_report(channel, phase);

	if (code)
		return stasis_fail_code(err, STASIS_REFUSED, code, "begin phase '%s'",
					stasis_lib_phase_name(phase));
	if (stasis_lib_channel_is_cancelled(channel))
		return stasis_fail(err, STASIS_REFUSED, "%s before phase '%s'",
				   channel->is_peer_gone ? "the supervisor ended"
							 : "it was given up",
				   stasis_lib_phase_name(phase));
	return 0;
}

int stasis_lib_channel_receive(int fd, struct stasis_lib_record *ret_record, bool *ret_is_end,
			       struct stasis_error *err)
{
	ssize_t count;

	/* A child that ends without having read our word to it resets the connection; what it said waits behind that. */
	do {
		count = recv(fd, ret_record, sizeof(*ret_record), 0);
	} while (count < 0 && (errno == EINTR || errno == ECONNRESET));
	if (count < 0)
		return stasis_fail_errno(err, STASIS_INTERNAL, "receive from the worker");
	if (count > 0 && (size_t)count != sizeof(*ret_record))
		return stasis_fail(err, STASIS_INTERNAL, "a record of the worker has %zd bytes",
				   count);
	*ret_is_end = count <= 0;
	return 0;
}

void stasis_lib_channel_cancel(int fd)
{
	(void)send(fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}
