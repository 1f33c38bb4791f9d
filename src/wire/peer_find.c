/*
 * Looks at the sockets in the folder of all, see peer.h: for a participant's, and for dead ones. By getdents64 and
 * a buffer of its own, since this runs in participants, too.
 */

#include "wire/peer.h"

#include <dirent.h>
#include <time.h>

#include "base/cleanup.h"
#include "wire/path.h"

#define SWEEP_AGE_S 60

struct search {
	const char *directory;
	struct stasis_id participant;
	struct stasis_id incarnation; /* the last one found */
	size_t live_count;
};

static int entry_look(struct search *search, const char *name, struct stasis_error *err)
{
	struct stasis_id participant;
	struct stasis_id incarnation;
	struct sockaddr_un address;
	bool is_dead = false;

	if (!stasis_wire_socket_name_parse(name, &participant, &incarnation) ||
	    !stasis_id_equal(&participant, &search->participant))
		return 0;
	if (stasis_wire_socket_address(search->directory, &participant, &incarnation, &address,
				       err) != 0 ||
	    stasis_wire_socket_is_dead(&address, &is_dead, err) != 0)
		return -1;
	if (is_dead)
		return 0;
	search->incarnation = incarnation;
	search->live_count++;
	return 0;
}

typedef int entry_function(struct search *search, const char *name, struct stasis_error *err);

static int entries_visit(struct search *search, entry_function *visit, const char *bytes,
			 size_t byte_count, struct stasis_error *err)
{
	for (size_t at = 0; at < byte_count;) {
		const struct dirent64 *entry = (const void *)(bytes + at);

		if (visit(search, entry->d_name, err) != 0)
			return -1;
		at += entry->d_reclen;
	}
	return 0;
}

static int directory_visit(struct search *search, entry_function *visit, struct stasis_error *err)
{
	_Alignas(struct dirent64) char bytes[4096];
	CLEANUP(fd) int fd = -1;
	ssize_t byte_count;

	if (stasis_wire_directory_open(search->directory, &fd, err) != 0)
		return -1;
	while ((byte_count = getdents64(fd, bytes, sizeof(bytes))) > 0) {
		if (entries_visit(search, visit, bytes, (size_t)byte_count, err) != 0)
			return -1;
	}
	if (byte_count < 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "list '%s'", search->directory);
	return 0;
}

static bool is_old(const char *path)
{
	struct timespec now;
	struct stat status;

	return lstat(path, &status) == 0 && clock_gettime(CLOCK_REALTIME, &now) == 0 &&
	       now.tv_sec - status.st_mtim.tv_sec >= SWEEP_AGE_S;
}

static int entry_sweep(struct search *search, const char *name, struct stasis_error *err)
{
	struct stasis_id participant;
	struct stasis_id incarnation;
	struct stasis_error ignored = STASIS_ERROR_INIT;
	struct sockaddr_un address;
	bool is_dead = false;

	if (!stasis_wire_socket_name_parse(name, &participant, &incarnation))
		return 0;
	if (stasis_wire_socket_address(search->directory, &participant, &incarnation, &address,
				       err) != 0)
		return -1;
	if (is_old(address.sun_path) &&
	    stasis_wire_socket_is_dead(&address, &is_dead, &ignored) == 0 && is_dead)
		search->live_count += stasis_wire_socket_remove_dead(&address, &ignored) != 0;
	return 0;
}

void stasis_wire_peer_sweep(const char *directory)
{
	struct search search = {.directory = directory};
	struct stasis_error ignored = STASIS_ERROR_INIT;

	if (directory_visit(&search, entry_sweep, &ignored) != 0)
		(void)ignored; /* whoever listens there next will say so */
}

int stasis_wire_peer_find(const char *directory, const struct stasis_id *participant,
			  struct stasis_id *ret_incarnation, struct stasis_error *err)
{
	struct search search = {.directory = directory, .participant = *participant};
	char text[STASIS_ID_TEXT_BYTES];

	if (directory_visit(&search, entry_look, err) != 0)
		return -1;
	if (search.live_count != 1)
		return stasis_fail(err, STASIS_REFUSED,
				   "participant %s: %zu live sockets in '%s', and exactly one was "
				   "expected",
				   stasis_id_format(participant, text), search.live_count,
				   directory);
	*ret_incarnation = search.incarnation;
	return 0;
}
