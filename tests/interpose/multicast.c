/*
 * Description: two participants with a multicast team of two devices are taken apart, natively suspended and put together
 * again, as often as one likes, with every byte, handle and address as it was; a driver call that fails in between can
 * be undone; records tell what there is, and go with it.
 *
 * usage: multicast TOPIC
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "check.h"
#include "checkpoint.h"
#include "device.h"
#include "group/topology.h"
#include "members.h"
#include "teams.h"

#define PAIR 2
#define CYCLES 3
#define ITEMS_MAX 8

static const struct t_mode modes[] = {
	{"creating", t_team_run_creating},
	{"importing", t_team_run_importing},
	{"passing", t_team_run_passing},
	{"waiting", t_team_run_waiting},
	{NULL, NULL},
};

static struct t_member members[PAIR];
static struct stasis_id capture;
static unsigned char contents[PAIR][ITEMS_MAX][T_BLOCK_BYTES];

static void ask(int member, char letter)
{
	t_say(members[member].child.fd, letter);
	t_hear(members[member].child.fd, 'd');
}

static void ask_both(char letter)
{
	for (int i = 0; i < PAIR; i++)
		t_say(members[i].child.fd, letter);
	for (int i = 0; i < PAIR; i++)
		t_hear(members[i].child.fd, 'd');
}

/* `fault` is for the participant with that number alone, and sleeps until the file is there. */
static void pair_start(const char *fault, int faulty)
{
	static const char *const roles[PAIR] = {"creating", "importing"};
	int ticket;

	t_ask_devices(PAIR);
	for (int i = 0; i < PAIR; i++) {
		if (fault && i == faulty)
			T_SYS(setenv("STASIS_SIM_FAULT", fault, 1));
		members[i].child = t_participant_start(roles[i]);
		T_SYS(unsetenv("STASIS_SIM_FAULT"));
	}
	ticket = t_receive_fd(members[0].child.fd);
	t_send_fd(members[1].child.fd, ticket);
	T_SYS(close(ticket));
	for (int i = 0; i < PAIR; i++)
		t_hear(members[i].child.fd, 'r');
	ask_both('f');
}

/* That all is as it was, and that the team works: what one writes reaches both. */
static void pair_verify(void)
{
	ask_both('v');
	ask(0, 'w');
	ask(1, 'n');
	ask_both('v');
	ask_both('u');
	ask_both('f');
}

static void pair_finish(void)
{
	for (int i = 0; i < PAIR; i++) {
		t_say(members[i].child.fd, 'q');
		t_child_join(&members[i].child);
	}
}

/* ---- what INSPECT tells ---- */

static void topology_look(struct stasis_topology *ret_topology)
{
	struct stasis_error error = STASIS_ERROR_INIT;

	*ret_topology = (struct stasis_topology){.members = NULL};
	for (int i = 0; i < PAIR; i++) {
		struct t_session *session = &members[i].session;
		struct stasis_wire_inspect_page *page = &session->reply.inspect_page;
		struct stasis_member member = {.pid = members[i].child.pid};

		T_DONE(session, t_session_ask(session, STASIS_WIRE_INSPECT));
		T_EQ(page->total, page->count);
		member.participant = members[i].participant;
		member.records = page->records;
		member.record_count = page->count;
		if (stasis_topology_add(ret_topology, &member, &error) != 0)
			t_fail("add: %s", error.text);
	}
	if (stasis_topology_check(ret_topology, &error) != 0)
		t_fail("check: %s", error.text);
}

static uint32_t records_count(int member, enum stasis_wire_record_type type)
{
	struct t_session *session = &members[member].session;
	const struct stasis_wire_inspect_page *page = &session->reply.inspect_page;
	uint32_t count = 0;

	T_DONE(session, t_session_ask(session, STASIS_WIRE_INSPECT));
	for (uint32_t i = 0; i < page->count; i++)
		count += page->records[i].type == type;
	return count;
}

static bool has_note(int member, const char *text)
{
	struct t_session *session = &members[member].session;
	const struct stasis_wire_inspect_page *page = &session->reply.inspect_page;

	T_DONE(session, t_session_ask(session, STASIS_WIRE_INSPECT));
	for (uint32_t i = 0; i < page->count; i++) {
		if (page->records[i].type == STASIS_WIRE_NOTE &&
		    strstr(page->records[i].note.text, text))
			return true;
	}
	return false;
}

/* ---- apart and together ---- */

static void contents_move(int member, bool is_out)
{
	for (uint32_t i = 0; i < members[member].exports.count; i++) {
		struct t_vmm view = {.handle = t_import(members[member].descriptors.fds[i]),
				     .bytes = T_BLOCK_BYTES};

		T_EQ(members[member].exports.items[i].bytes, view.bytes);
		view.address = t_map(view.handle, view.bytes);
		if (is_out)
			T_OK(cuMemcpyDtoH_v2(contents[member][i], view.address, view.bytes));
		else
			T_OK(cuMemcpyHtoD_v2(view.address, contents[member][i], view.bytes));
		t_vmm_release(&view);
	}
}

static void gate_and_save(void)
{
	t_members_open(members, PAIR, NULL);
	t_members_do(members, PAIR, STASIS_WIRE_GATE, STASIS_WIRE_GATE);
	for (int i = 0; i < PAIR; i++) {
		t_member_take(&members[i], STASIS_WIRE_SAVE_ALLOCATIONS);
		T_EQ(members[i].exports.count, TEAM_OURS);
	}
	capture = members[0].session.operation;
}

static void together(void)
{
	t_members_do(members, PAIR, STASIS_WIRE_RESTORE_UNICAST, STASIS_WIRE_OPEN);
	t_members_close(members, PAIR);
	for (int i = 0; i < PAIR; i++)
		stasis_wire_descriptors_close(&members[i].descriptors);
}

/* Each is made anew and filled, or attached to what still holds it. */
static void load(bool is_anew)
{
	for (int i = 0; i < PAIR; i++)
		T_DONE(&members[i].session,
		       t_member_load(&members[i], &members[i].exports,
				     is_anew ? NULL : &members[i].descriptors));
	for (int i = 0; i < PAIR && is_anew; i++) {
		struct stasis_wire_exports saved = members[i].exports;

		t_member_take(&members[i], STASIS_WIRE_EXPORT_ALLOCATIONS);
		T_EQ(members[i].exports.count, saved.count);
		/* The contents are in this order. */
		for (uint32_t j = 0; j < saved.count; j++)
			T_TRUE(stasis_id_equal(&members[i].exports.items[j].object,
					       &saved.items[j].object));
		contents_move(i, false);
	}
}

static void suspend_natively(void)
{
	t_members_close(members, PAIR);
	for (int i = 0; i < PAIR; i++)
		t_suspend(members[i].child.pid);
	for (int i = 0; i < PAIR; i++)
		T_EQ(t_driver_descriptors(members[i].child.pid), 0);
	for (int i = 0; i < PAIR; i++)
		t_resume(members[i].child.pid);
	t_members_open(members, PAIR, &capture);
}

static void cycle(bool is_anew)
{
	CLEANUP(topology) struct stasis_topology captured;
	CLEANUP(topology) struct stasis_topology present;
	struct stasis_error error = STASIS_ERROR_INIT;

	gate_and_save();
	topology_look(&captured);
	for (int i = 0; i < PAIR; i++) {
		contents_move(i, true);
		if (is_anew)
			stasis_wire_descriptors_close(&members[i].descriptors);
	}
	t_members_do(members, PAIR, STASIS_WIRE_ARM, STASIS_WIRE_PREPARE_UNICAST);
	suspend_natively();
	load(is_anew);
	t_members_do(members, PAIR, STASIS_WIRE_RESTORE_UNICAST,
		     STASIS_WIRE_RESTORE_MULTICAST_BINDINGS);
	topology_look(&present);
	if (stasis_topology_compare(&captured, &present, &error) != 0)
		t_fail("compare: %s", error.text);
	t_members_do(members, PAIR, STASIS_WIRE_OPEN, STASIS_WIRE_OPEN);
	t_members_close(members, PAIR);
	for (int i = 0; i < PAIR; i++)
		stasis_wire_descriptors_close(&members[i].descriptors);
	pair_verify();
}

static void apart_and_together(void)
{
	pair_start(NULL, 0);
	(void)t_cuda();
	for (int i = 0; i < CYCLES; i++) {
		cycle(true);
		cycle(false);
	}
	pair_finish();
}

/* ---- undo ---- */

static void undo(void)
{
	t_members_do(members, PAIR, STASIS_WIRE_PREPARE_MULTICAST, STASIS_WIRE_PREPARE_MULTICAST);
	t_members_do(members, PAIR, STASIS_WIRE_RESTORE_MULTICAST_CREATORS, STASIS_WIRE_OPEN);
	t_members_close(members, PAIR);
	for (int i = 0; i < PAIR; i++)
		stasis_wire_descriptors_close(&members[i].descriptors);
}

static const enum stasis_wire_phase multicast_way[] = {
	STASIS_WIRE_PREPARE_MULTICAST,           STASIS_WIRE_RESTORE_MULTICAST_CREATORS,
	STASIS_WIRE_RESTORE_MULTICAST_IMPORTERS, STASIS_WIRE_RESTORE_MULTICAST_DEVICES,
	STASIS_WIRE_RESTORE_MULTICAST_BINDINGS,
};

/* After the phase of that index, done by those whose bits are set. */
static void undo_from(size_t index, uint32_t who)
{
	gate_and_save();
	t_members_do(members, PAIR, STASIS_WIRE_ARM, STASIS_WIRE_ARM);
	for (size_t i = 0; i < index; i++)
		t_members_do(members, PAIR, multicast_way[i], multicast_way[i]);
	for (int i = 0; i < PAIR; i++) {
		if ((who & 1u << i) != 0)
			t_member_do(&members[i], multicast_way[index]);
	}
	undo();
	pair_verify();
}

static void undo_from_everywhere(void)
{
	pair_start(NULL, 0);
	for (size_t i = 0; i < ARRAY_COUNT(multicast_way); i++) {
		for (uint32_t who = 1; who <= 3; who++)
			undo_from(i, who);
	}
	pair_finish();
}

/* True: the phase failed, as it was to. */
static bool phase_try(int member, enum stasis_wire_phase phase)
{
	struct t_session *session = &members[member].session;

	if (t_session_ask(session, phase) == 0)
		return false;
	if (!strstr(session->error.text, "UNKNOWN"))
		t_fail("failed for another reason: %s", session->error.text);
	return true;
}

static bool phases_try(void)
{
	for (size_t i = 0; i < ARRAY_COUNT(multicast_way); i++) {
		for (int j = 0; j < PAIR; j++) {
			if (phase_try(j, multicast_way[i]))
				return true;
		}
	}
	return false;
}

static void file_make(const char *path)
{
	CLEANUP(fd) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	T_SYS(fd);
}

/*
 * The first call of that name fails in the first try, the second in the second, and so on: a call counts while the file
 * `when` is there, and those of earlier tries have counted.
 */
static void fault_write(const char *call, int count, char *ret_text, size_t room)
{
	int number = 0;
	size_t at = 0;

	for (int i = 1; i <= count; i++) {
		number += i;
		at += (size_t)snprintf(ret_text + at, room - at, "%s%s:%d=UNKNOWN",
				       i > 1 ? "," : "", call, number);
		T_TRUE(at < room);
	}
}

static void fail_at_each(const char *call, int count, int member)
{
	static char when[4096];
	char fault[1024];
	const char *folder = getenv("TMPDIR");

	(void)snprintf(when, sizeof(when), "%s/now", folder ? folder : "/tmp");
	T_SYS(setenv("STASIS_SIM_FAULT_WHEN", when, 1));
	fault_write(call, count, fault, sizeof(fault));
	pair_start(fault, member);
	for (int i = 0; i < count; i++) {
		gate_and_save();
		t_members_do(members, PAIR, STASIS_WIRE_ARM, STASIS_WIRE_ARM);
		file_make(when);
		if (!phases_try())
			t_fail("%s was not reached for the %d. time in member %d", call, i + 1,
			       member);
		T_SYS(unlink(when));
		undo();
		pair_verify();
	}
	/* And nothing of it stays behind. */
	gate_and_save();
	t_members_do(members, PAIR, STASIS_WIRE_ARM, STASIS_WIRE_PREPARE_UNICAST);
	suspend_natively();
	load(false);
	together();
	pair_verify();
	pair_finish();
}

#define CREATOR 1u
#define IMPORTER 2u
#define EITHER 3u

struct failure {
	const char *call;
	int count; /* that a participant makes */
	uint32_t who;
};

static void failures(const struct failure *failure)
{
	for (; failure->call; failure++) {
		for (int member = 0; member < PAIR; member++) {
			if ((failure->who & 1u << member) != 0)
				fail_at_each(failure->call, failure->count, member);
		}
	}
}

static void fails_apart(void)
{
	static const struct failure calls[] = {
		{"cuMemUnmap", 2, EITHER},
		{"cuMulticastUnbind", TEAM_BLOCKS, EITHER},
		{"cuMemRelease", 1, EITHER},
		{NULL, 0, 0},
	};

	failures(calls);
}

static void fails_made(void)
{
	static const struct failure calls[] = {
		{"cuMulticastCreate", 1, CREATOR},
		{"cuMemExportToShareableHandle", 1, CREATOR},
		{"cuMemImportFromShareableHandle", 1, IMPORTER},
		{"cuMulticastAddDevice", 1, EITHER},
		{NULL, 0, 0},
	};

	failures(calls);
}

/* What was bound by an address of ours is bound by its memory then. The names are of both versions of a call. */
static void fails_bound(void)
{
	static const struct failure calls[] = {
		{"cuMulticastBindMem", 4, EITHER},
		{"cuMulticastBindAddr", 2, EITHER},
		{NULL, 0, 0},
	};

	failures(calls);
}

static void fails_mapped(void)
{
	static const struct failure calls[] = {
		{"cuMemMap", 2, EITHER},
		{"cuMemSetAccess", 2, EITHER},
		{NULL, 0, 0},
	};

	failures(calls);
}

/* ---- records ---- */

static void records(void)
{
	pair_start(NULL, 0);
	t_members_open(members, PAIR, NULL);
	for (int i = 0; i < PAIR; i++) {
		T_EQ(records_count(i, STASIS_WIRE_MULTICAST), 1);
		T_EQ(records_count(i, STASIS_WIRE_TEAM_DEVICE), 1);
		T_EQ(records_count(i, STASIS_WIRE_BINDING), TEAM_BLOCKS);
		T_EQ(records_count(i, STASIS_WIRE_ALLOCATION), TEAM_OURS);
		T_EQ(records_count(i, STASIS_WIRE_NOTE), 0);
	}
	/* Memory without a handle type is bound, and hinders a capture as long as it is. */
	ask(0, 'b');
	T_EQ(records_count(0, STASIS_WIRE_BINDING), TEAM_BLOCKS);
	T_TRUE(has_note(0, "without descriptors that multicast"));
	ask(0, 'c');
	T_TRUE(!has_note(0, "multicast"));
	/* What only its binding held goes with it. */
	ask_both('o');
	for (int i = 0; i < PAIR; i++) {
		T_EQ(records_count(i, STASIS_WIRE_BINDING), TEAM_BLOCKS - 1);
		T_EQ(records_count(i, STASIS_WIRE_ALLOCATION), TEAM_OURS - 1);
	}
	/* And everything else with the last of the object. */
	ask_both('l');
	for (int i = 0; i < PAIR; i++) {
		T_EQ(records_count(i, STASIS_WIRE_MULTICAST), 0);
		T_EQ(records_count(i, STASIS_WIRE_TEAM_DEVICE), 0);
		T_EQ(records_count(i, STASIS_WIRE_BINDING), 0);
		T_EQ(records_count(i, STASIS_WIRE_ALLOCATION), 0);
	}
	t_members_close(members, PAIR);
	pair_finish();
}

static int gate_all(struct t_session *session, uint64_t limit_ns)
{
	int result;

	session->request.gate_request.limit_ns = limit_ns;
	session->request.gate_request.step = STASIS_WIRE_GATE_ALL;
	result = t_session_ask(session, STASIS_WIRE_GATE);
	memset(&session->request, 0, sizeof(session->request));
	return result;
}

/* The gate cannot close on a bind that waits for its team: it is given up, naming the call, and all goes on. */
static void bind_that_waits(void)
{
	struct t_session *session = &members[0].session;
	int result;

	t_ask_devices(PAIR);
	members[0].child = t_participant_start("waiting");
	t_hear(members[0].child.fd, 'r');
	/* Until its other thread is in the driver, where it stays. */
	do {
		T_DONE(session, t_session_open(session, members[0].child.pid, NULL, NULL));
		T_DONE(session, t_session_gate(session, STASIS_WIRE_GATE_CAPTURES));
		result = gate_all(session, STASIS_NS_PER_S / 5);
		if (result == 0)
			T_DONE(session, t_session_ask(session, STASIS_WIRE_OPEN));
		else
			t_session_check_refused(session, __FILE__, __LINE__, result,
						"cuMulticastBindMem");
		t_session_close(session);
	} while (result == 0);
	t_say(members[0].child.fd, 'a');
	t_hear(members[0].child.fd, 'd');
	T_DONE(session, t_session_open(session, members[0].child.pid, NULL, NULL));
	T_EQ(records_count(0, STASIS_WIRE_TEAM_DEVICE), 2);
	T_EQ(records_count(0, STASIS_WIRE_BINDING), 1);
	t_session_close(session);
	t_say(members[0].child.fd, 'q');
	t_child_join(&members[0].child);
}

/* Objects come and go for ever, and leave nothing behind. */
static void churn(void)
{
	struct t_child child;

	t_ask_devices(PAIR);
	child = t_participant_start("passing");
	t_hear(child.fd, 'r');
	t_child_join(&child);
}

static const struct t_topic topics[] = {
	{"apart_and_together", apart_and_together},
	{"undo_from_everywhere", undo_from_everywhere},
	{"fails_apart", fails_apart},
	{"fails_made", fails_made},
	{"fails_bound", fails_bound},
	{"fails_mapped", fails_mapped},
	{"records", records},
	{"bind_that_waits", bind_that_waits},
	{"churn", churn},
	{NULL, NULL},
};

int main(int argument_count, char **arguments)
{
	t_topics_main(argument_count, arguments, modes, topics);
}
