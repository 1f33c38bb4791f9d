/*
 * See path.h, and peer.h for the folder.
 */

#include "wire/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == STASIS_WIRE_SOCKET_PATH_BYTES,
	       "the length of a socket's path is the system's");

/* A path that leaves room for "/", the name of a socket and its end. */
#define DIRECTORY_LENGTH_MAX (STASIS_WIRE_SOCKET_PATH_BYTES - 1 - STASIS_WIRE_SOCKET_NAME_BYTES)

static int directory_check(const char *path, struct stasis_error *err)
{
	size_t length = strlen(path);

	if (path[0] != '/')
		return stasis_fail(err, STASIS_USAGE,
				   "runtime folder '%s' refused: its path is not absolute; set "
				   "STASIS_RUNTIME_DIR to one that is",
				   path);
	if (length > DIRECTORY_LENGTH_MAX)
		return stasis_fail(err, STASIS_USAGE,
				   "runtime folder '%s' refused: its path has %zu bytes, and the "
				   "paths of sockets in it leave room for %d; set "
				   "STASIS_RUNTIME_DIR to a shorter one",
				   path, length, DIRECTORY_LENGTH_MAX);
	return 0;
}

int stasis_wire_directory_choose(const char *runtime_dir, const char *xdg_runtime_dir,
				 char ret_path[STASIS_WIRE_SOCKET_PATH_BYTES],
				 struct stasis_error *err)
{
	char path[4096];
	int length;

	if (runtime_dir && *runtime_dir)
		length = snprintf(path, sizeof(path), "%s", runtime_dir);
	else if (xdg_runtime_dir && *xdg_runtime_dir)
		length = snprintf(path, sizeof(path), "%s/stasis", xdg_runtime_dir);
	else
		length = snprintf(path, sizeof(path), "/run/stasis-%u", (unsigned int)geteuid());
	if (length < 0 || (size_t)length >= sizeof(path))
		return stasis_fail(err, STASIS_USAGE,
				   "runtime folder refused: its path has %d bytes; set "
				   "STASIS_RUNTIME_DIR to a shorter one",
				   length);
	if (directory_check(path, err) != 0)
		return -1;
	memcpy(ret_path, path, (size_t)length + 1);
	return 0;
}

int stasis_wire_directory_open(const char *path, int *ret_fd, struct stasis_error *err)
{
	CLEANUP(fd) int fd = -1;
	bool is_made;
	struct stat status;

	if (directory_check(path, err) != 0)
		return -1;
	is_made = mkdir(path, 0700) == 0;
	if (!is_made && errno != EEXIST)
		return stasis_fail_errno(err, STASIS_REFUSED,
					 "make runtime folder '%s' (set STASIS_RUNTIME_DIR to one "
					 "that can be made)",
					 path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "open runtime folder '%s'", path);
	/* The umask may have taken rights from us. */
	if (is_made && fchmod(fd, 0700) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "set the mode of '%s'", path);
	if (fstat(fd, &status) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "look at '%s'", path);
	if (status.st_uid != geteuid() || (status.st_mode & 07777) != 0700)
		return stasis_fail(err, STASIS_REFUSED,
				   "runtime folder '%s' refused: it has owner %u and mode %04o, "
				   "and must be ours (%u) with mode 0700",
				   path, (unsigned int)status.st_uid,
				   (unsigned int)status.st_mode & 07777, (unsigned int)geteuid());
	*ret_fd = fd_steal(&fd);
	return 0;
}

int stasis_wire_socket_address(const char *directory, const struct stasis_id *participant,
			       const struct stasis_id *incarnation, struct sockaddr_un *ret_address,
			       struct stasis_error *err)
{
	char participant_text[STASIS_ID_TEXT_BYTES];
	char incarnation_text[STASIS_ID_TEXT_BYTES];

	if (directory_check(directory, err) != 0)
		return -1;
	memset(ret_address, 0, sizeof(*ret_address));
	ret_address->sun_family = AF_UNIX;
	(void)snprintf(ret_address->sun_path, sizeof(ret_address->sun_path), "%s/%s.%s", directory,
		       stasis_id_format(participant, participant_text),
		       stasis_id_format(incarnation, incarnation_text));
	return 0;
}

int stasis_wire_socket_new(int *ret_fd, struct stasis_error *err)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "make a socket");
	*ret_fd = fd;
	return 0;
}

int stasis_wire_socket_is_dead(const struct sockaddr_un *address, bool *ret_is_dead,
			       struct stasis_error *err)
{
	CLEANUP(fd) int fd = -1;

	if (stasis_wire_socket_new(&fd, err) != 0)
		return -1;
	*ret_is_dead = connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 &&
		       errno == ECONNREFUSED;
	return 0;
}

bool stasis_wire_socket_is_ours(int fd)
{
	struct ucred other;
	socklen_t other_bytes = sizeof(other);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &other, &other_bytes) != 0)
		return false;
	return other.uid == geteuid() || other.uid == 0;
}

bool stasis_wire_socket_name_parse(const char *name, struct stasis_id *ret_participant,
				   struct stasis_id *ret_incarnation)
{
	char participant[STASIS_ID_TEXT_BYTES];

	if (strnlen(name, STASIS_WIRE_SOCKET_NAME_BYTES) != STASIS_WIRE_SOCKET_NAME_BYTES - 1 ||
	    name[STASIS_ID_TEXT_BYTES - 1] != '.')
		return false;
	memcpy(participant, name, STASIS_ID_TEXT_BYTES - 1);
	participant[STASIS_ID_TEXT_BYTES - 1] = '\0';
	return stasis_id_parse(participant, ret_participant) &&
	       stasis_id_parse(name + STASIS_ID_TEXT_BYTES, ret_incarnation);
}
