/*
 * See members.h.
 */

#include "members.h"

#include <string.h>

#include "base/clock.h"
#include "check.h"

static void table_send(struct t_member *member, const struct stasis_wire_peers *peers)
{
	struct t_session *session = &member->session;

	session->request.peers = *peers;
	T_DONE(session, t_session_ask(session, STASIS_WIRE_PEERS));
	memset(&session->request, 0, sizeof(session->request));
}

void t_members_open(struct t_member *members, uint32_t count, const struct stasis_id *of_capture)
{
	static struct stasis_wire_peers peers;

	memset(&peers, 0, sizeof(peers));
	peers.count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct t_session *session = &members[i].session;

		T_DONE(session,
		       t_session_open(session, members[i].child.pid,
				      i > 0 ? &members[0].session.operation : NULL, of_capture));
		members[i].participant = session->reply.session_reply.participant;
		peers.peers[i] = (struct stasis_wire_peer){
			session->reply.session_reply.participant,
			session->reply.session_reply.incarnation,
		};
	}
	for (uint32_t i = 0; i < count; i++)
		table_send(&members[i], &peers);
}

void t_members_close(struct t_member *members, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		t_session_close(&members[i].session);
}

void t_member_do(struct t_member *member, enum stasis_wire_phase phase)
{
	struct t_session *session = &member->session;

	if (phase == STASIS_WIRE_GATE) {
		T_DONE(session, t_session_gate(session, STASIS_WIRE_GATE_CAPTURES));
		T_DONE(session, t_session_gate(session, STASIS_WIRE_GATE_ALL));
		return;
	}
	if (phase == STASIS_WIRE_ARM) {
		strcpy(session->request.arm_request.journal, "/journal");
		strcpy(session->request.arm_request.image, "/image");
	}
	T_DONE(session, t_session_ask(session, phase));
	memset(&session->request, 0, sizeof(session->request));
}

void t_members_do(struct t_member *members, uint32_t count, enum stasis_wire_phase from,
		  enum stasis_wire_phase to)
{
	for (int phase = (int)from; phase <= (int)to; phase++) {
		for (uint32_t i = 0; i < count; i++)
			t_member_do(&members[i], (enum stasis_wire_phase)phase);
	}
}

void t_member_take(struct t_member *member, enum stasis_wire_phase phase)
{
	struct t_session *session = &member->session;

	stasis_wire_descriptors_close(&member->descriptors);
	T_DONE(session, t_session_ask(session, phase));
	member->exports = session->reply.exports;
	member->descriptors = session->descriptors;
	session->descriptors.count = 0;
}

/* Whether INSPECT, whose page is in the session's reply, names it as created there. */
static bool is_created(const struct t_session *session, const struct stasis_id *object)
{
	const struct stasis_wire_inspect_page *page = &session->reply.inspect_page;

	for (uint32_t i = 0; i < page->count; i++) {
		const struct stasis_wire_record *record = &page->records[i];

		if (record->type == STASIS_WIRE_ALLOCATION &&
		    record->allocation.role == STASIS_WIRE_CREATOR &&
		    stasis_id_equal(&record->allocation.object, object))
			return true;
	}
	return false;
}

void t_member_keep_created(struct t_member *member)
{
	struct stasis_wire_exports *exports = &member->exports;
	struct stasis_wire_descriptors all = member->descriptors;
	uint32_t count = 0;

	T_DONE(&member->session, t_session_ask(&member->session, STASIS_WIRE_INSPECT));
	for (uint32_t i = 0; i < exports->count; i++) {
		if (!is_created(&member->session, &exports->items[i].object))
			continue;
		exports->items[count] = exports->items[i];
		member->descriptors.fds[count++] = stasis_wire_descriptors_take(&all, i);
	}
	exports->count = count;
	member->descriptors.count = count;
	stasis_wire_descriptors_close(&all);
}

int t_member_load(struct t_member *member, const struct stasis_wire_exports *exports,
		  const struct stasis_wire_descriptors *descriptors)
{
	struct t_session *session = &member->session;
	int result;

	session->request.kind = STASIS_WIRE_REQUEST;
	session->request.phase = STASIS_WIRE_LOAD_ALLOCATIONS;
	session->request.operation = session->operation;
	session->request.sequence = ++session->sequence;
	session->request.descriptor_count = descriptors ? descriptors->count : 0;
	session->request.exports = *exports;
	session->request.exports.first = 0;
	session->error = (struct stasis_error)STASIS_ERROR_INIT;
	result = stasis_wire_call(session->socket_fd, &session->request,
				  descriptors ? descriptors->fds : NULL, &session->reply, NULL,
				  stasis_deadline_after_ns(60 * STASIS_NS_PER_S), &session->error);
	memset(&session->request, 0, sizeof(session->request));
	return result;
}
