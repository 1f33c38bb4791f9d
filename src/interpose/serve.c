/*
 * See serve.h. A request passes: is it done already (wire/call.h), is it legal here (lifecycle.h), then the phase
 * itself (phases.h), then its answer is kept, then sent. So an answer that is lost can be asked for.
 */

#include "interpose/serve.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "interpose/descriptors.h"
#include "interpose/identity.h"
#include "interpose/inspect.h"
#include "interpose/peer.h"
#include "interpose/phases.h"

/* For a coordinator to take an answer that waits for it. */
#define SEND_NS (10 * STASIS_NS_PER_S)
/* What can be read is there whole. */
#define RECEIVE_NS STASIS_NS_PER_S
/* For the answer to a peer that is just being made. */
#define PEER_CLOSE_NS (30 * STASIS_NS_PER_S)

static const struct stasis_id no_id;

typedef int phase_function(struct stasis_serve *serve, struct stasis_error *err);
typedef int plain_phase(struct stasis_wire_done *ret_done, struct stasis_error *err);

/*
 * Phases without a body. What may be in the answer already is undefined after a failure: it is filled anew.
 */
#define PLAIN(name)                                                                                \
	static int name##_serve(struct stasis_serve *serve, struct stasis_error *err)              \
	{                                                                                          \
		return stasis_phase_##name(&serve->answer.done, err);                              \
	}

PLAIN(prepare_multicast)
PLAIN(restore_unicast)
PLAIN(restore_multicast_creators)
PLAIN(restore_multicast_importers)
PLAIN(restore_multicast_devices)
PLAIN(restore_multicast_bindings)

static int peers_serve(struct stasis_serve *serve, struct stasis_error *err)
{
	if (stasis_peer_table(&serve->request.peers, !serve->has_peers_page, err) != 0) {
		serve->has_peers_page = false;
		return -1;
	}
	serve->has_peers_page = (serve->request.flags & STASIS_WIRE_MORE) != 0;
	serve->answer.done.objects = serve->request.peers.count;
	return 0;
}

static int inspect_serve(struct stasis_serve *serve, struct stasis_error *err)
{
	bool has_more = false;

	(void)err;
	stasis_inspect_page(&serve->request.inspect_request, &serve->answer.inspect_page,
			    &has_more);
	serve->answer.flags = has_more ? STASIS_WIRE_MORE : 0;
	return 0;
}

static int gate_serve(struct stasis_serve *serve, struct stasis_error *err)
{
	const struct stasis_wire_gate_request *gate = &serve->request.gate_request;

	return stasis_phase_gate((enum stasis_wire_gate_step)gate->step, gate->limit_ns,
				 &serve->answer.done, err);
}

static int page_serve(struct stasis_serve *serve,
		      int page_function(uint64_t, struct stasis_phase_page *,
					struct stasis_error *),
		      struct stasis_error *err)
{
	struct stasis_phase_page *page = &serve->page;

	memset(page, 0, sizeof(*page));
	if (page_function(serve->request.exports.first, page, err) != 0)
		return -1;
	for (uint32_t i = 0; i < page->descriptors.count; i++)
		(void)stasis_descriptors_add(page->descriptors.fds[i]);
	serve->answer.exports = page->exports;
	serve->answer.descriptor_count = page->descriptors.count;
	serve->answer.flags = page->has_more ? STASIS_WIRE_MORE : 0;
	return 0;
}

static int save_serve(struct stasis_serve *serve, struct stasis_error *err)
{
	return page_serve(serve, stasis_phase_save_page, err);
}

static int export_serve(struct stasis_serve *serve, struct stasis_error *err)
{
	return page_serve(serve, stasis_phase_export_page, err);
}

static void disarm(struct stasis_serve *serve)
{
	serve->capture = no_id;
	serve->control.journal[0] = '\0';
	serve->control.image[0] = '\0';
}

static int arm_serve(struct stasis_serve *serve, struct stasis_error *err)
{
	const struct stasis_wire_arm_request *arm = &serve->request.arm_request;

	memcpy(serve->control.journal, arm->journal, sizeof(arm->journal));
	memcpy(serve->control.image, arm->image, sizeof(arm->image));
	if (stasis_serve_publish(serve, err) != 0) {
		disarm(serve);
		return -1;
	}
	serve->capture = serve->request.operation;
	return 0;
}

/* After it nothing of the peers' service is open, which a native checkpoint and a dump rely on. */
static int prepare_unicast_serve(struct stasis_serve *serve, struct stasis_error *err)
{
	if (stasis_phase_prepare_unicast(&serve->answer.done, err) != 0)
		return -1;
	return stasis_peer_close(stasis_deadline_after_ns(PEER_CLOSE_NS), err);
}

static int load_serve(struct stasis_serve *serve, struct stasis_error *err)
{
	struct stasis_error ignored = STASIS_ERROR_INIT;
	bool is_last = (serve->request.flags & STASIS_WIRE_MORE) == 0;

	/* If it fails, whoever needs this process's socket will say so; nobody may. */
	(void)stasis_peer_reopen(&ignored);
	return stasis_phase_load_allocations(&serve->request.exports, &serve->incoming, is_last,
					     &serve->answer.done, err);
}

static int open_serve(struct stasis_serve *serve, struct stasis_error *err)
{
	if (stasis_phase_open(&serve->answer.done, err) != 0)
		return -1;
	disarm(serve);
	return 0;
}

static phase_function *const phases[STASIS_WIRE_PHASE_COUNT] = {
	[STASIS_WIRE_PEERS] = peers_serve,
	[STASIS_WIRE_INSPECT] = inspect_serve,
	[STASIS_WIRE_GATE] = gate_serve,
	[STASIS_WIRE_SAVE_ALLOCATIONS] = save_serve,
	[STASIS_WIRE_ARM] = arm_serve,
	[STASIS_WIRE_PREPARE_MULTICAST] = prepare_multicast_serve,
	[STASIS_WIRE_PREPARE_UNICAST] = prepare_unicast_serve,
	[STASIS_WIRE_LOAD_ALLOCATIONS] = load_serve,
	[STASIS_WIRE_EXPORT_ALLOCATIONS] = export_serve,
	[STASIS_WIRE_RESTORE_UNICAST] = restore_unicast_serve,
	[STASIS_WIRE_RESTORE_MULTICAST_CREATORS] = restore_multicast_creators_serve,
	[STASIS_WIRE_RESTORE_MULTICAST_IMPORTERS] = restore_multicast_importers_serve,
	[STASIS_WIRE_RESTORE_MULTICAST_DEVICES] = restore_multicast_devices_serve,
	[STASIS_WIRE_RESTORE_MULTICAST_BINDINGS] = restore_multicast_bindings_serve,
	[STASIS_WIRE_OPEN] = open_serve,
};

int stasis_serve_publish(struct stasis_serve *serve, struct stasis_error *err)
{
	if (serve->control_fd < 0)
		return 0;
	if (!stasis_descriptors_is_ours(serve->control_fd))
		return stasis_fail(err, STASIS_REFUSED,
				   "write the control file: the program has closed its descriptor");
	return stasis_wire_control_write(serve->control_fd, &serve->control, err);
}

/* Does the phase; serve->answer becomes its answer. The control file names it before it begins. */
static void phase_do(struct stasis_serve *serve)
{
	struct stasis_error error = STASIS_ERROR_INIT;
	const struct stasis_wire_message *request = &serve->request;
	bool is_done;

	stasis_wire_answer_begin(request, &serve->answer);
	if (stasis_lifecycle_check(serve->standing, request, &error) != 0) {
		stasis_wire_answer_error(request, &error, &serve->answer);
		return;
	}
	serve->control.phase = (uint8_t)request->phase;
	is_done = stasis_serve_publish(serve, &error) == 0;
	if (is_done) {
		is_done = phases[request->phase](serve, &error) == 0;
		serve->standing = stasis_lifecycle_after(serve->standing, request, is_done);
	}
	if (is_done)
		return;
	/* A phase that failed and did not say why is a mistake of ours; an answer needs a text. */
	if (!stasis_error_is_set(&error))
		(void)stasis_fail(&error, STASIS_INTERNAL, "it failed and did not say why");
	stasis_error_context(&error, "%s", stasis_wire_phase_name((uint32_t)request->phase));
	stasis_wire_answer_error(request, &error, &serve->answer);
}

/*
 * What cannot be sent (too many descriptors in flight) is answered with the reason. Only pages can meet that: what
 * is kept has neither descriptors nor much length.
 */
static int answer_send(struct stasis_serve *serve, struct stasis_error *err)
{
	struct stasis_error reason = STASIS_ERROR_INIT;

	if (stasis_wire_send(serve->session_fd, &serve->answer, serve->page.descriptors.fds,
			     stasis_deadline_after_ns(SEND_NS), &reason) == 0)
		return 0;
	if (!stasis_wire_phase_is_repeatable(serve->request.phase)) {
		stasis_error_take(err, &reason);
		return -1;
	}
	stasis_wire_answer_error(&serve->request, &reason, &serve->answer);
	return stasis_wire_send(serve->session_fd, &serve->answer, NULL, 0, err);
}

/* Does what is new, keeps its answer, sends it; -1: the session cannot go on. */
static int request_serve(struct stasis_serve *serve, struct stasis_error *err)
{
	struct stasis_error refusal = STASIS_ERROR_INIT;
	enum stasis_wire_verdict verdict = STASIS_WIRE_DO;

	if (stasis_wire_kept_judge(&serve->kept, &serve->request, &verdict, &refusal) != 0) {
		stasis_wire_answer_error(&serve->request, &refusal, &serve->answer);
		return answer_send(serve, err);
	}
	if (verdict == STASIS_WIRE_SEND_KEPT)
		return stasis_wire_kept_send(&serve->kept, serve->session_fd, serve->request.phase,
					     stasis_deadline_after_ns(SEND_NS), err);
	if (verdict == STASIS_WIRE_NEVER_CAME) {
		stasis_wire_answer_begin(&serve->request, &serve->answer);
		serve->answer.kind = STASIS_WIRE_UNKNOWN;
		return answer_send(serve, err);
	}
	phase_do(serve);
	if (stasis_wire_kept_add(&serve->kept, &serve->answer, err) != 0)
		return -1;
	return answer_send(serve, err);
}

static void page_close(struct stasis_phase_page *page)
{
	for (uint32_t i = 0; i < page->descriptors.count; i++)
		stasis_descriptors_close(&page->descriptors.fds[i]);
	page->descriptors.count = 0;
}

void stasis_serve_request(struct stasis_serve *serve)
{
	struct stasis_error error = STASIS_ERROR_INIT;
	bool is_closed = false;
	bool is_over;

	/* The number may have become a file of the program's, which must not lose what it holds. */
	is_over = !stasis_descriptors_is_ours(serve->session_fd) ||
		  stasis_wire_receive(serve->session_fd, &serve->request, &serve->incoming,
				      &is_closed, stasis_deadline_after_ns(RECEIVE_NS),
				      &error) != 0 ||
		  is_closed || serve->request.kind != STASIS_WIRE_REQUEST ||
		  request_serve(serve, &error) != 0;
	stasis_wire_descriptors_close(&serve->incoming);
	page_close(&serve->page);
	if (is_over)
		stasis_serve_end(serve);
}

void stasis_serve_end(struct stasis_serve *serve)
{
	struct stasis_error error = STASIS_ERROR_INIT;
	struct stasis_wire_done done;

	stasis_descriptors_close(&serve->session_fd);
	serve->coordinator_pid = 0;
	serve->has_peers_page = false;
	if (stasis_lifecycle_is_armed(serve->standing))
		return;
	if (serve->standing != STASIS_STANDING_RUNNING && stasis_phase_open(&done, &error) == 0) {
		serve->standing = STASIS_STANDING_RUNNING;
		/* What was answered is no longer so. */
		memset(&serve->kept, 0, sizeof(serve->kept));
	}
	serve->control.operation = no_id;
	serve->control.phase = 0;
	(void)stasis_serve_publish(serve, &error);
}

/* Whether this coordinator may come in now. */
static int session_judge(const struct stasis_serve *serve,
			 const struct stasis_wire_message *request, struct stasis_error *err)
{
	char text[STASIS_ID_TEXT_BYTES];
	const struct stasis_id *capture = &request->session_request.capture;

	if (stasis_id_equal(&request->operation, &no_id))
		return stasis_fail(err, STASIS_REFUSED, "a session needs the id of its operation");
	if (serve->session_fd >= 0) {
		(void)stasis_fail(err, STASIS_REFUSED, "busy: coordinator pid %u, operation %s",
				  serve->coordinator_pid,
				  stasis_id_format(&serve->control.operation, text));
		err->os_errno = EBUSY;
		return -1;
	}
	if (stasis_lifecycle_is_armed(serve->standing) &&
	    !stasis_id_equal(&request->operation, &serve->control.operation) &&
	    !stasis_id_equal(capture, &serve->capture))
		return stasis_fail(err, STASIS_REFUSED,
				   "this participant is %s, in capture %s, and the session is "
				   "another one's; resume or recover that capture",
				   stasis_lifecycle_name(serve->standing),
				   stasis_id_format(&serve->capture, text));
	/* The answers to an operation can be asked for after it has opened the gate. */
	if (!stasis_lifecycle_is_armed(serve->standing) && !stasis_id_equal(capture, &no_id) &&
	    !stasis_id_equal(&request->operation, &serve->kept.operation))
		return stasis_fail(err, STASIS_REFUSED,
				   "this participant is %s, and in no capture that could be "
				   "resumed",
				   stasis_lifecycle_name(serve->standing));
	return 0;
}

static void session_refuse(struct stasis_serve *serve, const struct stasis_wire_message *request,
			   const struct stasis_error *refusal, int *socket_fd)
{
	struct stasis_error ignored = STASIS_ERROR_INIT;

	stasis_wire_answer_error(request, refusal, &serve->answer);
	/* At once or not at all: a stranger must not hold up whoever is being served. */
	if (stasis_wire_send(*socket_fd, &serve->answer, NULL, 0, &ignored) != 0)
		(void)ignored; /* the end of file says it, too */
	stasis_descriptors_close(socket_fd);
}

static int session_begin(struct stasis_serve *serve, const struct stasis_wire_message *request,
			 struct stasis_error *err)
{
	struct stasis_id before = serve->control.operation;

	/* A copy of this process may have been restored elsewhere: it must not answer to one name with it. */
	if (serve->standing == STASIS_STANDING_DOWN && stasis_peer_renew(err) != 0)
		return -1;
	stasis_peer_incarnation(&serve->control.incarnation);
	serve->control.operation = request->operation;
	if (stasis_serve_publish(serve, err) != 0) {
		serve->control.operation = before;
		return -1;
	}
	stasis_wire_kept_begin(&serve->kept, &request->operation);
	return 0;
}

static void session_greet(struct stasis_serve *serve, const struct stasis_wire_message *request)
{
	struct stasis_wire_session_reply *reply = &serve->answer.session_reply;

	stasis_wire_answer_begin(request, &serve->answer);
	reply->participant = serve->control.participant;
	reply->incarnation = serve->control.incarnation;
	reply->pid = serve->control.pid;
	reply->reached_phase = stasis_lifecycle_phase(serve->standing);
	memcpy(reply->build, serve->control.build, sizeof(reply->build));
}

/* One that looks only. */
static void observer_admit(struct stasis_serve *serve, const struct stasis_wire_message *request,
			   int socket_fd)
{
	struct stasis_error refusal = STASIS_ERROR_INIT;
	int *place = NULL;

	for (size_t i = 0; i < STASIS_SERVE_OBSERVERS && !place; i++) {
		if (serve->observer_fds[i] < 0)
			place = &serve->observer_fds[i];
	}
	if (!place) {
		(void)stasis_fail(&refusal, STASIS_REFUSED, "busy: %d observers",
				  STASIS_SERVE_OBSERVERS);
		refusal.os_errno = EBUSY;
		session_refuse(serve, request, &refusal, &socket_fd);
		return;
	}
	*place = socket_fd;
	session_greet(serve, request);
	if (stasis_wire_send(socket_fd, &serve->answer, NULL, 0, &refusal) != 0)
		stasis_descriptors_close(place);
}

/* What it asks is answered at once or not at all: it must not hold up whoever is being served. */
void stasis_serve_observer(struct stasis_serve *serve, int *observer_fd)
{
	struct stasis_error error = STASIS_ERROR_INIT;
	bool is_closed = false;
	bool is_over;

	is_over = !stasis_descriptors_is_ours(*observer_fd) ||
		  stasis_wire_receive(*observer_fd, &serve->request, &serve->incoming, &is_closed,
				      stasis_deadline_after_ns(RECEIVE_NS), &error) != 0 ||
		  is_closed || serve->request.kind != STASIS_WIRE_REQUEST ||
		  serve->request.phase != STASIS_WIRE_INSPECT;
	stasis_wire_descriptors_close(&serve->incoming);
	if (!is_over) {
		stasis_wire_answer_begin(&serve->request, &serve->answer);
		is_over = inspect_serve(serve, &error) != 0 ||
			  stasis_wire_send(*observer_fd, &serve->answer, NULL, 0, &error) != 0;
	}
	if (is_over)
		stasis_descriptors_close(observer_fd);
}

void stasis_serve_session(struct stasis_serve *serve, const struct stasis_wire_message *request,
			  int socket_fd)
{
	struct stasis_error error = STASIS_ERROR_INIT;

	(void)stasis_descriptors_add(socket_fd);
	if (request->session_request.is_observer) {
		observer_admit(serve, request, socket_fd);
		return;
	}
	if (session_judge(serve, request, &error) != 0 ||
	    session_begin(serve, request, &error) != 0) {
		session_refuse(serve, request, &error, &socket_fd);
		return;
	}
	serve->session_fd = socket_fd;
	serve->coordinator_pid = request->session_request.coordinator_pid;
	session_greet(serve, request);
	if (stasis_wire_send(socket_fd, &serve->answer, NULL, stasis_deadline_after_ns(SEND_NS),
			     &error) != 0)
		stasis_serve_end(serve);
}
