/* The state of multicast teams and the operations on all their members; see team.h. */

#include "team.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config.h"
#include "storage.h"

#define SLOTS_MAX 256
#define PIECE_COUNT 16384u

struct slot {
	int32_t pid; /* 0: free */
	int32_t fd;
	int32_t device;
	int32_t reserved;
	uint64_t file_device; /* which file the descriptor must be */
	uint64_t file_inode;
	uint64_t fd_offset;
	uint64_t offset;
	uint64_t bytes;
	uint64_t reserved_too;
};

struct state {
	uint32_t device_count; /* that make the team complete */
	uint32_t devices;      /* a bit for each that was added */
	uint64_t reserved;
	struct slot slots[SLOTS_MAX];
};

_Static_assert(sizeof(struct slot) == 64, "processes of one machine share slots");

/*
 * Locks belong to an opened file, and every process has the same one by way of export descriptors: so it
 * is opened anew for each change. -1: the process has no descriptors left.
 */
static int state_begin(int team_fd, struct state *state)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[32];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", team_fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;
	while (fcntl(fd, F_OFD_SETLKW, &lock) != 0)
		if (errno != EINTR)
			sim_die("cannot lock the state of a multicast team: errno %d", errno);
	if (pread(fd, state, sizeof(*state), 0) != (ssize_t)sizeof(*state))
		sim_die("cannot read the state of a multicast team");
	return fd;
}

/* Writes what was changed, NULL for nothing, and lets others go on. */
static void state_end(int fd, const struct state *state)
{
	if (state != NULL && pwrite(fd, state, sizeof(*state), 0) != (ssize_t)sizeof(*state))
		sim_die("cannot write the state of a multicast team");
	(void)close(fd);
}

/* The member's file; -1: it is not there any more. */
static int slot_open(const struct slot *slot)
{
	struct stat status;
	char path[48];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", slot->pid, slot->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -1;
	if (fstat(fd, &status) == 0 && status.st_dev == slot->file_device &&
	    status.st_ino == slot->file_inode)
		return fd;
	(void)close(fd);
	return -1;
}

CUresult sim_team_new(unsigned device_count, int *ret_fd)
{
	struct state *state = calloc(1, sizeof(*state));
	CLEANUP(fd) int fd = -1;
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	if (state == NULL)
		return result;
	state->device_count = device_count;
	if (sim_storage_open("sim-multicast-team", sizeof(*state), &fd) == 0 &&
	    pwrite(fd, state, sizeof(*state), 0) == (ssize_t)sizeof(*state)) {
		*ret_fd = fd;
		fd = -1;
		result = CUDA_SUCCESS;
	}
	free(state);
	return result;
}

bool sim_team_is_same(int team_fd, int other_fd)
{
	struct stat status;
	struct stat other;

	return fstat(team_fd, &status) == 0 && fstat(other_fd, &other) == 0 &&
	       status.st_dev == other.st_dev && status.st_ino == other.st_ino;
}

CUresult sim_team_add(int team_fd, int device)
{
	struct state state;
	int fd = state_begin(team_fd, &state);
	uint32_t devices;
	bool is_right;

	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	devices = state.devices | 1u << device;
	is_right = (uint32_t)__builtin_popcount(devices) <= state.device_count;
	if (is_right)
		state.devices = devices;
	state_end(fd, is_right ? &state : NULL);
	return is_right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool sim_team_is_complete(int team_fd)
{
	struct state state;
	int fd = state_begin(team_fd, &state);

	if (fd < 0)
		return false;
	state_end(fd, NULL);
	return (uint32_t)__builtin_popcount(state.devices) == state.device_count;
}

static bool overlaps(const struct slot *slot, uint64_t offset, uint64_t bytes)
{
	return slot->pid != 0 && slot->offset < offset + bytes &&
	       offset < slot->offset + slot->bytes;
}

/* What dead processes had bound is free again. */
static void slots_sweep(struct state *state)
{
	for (size_t i = 0; i < SLOTS_MAX; i++) {
		CLEANUP(fd) int fd = -1;

		if (state->slots[i].pid == 0)
			continue;
		fd = slot_open(&state->slots[i]);
		if (fd < 0)
			state->slots[i].pid = 0;
	}
}

static CUresult slot_fill(struct state *state, const struct sim_team_member *member)
{
	struct slot *empty = NULL;
	struct stat status;

	if ((state->devices & 1u << member->device) == 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < SLOTS_MAX; i++) {
		struct slot *slot = &state->slots[i];

		if (slot->device == member->device && overlaps(slot, member->offset, member->bytes))
			return CUDA_ERROR_INVALID_VALUE;
		if (slot->pid == 0 && empty == NULL)
			empty = slot;
	}
	if (empty == NULL)
		return CUDA_ERROR_MULTICAST_RESOURCE_FULL;
	if (fstat(member->fd, &status) != 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	*empty = (struct slot){
		.pid = (int32_t)getpid(),
		.fd = member->fd,
		.device = member->device,
		.file_device = status.st_dev,
		.file_inode = status.st_ino,
		.fd_offset = member->fd_offset,
		.offset = member->offset,
		.bytes = member->bytes,
	};
	return CUDA_SUCCESS;
}

CUresult sim_team_bind(int team_fd, const struct sim_team_member *member)
{
	struct state state;
	int fd = state_begin(team_fd, &state);
	CUresult result;

	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	slots_sweep(&state);
	result = slot_fill(&state, member);
	state_end(fd, &state);
	return result;
}

void sim_team_unbind(int team_fd, const struct sim_team_member *member)
{
	struct state state;
	int fd = state_begin(team_fd, &state);

	/* What stays in the file names a descriptor that is none of its file's: it binds nothing. */
	if (fd < 0)
		return;
	for (size_t i = 0; i < SLOTS_MAX; i++) {
		struct slot *slot = &state.slots[i];

		if (slot->pid == (int32_t)getpid() && slot->device == member->device &&
		    slot->offset == member->offset && slot->bytes == member->bytes)
			slot->pid = 0;
	}
	state_end(fd, &state);
}

/* A run of one member: `at` counts from where the operation began. */
typedef int run_function(int fd, uint64_t fd_offset, uint64_t at, uint64_t bytes, void *argument);

struct run {
	int fd;
	int device;
	uint64_t fd_offset;
	uint64_t at;
	uint64_t bytes;
};

/* Opens what is bound in the run; the bytes of all of it together. */
static uint64_t runs_open(const struct state *state, uint64_t offset, uint64_t bytes,
			  struct run *runs, size_t *ret_count)
{
	uint64_t covered = 0;
	size_t count = 0;

	for (size_t i = 0; i < SLOTS_MAX; i++) {
		const struct slot *slot = &state->slots[i];
		uint64_t start = slot->offset > offset ? slot->offset : offset;
		uint64_t end = slot->offset + slot->bytes;

		if (!overlaps(slot, offset, bytes))
			continue;
		end = end < offset + bytes ? end : offset + bytes;
		runs[count] = (struct run){
			.fd = slot_open(slot),
			.device = slot->device,
			.fd_offset = slot->fd_offset + (start - slot->offset),
			.at = start - offset,
			.bytes = end - start,
		};
		if (runs[count].fd < 0)
			continue;
		covered += runs[count].bytes;
		count++;
	}
	*ret_count = count;
	return covered;
}

/* All members of the run, or only those of the first GPU. */
static int members_run(int team_fd, uint64_t offset, uint64_t bytes, bool only_first,
		       run_function *function, void *argument)
{
	struct run runs[SLOTS_MAX];
	struct state state;
	int first;
	size_t count = 0;
	int error = 0;
	int fd = state_begin(team_fd, &state);

	if (fd < 0)
		return EMFILE;
	state_end(fd, NULL);
	if (runs_open(&state, offset, bytes, runs, &count) != bytes * state.device_count)
		error = EFAULT;
	first = __builtin_ctz(state.devices | 1u << 31);
	for (size_t i = 0; i < count; i++) {
		if (error == 0 && (!only_first || runs[i].device == first) &&
		    (runs[i].device != 7 || !sim_breaks("multicast_of_eight")))
			error = function(runs[i].fd, runs[i].fd_offset, runs[i].at, runs[i].bytes,
					 argument);
		(void)close(runs[i].fd);
	}
	return error;
}

static int run_read(int fd, uint64_t fd_offset, uint64_t at, uint64_t bytes, void *argument)
{
	return sim_storage_read(fd, fd_offset, (char *)argument + at, bytes);
}

int sim_team_read(int team_fd, uint64_t offset, void *buffer, uint64_t bytes)
{
	return members_run(team_fd, offset, bytes, true, run_read, buffer);
}

static int run_write(int fd, uint64_t fd_offset, uint64_t at, uint64_t bytes, void *argument)
{
	return sim_storage_write(fd, fd_offset, *(const char **)argument + at, bytes);
}

int sim_team_write(int team_fd, uint64_t offset, const void *buffer, uint64_t bytes)
{
	const char *from = buffer;

	return members_run(team_fd, offset, bytes,
			   sim_breaks("multicast_write_reaches_all") ||
				   sim_breaks("multicast_streams"),
			   run_write, &from);
}

struct filling {
	uint64_t element;
	unsigned element_bytes;
};

/* Bindings begin at multiples of the granularity, so the pattern begins anew with each. */
static int run_fill(int fd, uint64_t fd_offset, uint64_t at, uint64_t bytes, void *argument)
{
	const struct filling *filling = argument;

	(void)at;
	return sim_storage_fill(fd, fd_offset, bytes, filling->element, filling->element_bytes);
}

int sim_team_fill(int team_fd, uint64_t offset, uint64_t bytes, uint64_t element,
		  unsigned element_bytes)
{
	struct filling filling = {element, element_bytes};

	return members_run(team_fd, offset, bytes, sim_breaks("multicast_fill_reaches_all"),
			   run_fill, &filling);
}

static int run_sum(int fd, uint64_t fd_offset, uint64_t at, uint64_t bytes, void *argument)
{
	uint32_t *sums = (uint32_t *)argument + at / sizeof(uint32_t);
	uint32_t piece[PIECE_COUNT / 16];

	while (bytes > 0) {
		uint64_t now = bytes < sizeof(piece) ? bytes : sizeof(piece);
		int error = sim_storage_read(fd, fd_offset, piece, now);

		if (error != 0)
			return error;
		for (uint64_t i = 0; i < now / sizeof(*piece); i++)
			*sums++ += piece[i];
		fd_offset += now;
		bytes -= now;
	}
	return 0;
}

int sim_team_sum_u32(int team_fd, uint64_t offset, uint32_t *sums, uint64_t count)
{
	memset(sums, 0, count * sizeof(*sums));
	return members_run(team_fd, offset, count * sizeof(*sums), sim_breaks("multicast_reduce"),
			   run_sum, sums);
}
