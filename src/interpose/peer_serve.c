/*
 * See peer_serve.h. A client has a deadline for its whole request, counted from its connection or its last
 * answer; who is late is dropped. Where descriptors have run out, the clients that are there are served on
 * while the next one waits in the queue.
 */

#include "interpose/peer_serve.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "interpose/descriptors.h"
#include "interpose/phases.h"
#include "wire/call.h"
#include "wire/packet.h"

#define CLIENTS_MAX 64u
#define REQUEST_NS (10 * STASIS_NS_PER_S)
#define RETRY_NS (50 * STASIS_NS_PER_MS)

struct client {
	int fd;
	uint64_t deadline_ns;
};

/* Large, and there is one: kept off the stack. */
static struct {
	const struct stasis_wire_listener *listener;
	const struct stasis_id *participant;
	const struct stasis_id *incarnation;
	struct client clients[CLIENTS_MAX];
	uint32_t client_count;
	uint64_t accept_after_ns;                /* 0: at once */
	struct pollfd poll_fds[CLIENTS_MAX + 1]; /* the listener's is the last */
	struct stasis_wire_message request;
	struct stasis_wire_message answer;
} server;

static void client_drop(uint32_t index)
{
	stasis_descriptors_close(&server.clients[index].fd);
	server.clients[index] = server.clients[--server.client_count];
}

static int fetch_answer(int *ret_fd, struct stasis_error *err)
{
	const struct stasis_wire_fetch_request *fetch = &server.request.fetch_request;

	if (server.request.kind != STASIS_WIRE_REQUEST || server.request.phase != STASIS_WIRE_FETCH)
		return stasis_fail(err, STASIS_REFUSED, "peers may ask for FETCH only");
	if (!stasis_id_equal(&fetch->participant, server.participant) ||
	    !stasis_id_equal(&fetch->incarnation, server.incarnation))
		return stasis_fail(err, STASIS_REFUSED,
				   "the participant asked for is not the one that listens here");
	stasis_wire_answer_begin(&server.request, &server.answer);
	server.answer.fetch_reply.object = fetch->object;
	server.answer.descriptor_count = 1;
	return stasis_phase_fetch(&fetch->object, ret_fd, &server.answer.fetch_reply.bytes, err);
}

/* False: the client is to be dropped. */
static bool client_serve(struct client *client)
{
	struct stasis_error error = STASIS_ERROR_INIT;
	CLEANUP(wire_descriptors) struct stasis_wire_descriptors descriptors = {0};
	CLEANUP(fd) int fd = -1;
	bool is_closed = false;

	if (!stasis_descriptors_is_ours(client->fd) ||
	    stasis_wire_receive(client->fd, &server.request, &descriptors, &is_closed, 0, &error) !=
		    0 ||
	    is_closed)
		return false;
	if (fetch_answer(&fd, &error) != 0)
		stasis_wire_answer_error(&server.request, &error, &server.answer);
	(void)stasis_descriptors_add(fd);
	client->deadline_ns = stasis_deadline_after_ns(REQUEST_NS);
	error = (struct stasis_error)STASIS_ERROR_INIT;
	/* Its queue is empty, if it waits for its answer as it should. */
	if (stasis_wire_send(client->fd, &server.answer, &fd, 0, &error) != 0) {
		/* Too many descriptors in flight, say. */
		struct stasis_error reason = error;

		stasis_wire_answer_error(&server.request, &reason, &server.answer);
		error = (struct stasis_error)STASIS_ERROR_INIT;
		if (stasis_wire_send(client->fd, &server.answer, NULL, 0, &error) != 0) {
			stasis_descriptors_close(&fd);
			return false;
		}
	}
	stasis_descriptors_close(&fd);
	return true;
}

/* From the last on: the place of one that is dropped is taken by one that has been dealt with. */
static void clients_serve(void)
{
	for (uint32_t i = server.client_count; i > 0; i--) {
		struct client *client = &server.clients[i - 1];

		if (server.poll_fds[i - 1].revents != 0) {
			if (!client_serve(client))
				client_drop(i - 1);
		} else if (stasis_deadline_passed(client->deadline_ns)) {
			client_drop(i - 1);
		}
	}
}

static int client_accept(struct stasis_error *err)
{
	int fd = -1;

	if (stasis_wire_peer_accept(server.listener, &fd, 0, err) != 0)
		return -1;
	if (fd < 0) {
		server.accept_after_ns = stasis_deadline_after_ns(RETRY_NS);
		return 0;
	}
	(void)stasis_descriptors_add(fd);
	server.clients[server.client_count++] =
		(struct client){.fd = fd, .deadline_ns = stasis_deadline_after_ns(REQUEST_NS)};
	return 0;
}

static bool can_accept(void)
{
	return server.client_count < CLIENTS_MAX && stasis_deadline_passed(server.accept_after_ns);
}

/* Until when poll may sleep. */
static uint64_t next_deadline(void)
{
	uint64_t next_ns = STASIS_NO_DEADLINE;

	for (uint32_t i = 0; i < server.client_count; i++) {
		if (server.clients[i].deadline_ns < next_ns)
			next_ns = server.clients[i].deadline_ns;
	}
	if (!can_accept() && server.client_count < CLIENTS_MAX && server.accept_after_ns < next_ns)
		next_ns = server.accept_after_ns;
	return next_ns;
}

static struct pollfd *events_wait(void)
{
	struct pollfd *listener = &server.poll_fds[server.client_count];

	for (uint32_t i = 0; i < server.client_count; i++)
		server.poll_fds[i] = (struct pollfd){.fd = server.clients[i].fd, .events = POLLIN};
	*listener = (struct pollfd){.fd = server.listener->fd, .events = can_accept() ? POLLIN : 0};
	while (poll(server.poll_fds, server.client_count + 1,
		    stasis_deadline_poll_ms(next_deadline())) < 0) {
		if (errno != EINTR)
			return NULL;
	}
	return listener;
}

static int clients_and_queue_serve(struct stasis_error *err)
{
	for (;;) {
		const struct pollfd *listener = events_wait();
		short events;

		if (!listener)
			return stasis_fail_errno(err, STASIS_REFUSED, "wait for peers");
		events = listener->revents;
		clients_serve();
		if ((events & POLLHUP) != 0)
			return 0;
		if ((events & (POLLERR | POLLNVAL)) != 0 ||
		    !stasis_descriptors_is_ours(server.listener->fd))
			return stasis_fail(err, STASIS_REFUSED,
					   "wait for peers: the program has closed the socket at "
					   "'%s'",
					   server.listener->path);
		if ((events & POLLIN) != 0 && client_accept(err) != 0)
			return -1;
	}
}

void stasis_peer_serve(const struct stasis_wire_listener *listener,
		       const struct stasis_id *participant, const struct stasis_id *incarnation,
		       struct stasis_error *err)
{
	server.listener = listener;
	server.participant = participant;
	server.incarnation = incarnation;
	server.client_count = 0;
	server.accept_after_ns = 0;
	(void)clients_and_queue_serve(err);
	while (server.client_count > 0)
		client_drop(server.client_count - 1);
}
