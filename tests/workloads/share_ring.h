#ifndef TESTS_WORKLOADS_SHARE_RING_H
#define TESTS_WORKLOADS_SHARE_RING_H

/*
 * What the parts of share_ring have in common. A member is one process of the ring. It owns two shared
 * blocks, which its right neighbour has mapped, and two private ones:
 *
 *     big     [ pattern ...            | team 64 KiB | mark 64 KiB ]   --bytes
 *     small   [ beat 16 KiB | pattern ...            ]   2 MiB, mapped twice, the second time read-only
 *     private [ pattern ...                          ]   2 MiB of exportable memory, never exported
 *     native  [ pattern ...                          ]   1 MiB of cuMemAlloc
 *
 * A word of a pattern is ring_word(salt, index) + generation * ring_step(salt): each generation is one
 * kernel that adds the step to every word. Of the beat, the first generation % BEAT_WORDS words are BEAT.
 * The mark is written by the neighbour, what the team has by --multicast. Block by block the salt differs, and member by member.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/abi.h"

#define RING_MEMBERS_MAX 64
#define RING_BLOCK_BYTES ((size_t)2 << 20) /* the driver's granularity of device memory */
#define MARK_BYTES ((size_t)64 << 10)
#define MARK_WORDS (MARK_BYTES / 4)
#define TEAM_BYTES                                                                                 \
	((size_t)64 << 10) /* of which one half is written by one for all, and one summed up */
#define TEAM_HALF_BYTES (TEAM_BYTES / 2)
#define TEAM_HALF_WORDS (TEAM_HALF_BYTES / 4)
#define TAIL_BYTES (TEAM_BYTES + MARK_BYTES)
#define BEAT_BYTES ((size_t)16 << 10)
#define BEAT_WORDS (BEAT_BYTES / 4)
#define BEAT 0xbea7bea7U
#define NATIVE_BYTES ((size_t)1 << 20)
#define ROUNDS_WITHOUT_END UINT64_MAX

enum ring_kind { RING_BIG, RING_SMALL, RING_PRIVATE, RING_NATIVE, RING_KINDS };

#define RING_SHARED_BLOCKS 2 /* big and small */
#define RING_ATTRIBUTES 7

/* What the driver says about an address; it must say the same ever after. */
struct ring_answers {
	CUmemGenericAllocationHandle retained;
	CUmemAllocationProp prop;
	CUresult results[RING_ATTRIBUTES];
	uint64_t attributes[RING_ATTRIBUTES];
	CUdeviceptr range_address;
	size_t range_bytes;
	unsigned long long access;
};

struct ring_block {
	enum ring_kind kind;
	unsigned owner;
	size_t bytes;
	CUmemGenericAllocationHandle handle; /* 0: cuMemAlloc memory */
	CUdeviceptr address;
	CUdeviceptr alias; /* the read-only second mapping, or 0 */
	struct ring_answers answers;
	uint64_t generation; /* of an own block; the load's mutex guards it */
};

/* The ends of the sockets and what the parent has decided. */
struct ring_options {
	unsigned index;
	unsigned processes;
	unsigned devices;
	uint64_t bytes;
	uint64_t last_round;
	bool has_multicast;
	int left_fd;
	int right_fd;
	int parent_fd;
};

struct ring_kernels {
	CUfunction fill;
	CUfunction add;
	CUfunction compare;
};

struct ring_cuda {
	CUdevice device;
	CUcontext context;
	struct ring_kernels kernels;
};

/* The threads that never pause. All fields after `changed` are guarded by `mutex`. */
struct ring_load {
	const struct ring_cuda *cuda;
	unsigned index;
	struct ring_block *own; /* RING_KINDS of them */
	pthread_t launcher;
	pthread_t churner;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	bool is_ending;
	bool hold_is_wanted;
	bool is_held;         /* no kernel that changes shared memory is queued or running */
	bool has_moved;       /* shared memory has changed since the last hold */
	uint64_t churn_count; /* times that the churner went round */
};

enum ring_message_kind { RING_ANNOUNCEMENT = 1, RING_ANSWER, RING_WRITTEN, RING_TURN, RING_LAP };

/*
 * To the right: the turn to look at the blocks. To the left: what was seen is right, the mark is written. The other
 * kinds are the team's, all to the right.
 */
struct ring_message {
	uint32_t kind;
	uint32_t from;
	uint64_t round;
	uint64_t last_round;
	uint64_t generations[RING_SHARED_BLOCKS];
};

/*
 * What a process has of the multicast team of all: the object mapped, and, in the first process of each device, the
 * big block bound to it. The driver takes a device into a team once only.
 */
struct ring_team {
	const struct ring_options *options;
	const struct ring_cuda *cuda;
	const struct ring_block *big;
	CUstream stream;
	CUmemGenericAllocationHandle object;
	CUdeviceptr address;
	CUdeviceptr sums; /* what the kernel that reduces gives */
	CUfunction reduce;
	unsigned devices; /* of the team */
};

/* share_ring_message.c: who waits for a neighbour waits in poll, without a limit. */
void ring_message_wait(int fd);
void ring_message_send(int fd, const struct ring_message *message);
/* The next message must be this one. */
void ring_message_expect(const struct ring_options *options, int fd, enum ring_message_kind kind,
			 uint64_t round, struct ring_message *ret_message);

/* share_ring_team.c: make and free return when every process of the ring has come as far. */
void ring_team_make(struct ring_team *team, const struct ring_options *options,
		    const struct ring_cuda *cuda, const struct ring_block *big, CUstream stream);
void ring_team_round(struct ring_team *team, uint64_t round);
void ring_team_free(struct ring_team *team);

/* share_ring_member.c: a whole member; returns when the ring has ended well. */
void ring_member_run(const struct ring_options *options);

/* share_ring_load.c */
void ring_load_start(struct ring_load *load);
void ring_load_end(struct ring_load *load);
/* Until the release, the shared blocks keep their generation; they have changed since the last one. */
void ring_load_hold(struct ring_load *load);
void ring_load_release(struct ring_load *load);

/* share_ring_memory.c: all of it ends the process with a line where something is wrong. */
struct ring_cuda ring_cuda_begin(unsigned device);
void ring_cuda_end(struct ring_cuda *cuda);
void ring_launch(CUfunction kernel, CUstream stream, void **parameters);
void ring_fill(const struct ring_cuda *cuda, CUstream stream, CUdeviceptr to, uint32_t value,
	       uint64_t count);
void ring_add(const struct ring_cuda *cuda, CUstream stream, CUdeviceptr to, uint32_t value,
	      uint64_t count);
CUmemGenericAllocationHandle ring_create(const struct ring_cuda *cuda, size_t bytes);
/* Reserves, maps, and gives the device of `cuda` these rights. */
CUdeviceptr ring_map(const struct ring_cuda *cuda, CUmemGenericAllocationHandle handle,
		     size_t bytes, CUmemAccess_flags rights);
void ring_unmap(CUdeviceptr address, size_t bytes);
void ring_block_make(const struct ring_cuda *cuda, struct ring_block *block);
void ring_block_import(const struct ring_cuda *cuda, struct ring_block *block, int fd);
void ring_block_free(struct ring_block *block);
/* Generation 0 of the whole block, the beat and the mark of round 0 included. */
void ring_block_write(struct ring_block *block, CUstream stream);
/* Every byte of the pattern (and of the beat), seen through this address. */
void ring_block_verify(const struct ring_block *block, CUdeviceptr address, uint64_t generation,
		       CUstream stream, const char *reader, unsigned reader_index);
/* So many words from this offset of the big block on must all be this one. */
void ring_words_verify(const struct ring_block *big, const char *what, uint64_t offset,
		       uint32_t word, size_t count, CUstream stream);
void ring_mark_verify(const struct ring_block *big, uint32_t mark, CUstream stream);
uint32_t ring_mark(unsigned writer, uint64_t round);
void ring_answers_record(struct ring_block *block, CUdevice device);
void ring_answers_check(const struct ring_block *block, CUdevice device, unsigned index);
const char *ring_kind_name(enum ring_kind kind);

static inline uint32_t ring_word(uint32_t salt, uint64_t index)
{
	uint32_t word = (uint32_t)index * 2246822519U + (uint32_t)(index >> 32) * 374761393U + salt;

	word ^= word >> 15;
	word *= 3266489917U;
	return word ^ (word >> 13);
}

static inline uint32_t ring_salt(unsigned owner, enum ring_kind kind)
{
	return (owner * RING_KINDS + (uint32_t)kind + 1) * 2654435761U;
}

/* Odd, so that no two generations within 2^32 are alike. */
static inline uint32_t ring_step(unsigned owner, enum ring_kind kind)
{
	return ring_word(~ring_salt(owner, kind), 0) | 1U;
}

#endif
