/*
 * One process of the ring. It sends its shared blocks to its right neighbour and gets those of its left
 * one. Then, round by round: hold the own shared blocks still and announce their generation to the right;
 * take the announcement from the left, verify, replay the graph, write the mark, answer; take the answer
 * from the right and check the mark. Nobody is more than one round ahead of a neighbour.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "check.h"
#include "child.h"
#include "device.h"
#include "share_ring.h"

struct member {
	const struct ring_options *options;
	struct ring_cuda cuda;
	CUstream stream;
	struct ring_block own[RING_KINDS];
	struct ring_block left[RING_SHARED_BLOCKS];
	struct ring_load load;
	struct ring_team team;
	CUgraphExec graph;
	CUdeviceptr counter; /* of the graph's kernel; grows from round to round */
	uint64_t counted;    /* what must stand there */
	uint64_t last_round;
};

static unsigned left_index(const struct ring_options *options)
{
	return (options->index + options->processes - 1) % options->processes;
}

static size_t block_bytes(const struct ring_options *options, enum ring_kind kind)
{
	static const size_t bytes[RING_KINDS] = {
		[RING_SMALL] = RING_BLOCK_BYTES,
		[RING_PRIVATE] = RING_BLOCK_BYTES,
		[RING_NATIVE] = NATIVE_BYTES,
	};

	return kind == RING_BIG ? options->bytes : bytes[kind];
}

static void own_make(struct member *member)
{
	for (enum ring_kind kind = RING_BIG; kind < RING_KINDS; kind++) {
		member->own[kind] = (struct ring_block){
			.kind = kind,
			.owner = member->options->index,
			.bytes = block_bytes(member->options, kind),
		};
		ring_block_make(&member->cuda, &member->own[kind]);
		ring_block_write(&member->own[kind], member->stream);
	}
}

static void blocks_exchange(struct member *member)
{
	const struct ring_options *options = member->options;

	for (enum ring_kind kind = RING_BIG; kind < RING_SHARED_BLOCKS; kind++) {
		int fd = t_export(member->own[kind].handle);

		t_send_fd(options->right_fd, fd);
		T_SYS(close(fd));
	}
	for (enum ring_kind kind = RING_BIG; kind < RING_SHARED_BLOCKS; kind++) {
		int fd;

		member->left[kind] = (struct ring_block){
			.kind = kind,
			.owner = left_index(options),
			.bytes = block_bytes(options, kind),
		};
		ring_message_wait(options->left_fd);
		fd = t_receive_fd(options->left_fd);
		ring_block_import(&member->cuda, &member->left[kind], fd);
		T_SYS(close(fd));
	}
}

static void beat_count_launch(struct member *member)
{
	uint32_t value = BEAT;
	uint64_t count = BEAT_WORDS;
	void *parameters[] = {&member->left[RING_SMALL].address, &value, &count, &member->counter};

	ring_launch(member->cuda.kernels.compare, member->stream, parameters);
}

/* The kernel reads the neighbour's beat at the address of now. It runs once before, so that it is loaded. */
static void graph_make(struct member *member)
{
	CUgraph graph = NULL;

	member->counter = t_alloc(sizeof(uint64_t));
	beat_count_launch(member);
	T_OK(cuStreamSynchronize(member->stream));
	T_OK(cuMemsetD8Async(member->counter, 0, sizeof(uint64_t), member->stream));
	T_OK(cuStreamSynchronize(member->stream));
	T_OK(cuStreamBeginCapture_v2(member->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	beat_count_launch(member);
	T_OK(cuStreamEndCapture(member->stream, &graph));
	T_OK(cuGraphInstantiateWithFlags(&member->graph, graph, 0));
	T_OK(cuGraphDestroy(graph));
}

/* Words that are no BEAT are counted, on top of what was counted in all rounds before. */
static void graph_replay(struct member *member, uint64_t generation)
{
	uint64_t found = 0;

	T_OK(cuGraphLaunch(member->graph, member->stream));
	T_OK(cuMemcpyDtoHAsync_v2(&found, member->counter, sizeof(found), member->stream));
	T_OK(cuStreamSynchronize(member->stream));
	member->counted += BEAT_WORDS - generation % BEAT_WORDS;
	if (found != member->counted)
		t_fail("share_ring: process %d (%u, graph): block small of %u at 0x%llx: offset 0: "
		       "expected a count of %llu at generation %llu, found %llu",
		       (int)getpid(), member->options->index, member->left[RING_SMALL].owner,
		       (unsigned long long)member->left[RING_SMALL].address,
		       (unsigned long long)member->counted, (unsigned long long)generation,
		       (unsigned long long)found);
}

/* The parent has something to say to the first member only: that it is to end the ring. */
static void parent_hear(struct member *member, uint64_t round)
{
	uint64_t end = round + member->options->processes;
	char letter;

	if (recv(member->options->parent_fd, &letter, 1, MSG_DONTWAIT) != 1)
		return;
	if (end < member->last_round)
		member->last_round = end;
}

static void announce(struct member *member, uint64_t round)
{
	struct ring_message message = {
		.kind = RING_ANNOUNCEMENT,
		.from = member->options->index,
		.round = round,
		.last_round = member->last_round,
	};

	for (size_t i = 0; i < RING_SHARED_BLOCKS; i++)
		message.generations[i] = member->own[i].generation;
	ring_message_send(member->options->right_fd, &message);
}

/* The neighbour's turn as the owner, ours as the one who looks and writes. */
static void left_serve(struct member *member, uint64_t round)
{
	const struct ring_block *big = &member->left[RING_BIG];
	struct ring_message message;

	ring_message_expect(member->options, member->options->left_fd, RING_ANNOUNCEMENT, round,
			    &message);
	/* who learns of the end first is so far away that everybody hears of it in time */
	if (message.last_round < member->last_round)
		member->last_round = message.last_round;
	for (size_t i = 0; i < RING_SHARED_BLOCKS; i++)
		ring_block_verify(&member->left[i], member->left[i].address, message.generations[i],
				  member->stream, "neighbour", member->options->index);
	graph_replay(member, message.generations[RING_SMALL]);
	ring_fill(&member->cuda, member->stream, big->address + big->bytes - MARK_BYTES,
		  ring_mark(member->options->index, round), MARK_WORDS);
	T_OK(cuStreamSynchronize(member->stream));
	message = (struct ring_message){
		.kind = RING_ANSWER,
		.from = member->options->index,
		.round = round,
	};
	ring_message_send(member->options->left_fd, &message);
}

/* Our own view, through the second mapping, and what the driver says about all blocks. */
static void own_check(struct member *member, uint64_t round)
{
	unsigned right = (member->options->index + 1) % member->options->processes;
	struct ring_block *small = &member->own[RING_SMALL];
	struct ring_message message;

	ring_block_verify(small, small->alias, small->generation, member->stream, "second mapping",
			  member->options->index);
	for (size_t i = 0; i < RING_KINDS; i++)
		ring_answers_check(&member->own[i], member->cuda.device, member->options->index);
	for (size_t i = 0; i < RING_SHARED_BLOCKS; i++)
		ring_answers_check(&member->left[i], member->cuda.device, member->options->index);
	ring_message_expect(member->options, member->options->right_fd, RING_ANSWER, round,
			    &message);
	ring_mark_verify(&member->own[RING_BIG], ring_mark(right, round), member->stream);
}

static void rounds_run(struct member *member)
{
	for (uint64_t round = 1; round <= member->last_round; round++) {
		parent_hear(member, round);
		ring_load_hold(&member->load);
		announce(member, round);
		left_serve(member, round);
		own_check(member, round);
		ring_load_release(&member->load);
		if (member->options->has_multicast)
			ring_team_round(&member->team, round);
		t_send(member->options->parent_fd, &round, sizeof(round));
	}
}

static void member_free(struct member *member)
{
	T_OK(cuGraphExecDestroy(member->graph));
	T_OK(cuStreamDestroy_v2(member->stream));
	T_OK(cuMemFree_v2(member->counter));
	for (size_t i = 0; i < RING_SHARED_BLOCKS; i++)
		ring_block_free(&member->left[i]);
	for (size_t i = 0; i < RING_KINDS; i++)
		ring_block_free(&member->own[i]);
	ring_cuda_end(&member->cuda);
}

void ring_member_run(const struct ring_options *options)
{
	static struct member member;

	member.options = options;
	member.last_round = options->last_round;
	member.cuda = ring_cuda_begin(options->index % options->devices);
	member.stream = t_stream(CU_STREAM_NON_BLOCKING);
	own_make(&member);
	blocks_exchange(&member);
	graph_make(&member);
	if (options->has_multicast)
		ring_team_make(&member.team, options, &member.cuda, &member.own[RING_BIG],
			       member.stream);
	member.load.cuda = &member.cuda;
	member.load.index = options->index;
	member.load.own = member.own;
	ring_load_start(&member.load);
	rounds_run(&member);
	ring_load_end(&member.load);
	if (options->has_multicast)
		ring_team_free(&member.team);
	member_free(&member);
}
