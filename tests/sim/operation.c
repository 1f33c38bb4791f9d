/*
 * Description: the checkpoint module takes simulated processes through both stores: views by UUID, contexts
 * for exactly the GPUs with data, other GPUs at a restore, adopted operations, and its refusals.
 *
 * usage: operation NAME; the names stand in the table at the end.
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"
#include "checkpoint/checkpoint.h"
#include "child.h"
#include "device.h"
#include "driver/driver.h"
#include "driver/report.h"
#include "witness.h"

#define DEVICES 3
#define LOAD_DEVICES 2 /* GPU 2 holds nothing */
#define LOAD_BYTES (6 * T_MIB)
#define LOCK_MS 10000

static struct stasis_driver driver;
static struct stasis_driver_report report;
static struct t_child child;
static struct stasis_target target = STASIS_TARGET_EMPTY;
static struct stasis_error err;
static struct t_load load = {.devices = LOAD_DEVICES, .bytes = LOAD_BYTES};

/* The bytes of each view, in the order in which the driver gave them. */
static struct {
	unsigned int count;
	struct stasis_view_expected expected[DEVICES];
	void *copies[DEVICES];
} store;

/* A call of the module's must work; where not, its own line says why. */
#define DONE(call)                                                                                 \
	do {                                                                                       \
		if ((call) != 0)                                                                   \
			t_fail("%s:%d: %s", __FILE__, __LINE__, err.text);                         \
	} while (0)

/* A call must be refused with this status and a line that holds `wanted`. */
#define REFUSED(call, wanted_status, wanted)                                                       \
	do {                                                                                       \
		memset(&err, 0, sizeof(err));                                                      \
		T_EQ((call), -1);                                                                  \
		if (err.status != (wanted_status) || !strstr(err.text, (wanted)))                  \
			t_fail("%s:%d: status %d: %s", __FILE__, __LINE__, (int)err.status,        \
			       err.text);                                                          \
		memset(&err, 0, sizeof(err));                                                      \
	} while (0)

/* The driver is started here, after the fork. */
static void stage_set(void)
{
	child = t_child_start(t_load_run, &load);
	t_hear(child.fd, 'R');
	DONE(stasis_driver_open(NULL, &driver, &err));
	DONE(stasis_driver_start(&driver, &err));
	DONE(stasis_driver_report_read(&driver, STASIS_REPORT_PLAIN, &report, &err));
	T_EQ(report.gpu_count, DEVICES);
	DONE(stasis_target_open(&driver, child.pid, &target, &err));
}

static void stage_end(void)
{
	t_say(child.fd, 'V');
	t_hear(child.fd, 'O');
	stasis_target_close(&target);
	t_child_join(&child);
}

static bool has_context(int ordinal)
{
	unsigned int flags = 0;
	int is_active = 0;

	T_OK(driver.cuDevicePrimaryCtxGetState(ordinal, &flags, &is_active));
	return is_active != 0;
}

static void contexts_check(bool first, bool second, bool third)
{
	T_EQ(has_context(0), first);
	T_EQ(has_context(1), second);
	T_EQ(has_context(2), third);
}

static void view_copy(const struct stasis_view *view, void *copy,
		      enum stasis_operation_direction direction)
{
	CUcontext popped = NULL;

	T_OK(driver.cuCtxPushCurrent(view->context));
	if (direction == STASIS_OPERATION_CHECKPOINT)
		T_OK(driver.cuMemcpyDtoH(copy, view->pointer, view->bytes));
	else
		T_OK(driver.cuMemcpyHtoD(view->pointer, copy, view->bytes));
	T_OK(driver.cuCtxPopCurrent(&popped));
}

static void views_save(const struct stasis_operation *operation)
{
	store.count = operation->view_count;
	for (unsigned int i = 0; i < operation->view_count; i++) {
		const struct stasis_view *view = &operation->views[i];

		T_TRUE(stasis_id_equal(&view->device.uuid,
				       &report.gpus[view->device.ordinal].uuid));
		T_TRUE(view->bytes > LOAD_BYTES);
		store.expected[i] = (struct stasis_view_expected){.uuid = view->device.uuid,
								  .bytes = view->bytes};
		store.copies[i] = malloc(view->bytes);
		T_TRUE(store.copies[i] != NULL);
		view_copy(view, store.copies[i], STASIS_OPERATION_CHECKPOINT);
	}
}

/* Fills each view with what was saved from the GPU whose place its own takes. */
static void views_load(struct stasis_operation *operation, const struct stasis_remap *remap)
{
	struct stasis_view_expected expected[DEVICES];

	for (unsigned int i = 0; i < store.count; i++)
		expected[i] = (struct stasis_view_expected){
			.uuid = *stasis_remap_new(remap, &store.expected[i].uuid),
			.bytes = store.expected[i].bytes};
	DONE(stasis_operation_match(operation, expected, store.count, &err));
	for (unsigned int i = 0; i < store.count; i++) {
		view_copy(stasis_operation_view(operation, &expected[i].uuid), store.copies[i],
			  STASIS_OPERATION_RESTORE);
		free(store.copies[i]);
	}
}

static void state_check(CUprocessState wanted)
{
	CUprocessState state = CU_PROCESS_STATE_FAILED;

	DONE(stasis_target_state(&target, &state, &err));
	T_EQ(state, wanted);
}

static void custom_suspend(void)
{
	struct stasis_operation_options options = {.direction = STASIS_OPERATION_CHECKPOINT};
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;

	DONE(stasis_target_lock(&target, LOCK_MS, &err));
	DONE(stasis_operation_begin(&operation, &target, &options, &err));
	T_EQ(operation.view_count, LOAD_DEVICES);
	/* All were retained; what holds nothing is let go again. */
	contexts_check(true, true, false);
	views_save(&operation);
	DONE(stasis_operation_complete(&operation, &err));
	contexts_check(false, false, false);
	stasis_operation_close(&operation);
	state_check(CU_PROCESS_STATE_CHECKPOINTED);
	T_WITNESS(child.pid, "CHECKPOINTED");
}

/* `gpus` are those that will hold data; the contexts of a restore are theirs alone. */
static void custom_resume(const struct stasis_remap *remap)
{
	struct stasis_id gpus[DEVICES];
	struct stasis_operation_options options = {
		.direction = STASIS_OPERATION_RESTORE,
		.gpus = {.uuids = gpus, .count = store.count},
		.remap = *remap,
	};
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;

	for (unsigned int i = 0; i < store.count; i++)
		gpus[i] = *stasis_remap_new(remap, &store.expected[i].uuid);
	DONE(stasis_operation_begin(&operation, &target, &options, &err));
	views_load(&operation, remap);
	DONE(stasis_operation_complete(&operation, &err));
	stasis_operation_close(&operation);
	contexts_check(false, false, false);
	state_check(CU_PROCESS_STATE_LOCKED);
	DONE(stasis_target_unlock(&target, &err));
	state_check(CU_PROCESS_STATE_RUNNING);
}

static void custom_trips(void)
{
	struct stasis_remap stay = {.count = 0};

	for (int i = 0; i < 2; i++) {
		custom_suspend();
		custom_resume(&stay);
	}
}

static void remap_trip(void)
{
	struct stasis_gpu_pair pairs[DEVICES];
	struct stasis_remap remap = {.pairs = pairs, .count = DEVICES};
	uint64_t bytes[DEVICES];

	for (int i = 0; i < DEVICES; i++) {
		bytes[i] = t_witness_bytes(child.pid, i);
		pairs[i] =
			(struct stasis_gpu_pair){.old_uuid = report.gpus[i].uuid,
						 .new_uuid = report.gpus[(i + 1) % DEVICES].uuid};
	}
	custom_suspend();
	remap.count = DEVICES - 1;
	REFUSED(stasis_remap_check(&driver, &remap, report.gpus, DEVICES, &err), STASIS_SUSPENDED,
		"no GPU pair names");
	remap.count = DEVICES;
	DONE(stasis_remap_check(&driver, &remap, report.gpus, DEVICES, &err));
	custom_resume(&remap);
	for (int i = 0; i < DEVICES; i++)
		T_EQ(t_witness_bytes(child.pid, (i + 1) % DEVICES), bytes[i]);
}

static void native_trip(void)
{
	struct stasis_gpu_pair pairs[DEVICES];
	struct stasis_remap remap = {.pairs = pairs, .count = DEVICES};

	for (int i = 0; i < DEVICES; i++)
		pairs[i] = (struct stasis_gpu_pair){.old_uuid = report.gpus[i].uuid,
						    .new_uuid = report.gpus[DEVICES - 1 - i].uuid};
	DONE(stasis_target_lock(&target, LOCK_MS, &err));
	DONE(stasis_target_checkpoint(&target, &err));
	state_check(CU_PROCESS_STATE_CHECKPOINTED);
	REFUSED(stasis_target_lock(&target, LOCK_MS, &err), STASIS_SUSPENDED, "it is CHECKPOINTED");
	REFUSED(stasis_target_unlock(&target, &err), STASIS_SUSPENDED, "it is CHECKPOINTED");
	DONE(stasis_target_restore(&target, &remap, &err));
	DONE(stasis_target_unlock(&target, &err));
	state_check(CU_PROCESS_STATE_RUNNING);
}

/* Given away and adopted once more on the way. */
static void adopted_save(CUcheckpointCustomStorageInfo *info)
{
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_operation other = STASIS_OPERATION_EMPTY;

	DONE(stasis_operation_adopt(&operation, &target, STASIS_OPERATION_CHECKPOINT, info, &err));
	views_save(&operation);
	T_TRUE(stasis_operation_release(&operation) == info);
	DONE(stasis_operation_adopt(&other, &target, STASIS_OPERATION_CHECKPOINT, info, &err));
	DONE(stasis_operation_complete(&other, &err));
	REFUSED(stasis_operation_complete(&other, &err), STASIS_INTERNAL, "completed already");
	stasis_operation_close(&other);
	state_check(CU_PROCESS_STATE_CHECKPOINTED);
}

static void adopted_checkpoint(void)
{
	CUcheckpointCustomStorageInfo *info = NULL;
	CUcheckpointCheckpointArgs args = {.customStorageInfo_out = &info};
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_contexts contexts = {.count = 0};
	struct stasis_gpu_set all = {.count = 0};

	REFUSED(stasis_operation_adopt(&operation, &target, STASIS_OPERATION_CHECKPOINT, info,
				       &err),
		STASIS_REFUSED, "is RUNNING, so none has begun");
	DONE(stasis_target_lock(&target, LOCK_MS, &err));
	DONE(stasis_contexts_retain(&driver, &all, &contexts, &err));
	T_OK(driver.cuCheckpointProcessCheckpoint(child.pid, &args));
	adopted_save(info);
	stasis_contexts_release(&contexts);
}

static void adopt(void)
{
	struct stasis_operation_options options = {.direction = STASIS_OPERATION_RESTORE};
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_remap stay = {.count = 0};

	adopted_checkpoint();
	DONE(stasis_operation_begin(&operation, &target, &options, &err));
	views_load(&operation, &stay);
	DONE(stasis_operation_complete(&operation, &err));
	stasis_operation_close(&operation);
	DONE(stasis_target_unlock(&target, &err));
}

/* A driver older than CustomStorage: refused by its reason, and the locked target runs again. */
static void older_driver(void)
{
	struct stasis_operation_options options = {.direction = STASIS_OPERATION_CHECKPOINT};
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;

	T_TRUE(stasis_driver_has_checkpoint(&driver));
	T_TRUE(!stasis_driver_has_custom_storage(&driver));
	DONE(stasis_target_lock(&target, LOCK_MS, &err));
	REFUSED(stasis_operation_begin(&operation, &target, &options, &err), STASIS_REFUSED,
		"CUDA 13.4 or newer is needed; it was unlocked and runs as before");
	T_WITNESS(child.pid, "RUNNING");
	native_trip();
}

static void *thread_main(void *data)
{
	int *ends = data;
	pid_t tid = (pid_t)syscall(SYS_gettid);
	char end;

	T_SYS(write(ends[1], &tid, sizeof(tid)));
	T_SYS(read(ends[2], &end, 1));
	return NULL;
}

static void plain_run(int fd, void *argument)
{
	(void)argument;
	t_say(fd, 'R');
	t_wait_end(fd);
}

static int open_other(pid_t pid)
{
	struct stasis_target other = STASIS_TARGET_EMPTY;

	return stasis_target_open(&driver, pid, &other, &err);
}

static void refuse_thread(void)
{
	pthread_t thread;
	int ends[4];
	pid_t tid = 0;
	char leader[64];

	T_SYS(pipe(ends));
	T_SYS(pipe(ends + 2));
	T_EQ(pthread_create(&thread, NULL, thread_main, ends), 0);
	T_EQ(T_SYS(read(ends[0], &tid, sizeof(tid))), sizeof(tid));
	(void)snprintf(leader, sizeof(leader), "a thread of process %d", (int)getpid());
	REFUSED(open_other(tid), STASIS_REFUSED, leader);
	T_SYS(write(ends[3], "e", 1));
	T_EQ(pthread_join(thread, NULL), 0);
}

static void refusals(void)
{
	struct t_child plain;

	REFUSED(open_other(0), STASIS_REFUSED, "not a process id");
	REFUSED(open_other(getpid()), STASIS_REFUSED, "this program itself");
	refuse_thread();
	plain = t_child_start(plain_run, NULL);
	t_hear(plain.fd, 'R');
	REFUSED(open_other(plain.pid), STASIS_REFUSED, "it has no CUDA state");
	t_child_kill(&plain);
	REFUSED(open_other(plain.pid), STASIS_REFUSED, "No such process");
}

/* The target dies while its operation is open: fatal, seen, not completed. */
static void death(void)
{
	struct stasis_operation_options options = {.direction = STASIS_OPERATION_CHECKPOINT};
	struct stasis_operation operation = STASIS_OPERATION_EMPTY;
	struct stasis_error cause = STASIS_ERROR_INIT;

	DONE(stasis_target_lock(&target, LOCK_MS, &err));
	DONE(stasis_operation_begin(&operation, &target, &options, &err));
	t_child_kill(&child);
	REFUSED(stasis_operation_complete(&operation, &err), STASIS_LOST, "has ended");
	T_TRUE(stasis_operation_acknowledge_fatal(&operation, &cause));
	T_EQ(cause.status, STASIS_LOST);
	stasis_operation_close(&operation);
	stasis_target_close(&target);
}

/* Bytes of a restore that do not fit are refused before the driver is asked for them. */
static void rooms(void)
{
	struct stasis_gpu_room room = {.uuid = report.gpus[1].uuid, .need_bytes = T_MIB};

	DONE(stasis_gpu_rooms_read(&driver, &room, 1, &err));
	T_TRUE(room.has_context);
	contexts_check(false, false, false);
	DONE(stasis_gpu_rooms_check(&room, 1, STASIS_CONTEXT_BYTES, &err));
	room.need_bytes = report.gpus[1].total_bytes;
	REFUSED(stasis_gpu_rooms_check(&room, 1, STASIS_CONTEXT_BYTES, &err), STASIS_REFUSED,
		"too little free memory");
}

static const struct {
	const char *name;
	void (*run)(void);
	const char *cuda; /* the simulator's version; NULL: its own choice */
	bool is_fatal;    /* the target does not live to be asked */
} stages[] = {
	{"custom", custom_trips, NULL, false},
	{"remap", remap_trip, NULL, false},
	{"native", native_trip, NULL, false},
	{"adopt", adopt, NULL, false},
	{"older", older_driver, "13000", false},
	{"refusals", refusals, NULL, false},
	{"death", death, NULL, true},
	{"rooms", rooms, NULL, false},
};

int main(int argc, char **argv)
{
	t_ask_devices(DEVICES);
	for (size_t i = 0; argc == 2 && i < ARRAY_COUNT(stages); i++) {
		if (strcmp(stages[i].name, argv[1]) != 0)
			continue;
		/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is no second thread yet */
		if (stages[i].cuda && setenv("STASIS_SIM_CUDA", stages[i].cuda, 1) != 0)
			t_fail("no memory");
		stage_set();
		stages[i].run();
		if (!stages[i].is_fatal)
			stage_end();
		return 0;
	}
	t_fail("usage: operation NAME");
}
