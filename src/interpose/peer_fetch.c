/*
 * The asking side of peer.h, and the table that says whom to ask.
 */

#include "interpose/peer.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mutex.h"
#include "interpose/peer_table.h"
#include "interpose/settings.h"
#include "wire/call.h"
#include "wire/peer.h"

/* A participant for each process of a node many times over. */
#define ROWS_MAX 65536u

static struct stasis_mutex table_lock = STASIS_MUTEX_INITIALIZER;

static struct {
	struct stasis_wire_peer *rows GUARDED_BY(table_lock);
	uint32_t row_count GUARDED_BY(table_lock);
	uint32_t room GUARDED_BY(table_lock);
} table;

void stasis_peer_table_forget(void) NO_THREAD_SAFETY_ANALYSIS
{
	/* What the rows lie in may just have been changed by a thread that is not there. */
	memset(&table, 0, sizeof(table));
	table_lock = (struct stasis_mutex)STASIS_MUTEX_INITIALIZER;
}

bool stasis_peer_table_find(const struct stasis_id *participant, struct stasis_id *ret_incarnation)
{
	bool is_found = false;

	stasis_mutex_lock(&table_lock);
	for (uint32_t i = 0; i < table.row_count && !is_found; i++) {
		is_found = stasis_id_equal(&table.rows[i].participant, participant);
		if (is_found)
			*ret_incarnation = table.rows[i].incarnation;
	}
	stasis_mutex_unlock(&table_lock);
	return is_found;
}

static int room_make(uint32_t row_count, struct stasis_error *err) REQUIRES(table_lock)
{
	struct stasis_wire_peer *rows;

	if (row_count > ROWS_MAX)
		return stasis_fail(err, STASIS_REFUSED, "more than %u participants in one group",
				   ROWS_MAX);
	if (row_count <= table.room)
		return 0;
	rows = realloc(table.rows, row_count * sizeof(*rows));
	if (!rows)
		return stasis_fail_errno(err, STASIS_REFUSED, "keep the table of %u participants",
					 row_count);
	table.rows = rows;
	table.room = row_count;
	return 0;
}

int stasis_peer_table(const struct stasis_wire_peers *peers, bool is_first,
		      struct stasis_error *err)
{
	int result;

	stasis_mutex_lock(&table_lock);
	if (is_first)
		table.row_count = 0;
	result = room_make(table.row_count + peers->count, err);
	if (result == 0 && peers->count > 0) {
		memcpy(table.rows + table.row_count, peers->peers,
		       peers->count * sizeof(*peers->peers));
		table.row_count += peers->count;
	}
	stasis_mutex_unlock(&table_lock);
	return result;
}

static void request_fill(struct stasis_wire_message *request, const struct stasis_id *participant,
			 const struct stasis_id *incarnation, const struct stasis_id *object)
{
	memset(request, 0, sizeof(*request));
	request->kind = STASIS_WIRE_REQUEST;
	request->phase = STASIS_WIRE_FETCH;
	request->sequence = 1;
	request->fetch_request.participant = *participant;
	request->fetch_request.incarnation = *incarnation;
	request->fetch_request.object = *object;
}

/* Where the creator listens. */
static int creator_find(const char *directory, const struct stasis_id *participant,
			struct stasis_id *ret_incarnation, struct stasis_error *err)
{
	if (stasis_peer_table_find(participant, ret_incarnation))
		return 0;
	return stasis_wire_peer_find(directory, participant, ret_incarnation, err);
}

/* On the program's own thread, whose stack may be small. */
struct exchange {
	struct stasis_wire_message request;
	struct stasis_wire_message answer;
	struct stasis_wire_descriptors descriptors;
};

static int fetch(const struct stasis_id *participant, const struct stasis_id *object,
		 uint64_t deadline_ns, struct exchange *exchange, struct stasis_error *err)
{
	CLEANUP(fd) int socket_fd = -1;
	char directory[STASIS_WIRE_SOCKET_PATH_BYTES];
	struct stasis_id incarnation;

	if (stasis_settings_directory(directory, err) != 0 ||
	    creator_find(directory, participant, &incarnation, err) != 0 ||
	    stasis_wire_peer_connect(directory, participant, &incarnation, &socket_fd, deadline_ns,
				     err) != 0)
		return -1;
	request_fill(&exchange->request, participant, &incarnation, object);
	return stasis_wire_call(socket_fd, &exchange->request, NULL, &exchange->answer,
				&exchange->descriptors, deadline_ns, err);
}

static int answer_take(struct exchange *exchange, const struct stasis_id *object, int *ret_fd,
		       uint64_t *ret_bytes, struct stasis_error *err)
{
	char text[STASIS_ID_TEXT_BYTES];

	if (exchange->answer.kind != STASIS_WIRE_REPLY || exchange->descriptors.count != 1 ||
	    !stasis_id_equal(&exchange->answer.fetch_reply.object, object))
		return stasis_fail(err, STASIS_REFUSED,
				   "fetch object %s from its creator: it sent another one",
				   stasis_id_format(object, text));
	*ret_bytes = exchange->answer.fetch_reply.bytes;
	*ret_fd = stasis_wire_descriptors_take(&exchange->descriptors, 0);
	return 0;
}

int stasis_peer_fetch(const struct stasis_id *participant, const struct stasis_id *object,
		      uint64_t deadline_ns, int *ret_fd, uint64_t *ret_bytes,
		      struct stasis_error *err)
{
	CLEANUP(free) struct exchange *exchange = calloc(1, sizeof(*exchange));
	char text[STASIS_ID_TEXT_BYTES];
	int result;

	if (!exchange)
		return stasis_fail_errno(err, STASIS_REFUSED, "fetch an object from its creator");
	if (fetch(participant, object, deadline_ns, exchange, err) != 0) {
		stasis_error_context(err, "fetch object %s from its creator",
				     stasis_id_format(object, text));
		return -1;
	}
	result = answer_take(exchange, object, ret_fd, ret_bytes, err);
	stasis_wire_descriptors_close(&exchange->descriptors);
	return result;
}
