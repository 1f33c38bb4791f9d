/*
 * Description: a program that shares memory, events or pools otherwise than by descriptors of memory is refused by name,
 * before anything is touched, and goes on.
 *
 * usage: other_sharing TOPIC
 */

#include <string.h>
#include <unistd.h>

#include "check.h"
#include "coordinator.h"
#include "device.h"

/* ---- participants: each shares what its name says, and waits ---- */

static void wait_for_end(int fd)
{
	t_say(fd, 'r');
	t_hear(fd, 'q');
}

static void run_memory(int fd)
{
	CUipcMemHandle handle;

	(void)t_cuda();
	T_OK(cuIpcGetMemHandle(&handle, t_alloc(T_BLOCK_BYTES)));
	wait_for_end(fd);
}

static void run_event(int fd)
{
	CUipcEventHandle handle;
	CUevent event;

	(void)t_cuda();
	T_OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	T_OK(cuIpcGetEventHandle(&handle, event));
	wait_for_end(fd);
}

static void run_pool(int fd)
{
	CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = T_FD_TYPE,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
	};
	CUmemoryPool pool;
	int shareable = -1;

	(void)t_cuda();
	T_OK(cuMemPoolCreate(&pool, &props));
	T_OK(cuMemPoolExportToShareableHandle(&shareable, pool, T_FD_TYPE, 0));
	T_SYS(close(shareable));
	wait_for_end(fd);
}

/* Receives a handle, opens it, and closes it again when it is told to. */
static void run_opening(int fd)
{
	CUipcMemHandle handle;
	CUdeviceptr address;

	(void)t_cuda();
	t_receive(fd, &handle, sizeof(handle));
	T_OK(cuIpcOpenMemHandle_v2(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	t_say(fd, 'r');
	t_hear(fd, 'c');
	T_OK(cuIpcCloseMemHandle(address));
	wait_for_end(fd);
}

static const struct t_mode modes[] = {
	{"memory", run_memory},   {"event", run_event}, {"pool", run_pool},
	{"opening", run_opening}, {NULL, NULL},
};

/* ---- the coordinator ---- */

static struct t_session session;

static bool is_refused_for(pid_t pid, const char *text)
{
	const struct stasis_wire_inspect_page *page = &session.reply.inspect_page;
	bool is_found = false;

	T_DONE(&session, t_session_open(&session, pid, NULL, NULL));
	T_DONE(&session, t_session_ask(&session, STASIS_WIRE_INSPECT));
	for (uint32_t i = 0; i < page->count; i++) {
		const struct stasis_wire_record *record = &page->records[i];

		is_found = is_found || (record->type == STASIS_WIRE_NOTE &&
					record->note.kind == STASIS_WIRE_NOTE_UNSUPPORTED &&
					strstr(record->note.text, text));
	}
	t_session_close(&session);
	return is_found;
}

static void refused_for(const char *mode, const char *text)
{
	struct t_child child = t_participant_start(mode);

	t_hear(child.fd, 'r');
	T_TRUE(is_refused_for(child.pid, text));
	t_say(child.fd, 'q');
	t_child_join(&child);
}

static void memory_given_out(void)
{
	refused_for("memory", "cuIpcGetMemHandle");
}

static void events(void)
{
	refused_for("event", "cuIpcGetEventHandle");
}

static void pools(void)
{
	refused_for("pool", "pools");
}

/* It hinders while it is open, and no longer. */
static void memory_opened(void)
{
	struct t_child child = t_participant_start("opening");
	CUipcMemHandle handle;

	(void)t_cuda();
	T_OK(cuIpcGetMemHandle(&handle, t_alloc(T_BLOCK_BYTES)));
	t_send(child.fd, &handle, sizeof(handle));
	t_hear(child.fd, 'r');
	T_TRUE(is_refused_for(child.pid, "cuIpcOpenMemHandle"));
	t_say(child.fd, 'c');
	t_hear(child.fd, 'r');
	T_TRUE(!is_refused_for(child.pid, "cuIpcOpenMemHandle"));
	t_say(child.fd, 'q');
	t_child_join(&child);
}

static const struct t_topic topics[] = {
	{"memory_given_out", memory_given_out},
	{"memory_opened", memory_opened},
	{"events", events},
	{"pools", pools},
	{NULL, NULL},
};

int main(int argument_count, char **arguments)
{
	t_topics_main(argument_count, arguments, modes, topics);
}
