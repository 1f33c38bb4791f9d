/*
 * See peer.h. The socket is opened by whoever needs it first and belongs to the peer thread from then on, which
 * alone closes it: who wants that shuts it down, which wakes the thread, and waits. The thread lives on.
 */

#include "interpose/peer.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "interpose/descriptors.h"
#include "interpose/fork.h"
#include "interpose/identity.h"
#include "interpose/peer_serve.h"
#include "interpose/peer_table.h"
#include "interpose/settings.h"
#include "interpose/thread.h"
#include "wire/peer.h"

static struct stasis_mutex peer_lock = STASIS_MUTEX_INITIALIZER;

static struct {
	pthread_cond_t has_listener;
	struct stasis_wire_listener listener GUARDED_BY(peer_lock);
	struct stasis_id incarnation GUARDED_BY(peer_lock);
	struct stasis_error fault GUARDED_BY(peer_lock); /* of the last try to open */
	uint32_t changes GUARDED_BY(peer_lock);          /* of the fault */
	pid_t owner_pid GUARDED_BY(peer_lock);           /* of the listener */
	bool has_incarnation GUARDED_BY(peer_lock);
	bool has_thread GUARDED_BY(peer_lock);
	bool is_opening GUARDED_BY(peer_lock);  /* by one thread, without the lock */
	bool is_promised GUARDED_BY(peer_lock); /* a ticket was given out */
	bool is_retired GUARDED_BY(peer_lock);  /* closed for a checkpoint */
} peer = {
	.has_listener = PTHREAD_COND_INITIALIZER,
	.listener = STASIS_WIRE_LISTENER_EMPTY,
};

/* In a forked child: its descriptors are closed, its threads not there, its lock perhaps held by one of them. */
static void forget(void) NO_THREAD_SAFETY_ANALYSIS
{
	memset(&peer, 0, sizeof(peer));
	peer_lock = (struct stasis_mutex)STASIS_MUTEX_INITIALIZER;
	peer.has_listener = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	peer.listener.fd = -1;
	stasis_peer_table_forget();
}

/* Only the path: other threads may be at work while a process ends. */
__attribute__((destructor)) static void ended(void) NO_THREAD_SAFETY_ANALYSIS
{
	if (pthread_mutex_trylock(&peer_lock.native) != 0)
		return;
	if (peer.listener.fd >= 0 && peer.owner_pid == getpid())
		stasis_wire_peer_remove(&peer.listener);
	(void)pthread_mutex_unlock(&peer_lock.native);
}

static int incarnation_make(struct stasis_error *err) REQUIRES(peer_lock)
{
	if (peer.has_incarnation)
		return 0;
	if (stasis_id_random(&peer.incarnation, err) != 0)
		return -1;
	peer.has_incarnation = true;
	return 0;
}

static void fault_set(const struct stasis_error *fault) REQUIRES(peer_lock)
{
	if (stasis_error_is_set(fault) || stasis_error_is_set(&peer.fault))
		peer.changes++;
	peer.fault = *fault;
}

static void listener_await(struct stasis_wire_listener *ret_listener,
			   struct stasis_id *ret_incarnation) NO_THREAD_SAFETY_ANALYSIS
{
	stasis_mutex_lock(&peer_lock);
	while (peer.listener.fd < 0)
		(void)pthread_cond_wait(&peer.has_listener, &peer_lock.native);
	*ret_listener = peer.listener;
	*ret_incarnation = peer.incarnation;
	stasis_mutex_unlock(&peer_lock);
}

static void listener_close(const struct stasis_error *error)
{
	stasis_mutex_lock(&peer_lock);
	stasis_wire_peer_remove(&peer.listener);
	stasis_descriptors_close(&peer.listener.fd);
	fault_set(error);
	stasis_mutex_unlock(&peer_lock);
}

static void *serve(void *name)
{
	(void)pthread_setname_np(pthread_self(), name);
	for (;;) {
		const struct stasis_identity *self;
		struct stasis_error error = STASIS_ERROR_INIT;
		struct stasis_wire_listener listener;
		struct stasis_id incarnation;

		listener_await(&listener, &incarnation);
		/* There is one: the socket's path has it. */
		self = stasis_identity_get();
		stasis_peer_serve(&listener, &self->participant, &incarnation, &error);
		listener_close(&error);
	}
	return NULL;
}

static int listener_open(const struct stasis_id *incarnation,
			 struct stasis_wire_listener *ret_listener, struct stasis_error *err)
{
	const struct stasis_identity *self = stasis_identity_get();
	char directory[STASIS_WIRE_SOCKET_PATH_BYTES];

	if (!self)
		return stasis_fail(err, STASIS_REFUSED,
				   "open the socket of peers: no random number can be had");
	if (stasis_settings_directory(directory, err) != 0)
		return -1;
	stasis_wire_peer_sweep(directory);
	return stasis_wire_peer_listen(directory, &self->participant, incarnation, ret_listener,
				       err);
}

/* The thread first: a socket that nobody serves would let peers wait for nothing. */
static int service_start(bool has_thread, const struct stasis_id *incarnation,
			 struct stasis_wire_listener *ret_listener, bool *ret_has_thread,
			 struct stasis_error *err)
{
	*ret_has_thread = has_thread;
	if (!has_thread && stasis_thread_start("stasis-peer", serve, err) != 0)
		return -1;
	*ret_has_thread = true;
	return listener_open(incarnation, ret_listener, err);
}

/* Whether the caller is to open it. */
static bool opening_begin(bool is_promise, struct stasis_id *ret_incarnation, bool *ret_has_thread,
			  struct stasis_error *err)
{
	bool is_mine;

	stasis_fork_forget_add(forget);
	stasis_mutex_lock(&peer_lock);
	if (is_promise && !peer.is_promised) {
		peer.is_promised = true;
		peer.changes++;
	}
	is_mine = peer.is_promised && peer.listener.fd < 0 && !peer.is_opening &&
		  incarnation_make(err) == 0;
	if (is_mine)
		peer.is_opening = true;
	*ret_incarnation = peer.incarnation;
	*ret_has_thread = peer.has_thread;
	stasis_mutex_unlock(&peer_lock);
	return is_mine;
}

static int open_service(bool is_promise, struct stasis_error *err)
{
	struct stasis_wire_listener listener = STASIS_WIRE_LISTENER_EMPTY;
	struct stasis_error error = STASIS_ERROR_INIT;
	struct stasis_id incarnation;
	bool has_thread;
	int result;

	if (!opening_begin(is_promise, &incarnation, &has_thread, &error)) {
		stasis_error_take(err, &error);
		return stasis_error_is_set(&error) ? -1 : 0;
	}
	result = service_start(has_thread, &incarnation, &listener, &has_thread, &error);
	(void)stasis_descriptors_add(listener.fd);
	stasis_mutex_lock(&peer_lock);
	peer.is_opening = false;
	peer.is_retired = false;
	peer.has_thread = has_thread;
	peer.listener = listener;
	peer.owner_pid = getpid();
	fault_set(&error);
	if (result == 0)
		(void)pthread_cond_signal(&peer.has_listener);
	stasis_mutex_unlock(&peer_lock);
	stasis_error_take(err, &error);
	return result;
}

int stasis_peer_reopen(struct stasis_error *err)
{
	return open_service(false, err);
}

int stasis_peer_ensure(struct stasis_error *err)
{
	return open_service(true, err);
}

/* Asks the thread to close it; true: it has. */
static bool close_ask(void)
{
	bool is_open;

	stasis_mutex_lock(&peer_lock);
	is_open = peer.listener.fd >= 0;
	if (is_open)
		(void)shutdown(peer.listener.fd, SHUT_RDWR);
	peer.is_retired = !is_open;
	stasis_mutex_unlock(&peer_lock);
	return !is_open;
}

int stasis_peer_close(uint64_t deadline_ns, struct stasis_error *err)
{
	struct timespec pause = {.tv_nsec = 50000};

	while (!close_ask()) {
		if (stasis_deadline_passed(deadline_ns))
			return stasis_fail_code(err, STASIS_REFUSED, ETIMEDOUT,
						"close the socket of peers: an export for one of "
						"them is still being made");
		(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		if (pause.tv_nsec < 2000000)
			pause.tv_nsec *= 2;
	}
	return 0;
}

void stasis_peer_incarnation(struct stasis_id *ret_incarnation)
{
	struct stasis_error ignored = STASIS_ERROR_INIT;

	stasis_mutex_lock(&peer_lock);
	(void)incarnation_make(&ignored);
	*ret_incarnation = peer.incarnation;
	stasis_mutex_unlock(&peer_lock);
}

int stasis_peer_renew(struct stasis_error *err)
{
	int result = 0;

	stasis_mutex_lock(&peer_lock);
	if (peer.listener.fd < 0) {
		peer.has_incarnation = false;
		result = incarnation_make(err);
	}
	stasis_mutex_unlock(&peer_lock);
	return result;
}

bool stasis_peer_fault(struct stasis_error *ret_fault)
{
	bool has_fault;

	stasis_mutex_lock(&peer_lock);
	has_fault = peer.is_promised && stasis_error_is_set(&peer.fault) && !peer.is_retired;
	*ret_fault = peer.fault;
	stasis_mutex_unlock(&peer_lock);
	return has_fault;
}

uint32_t stasis_peer_changes(void)
{
	uint32_t changes;

	stasis_mutex_lock(&peer_lock);
	changes = peer.changes;
	stasis_mutex_unlock(&peer_lock);
	return changes;
}
