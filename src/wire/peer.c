/*
 * See peer.h.
 */

#include "wire/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "wire/packet.h"
#include "wire/path.h"

#define BACKLOG 64
#define RETRY_NS (50 * STASIS_NS_PER_MS)

int stasis_wire_socket_remove_dead(const struct sockaddr_un *address, struct stasis_error *err)
{
	const char *path = address->sun_path;
	struct stat before;
	struct stat after;
	bool is_dead = false;

	if (lstat(path, &before) != 0)
		return errno == ENOENT
			       ? 0
			       : stasis_fail_errno(err, STASIS_REFUSED, "look at '%s'", path);
	if (!S_ISSOCK(before.st_mode) || before.st_uid != geteuid())
		return stasis_fail(
			err, STASIS_REFUSED,
			"listen at '%s': what lies there is no socket of ours; remove it "
			"if it is not needed",
			path);
	if (stasis_wire_socket_is_dead(address, &is_dead, err) != 0)
		return -1;
	if (!is_dead)
		return stasis_fail(err, STASIS_REFUSED, "listen at '%s': another process does",
				   path);
	if (lstat(path, &after) != 0 || after.st_dev != before.st_dev ||
	    after.st_ino != before.st_ino)
		return 0;
	if (unlink(path) != 0 && errno != ENOENT)
		return stasis_fail_errno(err, STASIS_REFUSED, "remove the dead socket '%s'", path);
	return 0;
}

static int path_bind(int fd, const struct sockaddr_un *address, struct stasis_error *err)
{
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		return 0;
	if (errno != EADDRINUSE)
		return stasis_fail_errno(err, STASIS_REFUSED, "listen at '%s'", address->sun_path);
	if (stasis_wire_socket_remove_dead(address, err) != 0)
		return -1;
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "listen at '%s'", address->sun_path);
	return 0;
}

void stasis_wire_peer_remove(const struct stasis_wire_listener *listener)
{
	struct stat status;

	if (lstat(listener->path, &status) == 0 && status.st_dev == listener->device &&
	    status.st_ino == listener->inode)
		(void)unlink(listener->path);
}

int stasis_wire_peer_listen(const char *directory, const struct stasis_id *participant,
			    const struct stasis_id *incarnation,
			    struct stasis_wire_listener *ret_listener, struct stasis_error *err)
{
	CLEANUP(fd) int directory_fd = -1;
	CLEANUP(fd) int fd = -1;
	struct stasis_wire_listener listener = STASIS_WIRE_LISTENER_EMPTY;
	struct sockaddr_un address;
	struct stat status;

	if (stasis_wire_socket_address(directory, participant, incarnation, &address, err) != 0 ||
	    stasis_wire_directory_open(directory, &directory_fd, err) != 0 ||
	    stasis_wire_socket_new(&fd, err) != 0)
		return -1;
	/* The path gets the mode that the socket has when it is bound; the umask is everybody's. */
	if (fchmod(fd, 0600) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "set the mode of a socket");
	if (path_bind(fd, &address, err) != 0)
		return -1;
	if (lstat(address.sun_path, &status) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "look at '%s'", address.sun_path);
	listener.device = status.st_dev;
	listener.inode = status.st_ino;
	memcpy(listener.path, address.sun_path, sizeof(listener.path));
	if (listen(fd, BACKLOG) != 0) {
		(void)stasis_fail_errno(err, STASIS_REFUSED, "listen at '%s'", listener.path);
		stasis_wire_peer_remove(&listener);
		return -1;
	}
	listener.fd = fd_steal(&fd);
	*ret_listener = listener;
	return 0;
}

void stasis_wire_peer_close(struct stasis_wire_listener *listener)
{
	int saved = errno;

	if (listener->fd >= 0)
		stasis_wire_peer_remove(listener);
	cleanup_fd(&listener->fd);
	errno = saved;
}

void stasis_wire_peer_forget(struct stasis_wire_listener *listener)
{
	cleanup_fd(&listener->fd);
}

/* What ends by itself: descriptors and memory come free again. */
static bool is_exhausted(int code)
{
	return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}

static void pause_until(uint64_t deadline_ns)
{
	uint64_t end_ns = stasis_deadline_after_ns(RETRY_NS);

	if (end_ns > deadline_ns)
		end_ns = deadline_ns;
	(void)poll(NULL, 0, stasis_deadline_poll_ms(end_ns));
}

int stasis_wire_peer_accept(const struct stasis_wire_listener *listener, int *ret_fd,
			    uint64_t deadline_ns, struct stasis_error *err)
{
	for (;;) {
		struct pollfd poll_fd = {.fd = listener->fd, .events = POLLIN};
		CLEANUP(fd) int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0 && stasis_wire_socket_is_ours(fd)) {
			*ret_fd = fd_steal(&fd);
			return 0;
		}
		if (fd < 0 && is_exhausted(errno))
			pause_until(deadline_ns);
		else if (fd < 0 && errno == EAGAIN)
			(void)poll(&poll_fd, 1, stasis_deadline_poll_ms(deadline_ns));
		else if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
			return stasis_fail_errno(err, STASIS_REFUSED, "accept a peer at '%s'",
						 listener->path);
		if (stasis_deadline_passed(deadline_ns)) {
			*ret_fd = -1;
			return 0;
		}
	}
}

int stasis_wire_peer_connect(const char *directory, const struct stasis_id *participant,
			     const struct stasis_id *incarnation, int *ret_fd, uint64_t deadline_ns,
			     struct stasis_error *err)
{
	CLEANUP(fd) int fd = -1;
	struct sockaddr_un address;

	if (stasis_wire_socket_address(directory, participant, incarnation, &address, err) != 0 ||
	    stasis_wire_socket_new(&fd, err) != 0)
		return -1;
	while (connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
		/* EAGAIN: its queue is full. Such a socket of a path is never "in progress". */
		if (errno != EAGAIN && errno != EINTR)
			return stasis_fail_errno(err, STASIS_REFUSED, "connect to '%s'",
						 address.sun_path);
		if (stasis_deadline_passed(deadline_ns))
			return stasis_fail_code(err, STASIS_REFUSED, ETIMEDOUT,
						"wait for a place in the queue of '%s'",
						address.sun_path);
		if (errno == EAGAIN)
			pause_until(deadline_ns);
	}
	if (!stasis_wire_socket_is_ours(fd))
		return stasis_fail(err, STASIS_REFUSED,
				   "connect to '%s': a process of another user listens there",
				   address.sun_path);
	*ret_fd = fd_steal(&fd);
	return 0;
}
