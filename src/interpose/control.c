/*
 * See control.h. What the start makes is private until the thread that serves it runs; who comes while another
 * one starts goes on. The door's near end is polled together with the session.
 */

#include "interpose/control.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "interpose/descriptors.h"
#include "interpose/fork.h"
#include "interpose/identity.h"
#include "interpose/peer.h"
#include "interpose/serve.h"
#include "interpose/thread.h"
#include "wire/session.h"

#define RETRY_NS STASIS_NS_PER_S
#define ACCEPT_NS STASIS_NS_PER_S

enum state { NONE, STARTING, RUNNING };

static struct {
	atomic_int state;              /* an enum state */
	_Atomic(uint64_t) retry_at_ns; /* after a failed start */
	int near_fd;                   /* from here on: of the thread that starts, then of ours */
	int far_fd;
	struct stasis_serve serve;
	struct stasis_wire_message session_request;
} control = {.near_fd = -1, .far_fd = -1};

static void door_close(void)
{
	stasis_descriptors_close(&control.near_fd);
	stasis_descriptors_close(&control.far_fd);
	stasis_descriptors_close(&control.serve.control_fd);
}

/* The door, and the file that tells of it. */
static int door_open(struct stasis_error *err)
{
	struct stasis_serve *serve = &control.serve;

	if (stasis_wire_door_open(&control.near_fd, &control.far_fd, err) != 0)
		return -1;
	(void)stasis_descriptors_add(control.near_fd);
	(void)stasis_descriptors_add(control.far_fd);
	serve->control.door_fd = control.far_fd;
	if (stasis_wire_control_create(&serve->control, &serve->control_fd, err) != 0) {
		door_close();
		return -1;
	}
	(void)stasis_descriptors_add(serve->control_fd);
	return 0;
}

static bool door_is_ours(void)
{
	return stasis_descriptors_is_ours(control.near_fd) &&
	       stasis_descriptors_is_ours(control.far_fd) &&
	       stasis_descriptors_is_ours(control.serve.control_fd);
}

/* A program that closes descriptors by number may have closed ours. */
static void door_renew(void)
{
	struct stasis_error ignored = STASIS_ERROR_INIT;
	struct timespec pause = {.tv_sec = 1};

	door_close();
	if (door_open(&ignored) != 0)
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

static void door_answer(void)
{
	struct stasis_error refusal = STASIS_ERROR_INIT;
	int session_fd = -1;

	/* What is no session has been closed; whoever sent it sees that. */
	if (stasis_wire_session_accept(control.near_fd, &control.session_request, &session_fd,
				       stasis_deadline_after_ns(ACCEPT_NS), &refusal) == 0)
		stasis_serve_session(&control.serve, &control.session_request, session_fd);
}

static void *serve_all(void *name)
{
	(void)pthread_setname_np(pthread_self(), name);
	for (;;) {
		struct pollfd events[2 + STASIS_SERVE_OBSERVERS] = {
			{.fd = control.near_fd, .events = POLLIN},
			{.fd = control.serve.session_fd, .events = POLLIN},
		};

		for (size_t i = 0; i < STASIS_SERVE_OBSERVERS; i++)
			events[2 + i] = (struct pollfd){.fd = control.serve.observer_fds[i],
							.events = POLLIN};

		if (poll(events, ARRAY_COUNT(events), -1) < 0)
			continue;
		/* The session first: if it has ended, the next one need not hear that we are busy. */
		if (events[1].revents != 0)
			stasis_serve_request(&control.serve);
		for (size_t i = 0; i < STASIS_SERVE_OBSERVERS; i++) {
			if (events[2 + i].revents != 0)
				stasis_serve_observer(&control.serve,
						      &control.serve.observer_fds[i]);
		}
		if (!door_is_ours())
			door_renew();
		else if (events[0].revents != 0)
			door_answer();
	}
	return NULL;
}

/* In a forked child: its descriptors are closed already. */
static void forget(void)
{
	memset(&control.serve, 0, sizeof(control.serve));
	control.near_fd = -1;
	control.far_fd = -1;
	atomic_store(&control.retry_at_ns, 0);
	atomic_store(&control.state, NONE);
}

static int serve_prepare(struct stasis_serve *serve, struct stasis_error *err)
{
	const struct stasis_identity *self = stasis_identity_get();

	if (!self)
		return stasis_fail(err, STASIS_REFUSED, "no random number can be had");
	memset(serve, 0, sizeof(*serve));
	serve->session_fd = -1;
	for (size_t i = 0; i < STASIS_SERVE_OBSERVERS; i++)
		serve->observer_fds[i] = -1;
	serve->control_fd = -1;
	serve->control.pid = (uint32_t)getpid();
	serve->control.participant = self->participant;
	stasis_peer_incarnation(&serve->control.incarnation);
	(void)memccpy(serve->control.build, stasis_identity_build(), '\0',
		      sizeof(serve->control.build));
	return 0;
}

static int start(struct stasis_error *err)
{
	stasis_fork_forget_add(forget);
	if (serve_prepare(&control.serve, err) != 0 || door_open(err) != 0)
		return -1;
	if (stasis_thread_start("stasis-control", serve_all, err) != 0) {
		door_close();
		return -1;
	}
	return 0;
}

void stasis_control_start(void)
{
	struct stasis_error ignored = STASIS_ERROR_INIT;
	int saved_errno = errno;
	int state = NONE;

	if (atomic_load_explicit(&control.state, memory_order_acquire) != NONE ||
	    !stasis_deadline_passed(atomic_load(&control.retry_at_ns)) ||
	    !atomic_compare_exchange_strong(&control.state, &state, STARTING)) {
		errno = saved_errno;
		return;
	}
	if (start(&ignored) == 0) {
		atomic_store_explicit(&control.state, RUNNING, memory_order_release);
	} else {
		atomic_store(&control.retry_at_ns, stasis_deadline_after_ns(RETRY_NS));
		atomic_store_explicit(&control.state, NONE, memory_order_release);
	}
	errno = saved_errno;
}

bool stasis_control_is_abandoned(void)
{
	struct pollfd session = {.fd = control.serve.session_fd, .events = POLLRDHUP};

	return poll(&session, 1, 0) > 0 &&
	       (session.revents & (POLLRDHUP | POLLHUP | POLLNVAL)) != 0;
}
