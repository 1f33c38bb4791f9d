/*
 * Description: shared memory is rebuilt by whoever there is to do it: its creator, another holder where the creator has
 * let go of it, or a descriptor that kept it alive; and then it is captured and rebuilt again.
 *
 * usage: rebuild TOPIC
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "check.h"
#include "checkpoint.h"
#include "coordinator.h"
#include "device.h"
#include "driver/driver.h"
#include "group/foreign.h"
#include "members.h"

#define ROUNDS 2
#define TRIO 3
#define PAIR 2

/* ---- participants ---- */

struct block {
	CUdeviceptr address;
	unsigned char seed;
};

/* v: verify; w: write what comes next; n: somebody else has. Any other letter is the caller's. */
static char block_serve(int fd, struct block *block)
{
	for (;;) {
		char letter = t_hear_any(fd);

		if (letter == 'w')
			t_fill(block->address, T_BLOCK_BYTES, ++block->seed);
		else if (letter == 'n')
			block->seed++;
		else if (letter == 'v')
			t_verify(block->address, T_BLOCK_BYTES, block->seed);
		else
			return letter;
		t_say(fd, 'd');
	}
}

/* Gives a ticket away for each 't', and lets go of the memory with 'l'. */
static void run_making(int fd)
{
	struct t_vmm own;
	struct block block = {.seed = 1};
	char letter;

	(void)t_cuda();
	own = t_vmm(T_BLOCK_BYTES, T_FD_TYPE);
	block.address = own.address;
	t_fill(block.address, T_BLOCK_BYTES, block.seed);
	t_say(fd, 'r');
	for (letter = block_serve(fd, &block); letter == 't' || letter == 'l';
	     letter = block_serve(fd, &block)) {
		if (letter == 'l') {
			t_vmm_release(&own);
			t_say(fd, 'd');
		} else {
			int ticket = t_export(own.handle);

			t_send_fd(fd, ticket);
			T_SYS(close(ticket));
		}
	}
}

static void run_holding(int fd)
{
	CUmemGenericAllocationHandle handle;
	struct block block = {.seed = 1};
	int ticket;

	(void)t_cuda();
	ticket = t_receive_fd(fd);
	handle = t_import(ticket);
	block.address = t_map(handle, T_BLOCK_BYTES);
	T_OK(cuMemRelease(handle));
	T_SYS(close(ticket));
	t_say(fd, 'r');
	(void)block_serve(fd, &block);
}

static const struct t_mode modes[] = {
	{"making", run_making},
	{"holding", run_holding},
	{NULL, NULL},
};

/* ---- the coordinator ---- */

static struct t_member members[TRIO];
static struct stasis_id capture;
static const struct stasis_wire_exports nothing;
static unsigned char contents[T_BLOCK_BYTES];

static void ask_all(uint32_t first, uint32_t count, char letter)
{
	for (uint32_t i = first; i < count; i++) {
		t_say(members[i].child.fd, letter);
		t_hear(members[i].child.fd, 'd');
	}
}

/* Member 0 makes it, the others import it. */
static void members_start(uint32_t count)
{
	members[0].child = t_participant_start("making");
	t_hear(members[0].child.fd, 'r');
	for (uint32_t i = 1; i < count; i++) {
		int ticket;

		members[i].child = t_participant_start("holding");
		t_say(members[0].child.fd, 't');
		ticket = t_receive_fd(members[0].child.fd);
		t_send_fd(members[i].child.fd, ticket);
		T_SYS(close(ticket));
		t_hear(members[i].child.fd, 'r');
	}
	(void)t_cuda();
}

static void members_finish(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		t_say(members[i].child.fd, 'q');
		t_child_join(&members[i].child);
	}
}

/* Copies through a view of what a descriptor holds. */
static void contents_move(int fd, bool is_out)
{
	struct t_vmm view = {.handle = t_import(fd), .bytes = T_BLOCK_BYTES};

	view.address = t_map(view.handle, view.bytes);
	if (is_out)
		T_OK(cuMemcpyDtoH_v2(contents, view.address, view.bytes));
	else
		T_OK(cuMemcpyHtoD_v2(view.address, contents, view.bytes));
	/* From pageable memory it returns when the last part waits for the device to fetch it. */
	T_OK(cuCtxSynchronize());
	t_vmm_release(&view);
}

/* What participants export to each other, and keep, is no stranger to the coordinator. */
static void own_descriptors_pass(uint32_t count)
{
	static struct stasis_driver driver;
	struct stasis_error error = STASIS_ERROR_INIT;

	T_EQ(stasis_driver_open(NULL, &driver, &error), 0);
	for (uint32_t i = 0; i < count; i++) {
		CLEANUP(process) struct stasis_process process = STASIS_PROCESS_EMPTY;

		if (stasis_process_open(members[i].child.pid, &process, &error) != 0 ||
		    stasis_foreign_check(&driver, &process, true, &error) != 0)
			t_fail("%s", error.text);
	}
}

/* Until all is down; what `owner` handed out is copied. Descriptors are kept. */
static void apart(uint32_t count, uint32_t owner)
{
	t_members_open(members, count, NULL);
	t_members_do(members, count, STASIS_WIRE_GATE, STASIS_WIRE_GATE);
	for (uint32_t i = 0; i < count; i++)
		t_member_take(&members[i], STASIS_WIRE_SAVE_ALLOCATIONS);
	T_EQ(members[owner].exports.count, 1);
	contents_move(members[owner].descriptors.fds[0], true);
	t_members_do(members, count, STASIS_WIRE_ARM, STASIS_WIRE_PREPARE_UNICAST);
	capture = members[0].session.operation;
}

/* As at COMMIT: what was down is gone now. And the driver suspends what is private, and brings it back. */
static void commit_and_suspend(uint32_t count)
{
	t_members_close(members, count);
	for (uint32_t i = 0; i < count; i++)
		stasis_wire_descriptors_close(&members[i].descriptors);
	for (uint32_t i = 0; i < count; i++)
		t_suspend(members[i].child.pid);
	for (uint32_t i = 0; i < count; i++)
		t_resume(members[i].child.pid);
	t_members_open(members, count, &capture);
}

/* `owner` makes it anew and hands it out, and the coordinator loads what was in it. */
static void owner_load(uint32_t owner)
{
	struct t_member *member = &members[owner];

	T_DONE(&member->session, t_member_load(member, &member->exports, NULL));
	t_member_take(member, STASIS_WIRE_EXPORT_ALLOCATIONS);
	T_EQ(member->exports.count, 1);
	contents_move(member->descriptors.fds[0], false);
	memset(contents, 0, sizeof(contents));
}

static void together(uint32_t count)
{
	t_members_do(members, count, STASIS_WIRE_RESTORE_UNICAST, STASIS_WIRE_OPEN);
	t_members_close(members, count);
	for (uint32_t i = 0; i < count; i++)
		stasis_wire_descriptors_close(&members[i].descriptors);
}

static bool is_reattached(struct t_member *member)
{
	struct t_session *session = &member->session;
	const struct stasis_wire_inspect_page *page = &session->reply.inspect_page;

	T_DONE(session, t_session_ask(session, STASIS_WIRE_INSPECT));
	for (uint32_t i = 0; i < page->count; i++) {
		if (page->records[i].type == STASIS_WIRE_ALLOCATION)
			return (page->records[i].allocation.flags & STASIS_WIRE_IS_REATTACHED) != 0;
	}
	t_fail("nothing is told of the allocation");
}

/* Its creator has let go of it: one of the others makes it anew, and the coordinator brings it to the third. */
static void without_creator(void)
{
	members_start(TRIO);
	ask_all(0, 1, 'l');
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t owner = i % 2 == 0 ? 1 : 2;
		uint32_t other = 3 - owner;

		apart(TRIO, owner);
		T_EQ(members[0].exports.count, 0);
		commit_and_suspend(TRIO);
		T_DONE(&members[0].session, t_member_load(&members[0], &nothing, NULL));
		T_DONE(&members[other].session, t_member_load(&members[other], &nothing, NULL));
		owner_load(owner);
		T_REFUSED_WITH(&members[other].session,
			       t_member_load(&members[other], &members[owner].exports, NULL),
			       "this participant is loaded");
		T_DONE(&members[other].session,
		       t_member_load(&members[other], &members[owner].exports,
				     &members[owner].descriptors));
		together(TRIO);
		ask_all(1, TRIO, 'v');
		/* It is one memory. */
		ask_all(1, 2, 'w');
		ask_all(2, TRIO, 'n');
		ask_all(1, TRIO, 'v');
	}
	members_finish(TRIO);
}

/* Undone, each attached to what it had handed out; then for good; and all of it again. */
static void again_after_undo(void)
{
	members_start(PAIR);
	for (int i = 0; i < 2 * ROUNDS; i++) {
		bool is_undo = i % 2 == 0;

		apart(PAIR, 0);
		if (!is_undo) {
			commit_and_suspend(PAIR);
			owner_load(0);
			T_DONE(&members[1].session, t_member_load(&members[1], &nothing, NULL));
		}
		for (uint32_t j = 0; j < PAIR && is_undo; j++)
			T_DONE(&members[j].session, t_member_load(&members[j], &members[j].exports,
								  &members[j].descriptors));
		T_EQ(is_reattached(&members[0]), is_undo);
		together(PAIR);
		own_descriptors_pass(PAIR);
		ask_all(0, PAIR, 'v');
		ask_all(0, 1, 'w');
		ask_all(1, PAIR, 'n');
		ask_all(0, PAIR, 'v');
	}
	members_finish(PAIR);
}

/* A coordinator that forgets something is told so, while it can still be brought. */
static void left_out(void)
{
	struct t_session *session = &members[0].session;

	members_start(PAIR);
	apart(PAIR, 0);
	T_REFUSED_WITH(session, t_member_load(&members[0], &nothing, NULL), "is still down");
	T_EQ(session->error.status, STASIS_SUSPENDED);
	T_REFUSED_WITH(session, t_session_ask(session, STASIS_WIRE_RESTORE_UNICAST),
		       "this participant is suspended");
	owner_load(0);
	T_DONE(&members[1].session, t_member_load(&members[1], &nothing, NULL));
	together(PAIR);
	ask_all(0, PAIR, 'v');
	members_finish(PAIR);
}

static const struct t_topic topics[] = {
	{"without_creator", without_creator},
	{"again_after_undo", again_after_undo},
	{"left_out", left_out},
	{NULL, NULL},
};

int main(int argument_count, char **arguments)
{
	t_topics_main(argument_count, arguments, modes, topics);
}
