#ifndef SIM_TEAM_H
#define SIM_TEAM_H

/*
 * What the processes of a multicast team share: a file in memory that says which GPUs belong to the team
 * and what memory is bound where. Members are named by process, descriptor and file, and are opened for each
 * operation, so nothing of another process is held; what a dead process had bound is bound no more.
 * Devices are physical ones. No lock is needed: each change holds a lock on the file.
 */

#include <stdbool.h>
#include <stdint.h>

#include "driver/abi.h"

#include "compiler.h"

struct sim_team_member {
	int device;
	int fd; /* of this process; must stay open while it is bound */
	uint64_t fd_offset;
	uint64_t offset; /* in the multicast object */
	uint64_t bytes;
};

NODISCARD CUresult sim_team_new(unsigned device_count, int *ret_fd);

/* Whether two descriptors are of one team: an object can be imported several times. */
bool sim_team_is_same(int team_fd, int other_fd);

/* A GPU that is in the team already stays in it. INVALID_VALUE: the team is complete without it. */
NODISCARD CUresult sim_team_add(int team_fd, int device);
bool sim_team_is_complete(int team_fd);

/* INVALID_VALUE: the GPU is none of the team's, or something is bound there. */
NODISCARD CUresult sim_team_bind(int team_fd, const struct sim_team_member *member);
/* Of this process; nothing happens where it is not bound. */
void sim_team_unbind(int team_fd, const struct sim_team_member *member);

/*
 * What an operation on a run of the object does: to the memory that every GPU of the team has bound there, or
 * nothing and EFAULT where one has none. Reads take the first GPU's; sums are of all, modulo 2^32.
 */
NODISCARD int sim_team_read(int team_fd, uint64_t offset, void *buffer, uint64_t bytes);
NODISCARD int sim_team_write(int team_fd, uint64_t offset, const void *buffer, uint64_t bytes);
NODISCARD int sim_team_fill(int team_fd, uint64_t offset, uint64_t bytes, uint64_t element,
			    unsigned element_bytes);
NODISCARD int sim_team_sum_u32(int team_fd, uint64_t offset, uint32_t *sums, uint64_t count);

#endif
