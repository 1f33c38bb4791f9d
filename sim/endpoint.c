/*
 * The endpoint: one thread that serves the checkpoint API's calls on this process, from cuInit to the
 * end of the process. It blocks all signals, answers one request after the other, and waits for nothing
 * but sockets; a lock that does not get through is tried again each millisecond, while others are
 * served. Everything in this file but the start runs on that thread.
 */

#include "checkpoint.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "config.h"
#include "machine.h"
#include "peer.h"
#include "target.h"

#define CLIENTS_MAX 32
#define RETRY_MS 1
#define NO_DEADLINE 0

struct client {
	int fd; /* -1: free */
	bool is_permitted;
	bool is_locking; /* waits for its lock */
	bool is_operator;
	uint64_t deadline_ms;
};

static struct sim_mutex start_mutex = SIM_MUTEX_INITIALIZER;
static bool is_started GUARDED_BY(start_mutex);

static struct {
	int listener;
	pid_t thread_id;
	struct client clients[CLIENTS_MAX];
} endpoint = {.listener = -1};

static uint64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void client_close(struct client *client)
{
	if (client->is_operator)
		sim_target_abandon();
	cleanup_fd(&client->fd);
	*client = (struct client){.fd = -1};
}

/* A reply that cannot be sent ends the connection, and that is handled like its caller's death. */
static void answer(const struct client *client, struct sim_reply *reply, CUresult result,
		   const int *fds, size_t fd_count)
{
	reply->result = (int32_t)result;
	reply->thread_id = (int32_t)endpoint.thread_id;
	if (!sim_peer_send(client->fd, reply, sizeof(*reply), fds, fd_count))
		(void)shutdown(client->fd, SHUT_RDWR);
}

static void answer_result(const struct client *client, CUresult result)
{
	struct sim_reply reply = {0};

	answer(client, &reply, result, NULL, 0);
}

static void on_state(struct client *client, const struct sim_request *request)
{
	struct sim_reply reply = {0};

	(void)request;
	sim_target_describe(&reply);
	answer(client, &reply, CUDA_SUCCESS, NULL, 0);
}

static void on_get_state(struct client *client, const struct sim_request *request)
{
	struct sim_reply reply = {.state = (int32_t)sim_target_state()};

	(void)request;
	answer(client, &reply, CUDA_SUCCESS, NULL, 0);
}

static void on_thread(struct client *client, const struct sim_request *request)
{
	(void)request;
	answer_result(client, CUDA_SUCCESS);
}

static bool is_gone(const struct client *client)
{
	char byte;

	return recv(client->fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* A caller that dies while it waits has not locked us, even if the instant has just come. */
static void try_lock(struct client *client)
{
	CUresult result = sim_target_try_lock();

	if (result == CUDA_SUCCESS && is_gone(client))
		result = sim_target_unlock();
	if (result == CUDA_ERROR_NOT_READY) {
		if (client->deadline_ms == NO_DEADLINE || now_ms() < client->deadline_ms)
			return;
		result = sim_target_lock_timed_out();
	}
	client->is_locking = false;
	answer_result(client, result);
}

static void on_lock(struct client *client, const struct sim_request *request)
{
	client->is_locking = true;
	client->deadline_ms = NO_DEADLINE;
	if (request->timeout_ms != 0)
		client->deadline_ms = now_ms() + request->timeout_ms;
	try_lock(client);
}

static void on_checkpoint(struct client *client, const struct sim_request *request)
{
	(void)request;
	answer_result(client, sim_target_checkpoint());
}

static void on_restore(struct client *client, const struct sim_request *request)
{
	answer_result(client, sim_target_restore(request));
}

static void on_unlock(struct client *client, const struct sim_request *request)
{
	(void)request;
	answer_result(client, sim_target_unlock());
}

static void on_begin(struct client *client, const struct sim_request *request)
{
	struct sim_reply reply = {0};
	CLEANUP(fd) int table = -1;
	CUresult result = sim_target_prepare(request, &reply, &table);

	client->is_operator = result == CUDA_SUCCESS;
	answer(client, &reply, result, &table, result == CUDA_SUCCESS);
}

static void on_files(struct client *client, const struct sim_request *request)
{
	struct sim_reply reply = {0};
	int fds[SIM_FILES_MAX];
	size_t count = 0;

	if (client->is_operator)
		count = sim_target_files(request->first_file, fds);
	reply.file_count = (uint32_t)count;
	answer(client, &reply, count != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, fds, count);
}

static void on_begun(struct client *client, const struct sim_request *request)
{
	(void)request;
	answer_result(client, client->is_operator ? sim_target_begun() : CUDA_ERROR_ILLEGAL_STATE);
}

static void on_complete(struct client *client, const struct sim_request *request)
{
	CUresult result = CUDA_ERROR_ILLEGAL_STATE;

	(void)request;
	if (client->is_operator)
		result = sim_target_complete();
	client->is_operator = false;
	answer_result(client, result);
}

static void handle(struct client *client, const struct sim_request *request)
{
	static void (*const handlers[])(struct client *, const struct sim_request *) = {
		[SIM_REQUEST_STATE] = on_state,           [SIM_REQUEST_GET_STATE] = on_get_state,
		[SIM_REQUEST_THREAD] = on_thread,         [SIM_REQUEST_LOCK] = on_lock,
		[SIM_REQUEST_CHECKPOINT] = on_checkpoint, [SIM_REQUEST_RESTORE] = on_restore,
		[SIM_REQUEST_UNLOCK] = on_unlock,         [SIM_REQUEST_BEGIN_CHECKPOINT] = on_begin,
		[SIM_REQUEST_BEGIN_RESTORE] = on_begin,   [SIM_REQUEST_FILES] = on_files,
		[SIM_REQUEST_BEGUN] = on_begun,           [SIM_REQUEST_COMPLETE] = on_complete,
	};

	if (!client->is_permitted)
		answer_result(client, CUDA_ERROR_OPERATING_SYSTEM);
	else if (request->kind >= ARRAY_COUNT(handlers) || request->pair_count > SIM_DEVICES_MAX)
		answer_result(client, CUDA_ERROR_INVALID_VALUE);
	else
		handlers[request->kind](client, request);
}

static void client_read(struct client *client)
{
	struct sim_request request;
	ssize_t got = recv(client->fd, &request, sizeof(request), MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got != (ssize_t)sizeof(request)) {
		client_close(client);
		return;
	}
	handle(client, &request);
}

static struct client *free_client(void)
{
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		if (endpoint.clients[i].fd < 0)
			return &endpoint.clients[i];
	return NULL;
}

/* Only our own user and root may act on us, whatever became of the socket's mode. */
static bool is_permitted(int fd)
{
	struct ucred peer;
	socklen_t peer_bytes = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_bytes) != 0)
		return false;
	return peer.uid == 0 || peer.uid == geteuid();
}

static void client_accept(void)
{
	struct client *client = free_client();
	int fd = accept4(endpoint.listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	*client = (struct client){.fd = fd, .is_permitted = is_permitted(fd)};
}

/* The listener comes last; it is left out while there is no room for a connection. */
static nfds_t fill(struct pollfd *ret_polled, bool *ret_is_locking)
{
	*ret_is_locking = false;
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		ret_polled[i] = (struct pollfd){.fd = endpoint.clients[i].fd, .events = POLLIN};
		*ret_is_locking = *ret_is_locking || endpoint.clients[i].is_locking;
	}
	ret_polled[CLIENTS_MAX] = (struct pollfd){.events = POLLIN};
	ret_polled[CLIENTS_MAX].fd = free_client() ? endpoint.listener : -1;
	return CLIENTS_MAX + 1;
}

static void *serve(void *unused)
{
	struct pollfd polled[CLIENTS_MAX + 1];
	bool is_locking;

	endpoint.thread_id = (pid_t)syscall(SYS_gettid);
	for (;;) {
		nfds_t count = fill(polled, &is_locking);

		if (poll(polled, count, is_locking ? RETRY_MS : -1) < 0)
			continue;
		for (size_t i = 0; i < CLIENTS_MAX; i++)
			if (polled[i].revents != 0)
				client_read(&endpoint.clients[i]);
		for (size_t i = 0; i < CLIENTS_MAX; i++)
			if (endpoint.clients[i].is_locking)
				try_lock(&endpoint.clients[i]);
		if (polled[CLIENTS_MAX].revents != 0)
			client_accept();
	}
	return unused;
}

/* The child has no endpoint: nobody may believe that its copy of our socket listens. */
static void forget_in_child(void) NO_THREAD_SAFETY_ANALYSIS
{
	start_mutex = (struct sim_mutex)SIM_MUTEX_INITIALIZER;
	cleanup_fd(&endpoint.listener);
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		cleanup_fd(&endpoint.clients[i].fd);
	is_started = false;
}

static CUresult start_thread(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all;
	sigset_t before;
	int failure;

	if (pthread_attr_init(&attributes) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	failure = pthread_create(&thread, &attributes, serve, NULL);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attributes);
	return failure == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

static CUresult start_locked(void) REQUIRES(start_mutex)
{
	CUresult result = sim_machine_join();

	if (result != CUDA_SUCCESS)
		return result;
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		endpoint.clients[i].fd = -1;
	endpoint.listener = sim_peer_listen();
	if (endpoint.listener < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	result = pthread_atfork(NULL, NULL, forget_in_child) == 0 ? start_thread()
								  : CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS)
		cleanup_fd(&endpoint.listener);
	is_started = result == CUDA_SUCCESS;
	return result;
}

CUresult sim_checkpoint_start(void)
{
	CUresult result = CUDA_SUCCESS;

	sim_mutex_lock(&start_mutex);
	if (!is_started)
		result = start_locked();
	sim_mutex_unlock(&start_mutex);
	return result;
}
