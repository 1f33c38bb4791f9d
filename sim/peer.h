#ifndef SIM_PEER_H
#define SIM_PEER_H

/*
 * Connections to the endpoints of other processes: sockets in STASIS_SIM_DIR, named by pid and start
 * time. What comes of the start time changes when CRIU restores a process, so an endpoint is found by
 * its pid and then asked who it is. Any thread.
 */

#include <stdint.h>
#include <sys/types.h>

#include "protocol.h"

/* The name of this process's socket in STASIS_SIM_DIR. */
void sim_peer_name(char *ret_name, size_t name_size);

/* A socket that listens under that name, mode 0600; -1 and errno. */
NODISCARD int sim_peer_listen(void);

/*
 * pid may be the id of a thread: it then stands for its process, as with the driver. NOT_INITIALIZED: it
 * has no endpoint, so no CUDA state. OPERATING_SYSTEM: there is no such process, or it is another
 * user's.
 */
NODISCARD CUresult sim_peer_connect(pid_t pid, int *ret_fd);

struct sim_descriptors {
	size_t count;
	int fds[SIM_FILES_MAX];
};

void sim_peer_drop(struct sim_descriptors *fds);

/*
 * False: the other side is gone, or we have no room for its descriptors. Those that come with a message
 * are the caller's then; NULL: they are not wanted.
 */
NODISCARD bool sim_peer_send(int fd, const void *message, size_t bytes, const int *fds,
			     size_t fd_count);
NODISCARD bool sim_peer_receive(int fd, void *ret_message, size_t bytes,
				struct sim_descriptors *ret_fds);

/* A request and its reply; OPERATING_SYSTEM where the target died in between. */
NODISCARD CUresult sim_peer_ask(int fd, const struct sim_request *request,
				struct sim_reply *ret_reply, struct sim_descriptors *ret_fds);

#endif
