#include "target.h"

#include <signal.h>
#include <string.h>

#include "evict.h"
#include "export.h"
#include "gate.h"
#include "layout.h"
#include "log.h"
#include "memory.h"
#include "stream.h"

enum operation {
	OPERATION_NONE,
	OPERATION_PREPARED,
	OPERATION_BEGUN,
};

static struct {
	CUprocessState state;
	bool is_lost;
	enum operation operation;
	bool is_restoring;         /* the operation */
	struct sim_layout *layout; /* from a custom checkpoint until its restore is completed */
} target;

static const char *state_name(CUprocessState state)
{
	switch (state) {
	case CU_PROCESS_STATE_RUNNING:
		return "RUNNING";
	case CU_PROCESS_STATE_LOCKED:
		return "LOCKED";
	case CU_PROCESS_STATE_CHECKPOINTED:
		return "CHECKPOINTED";
	case CU_PROCESS_STATE_FAILED:
		return "FAILED";
	case CU_PROCESS_STATE_CHECKPOINTING:
		return "CHECKPOINTING";
	case CU_PROCESS_STATE_RESTORING:
		return "RESTORING";
	}
	return "UNKNOWN";
}

static void set_state(CUprocessState state)
{
	if (state != target.state)
		sim_log_line("state %s->%s", state_name(target.state), state_name(state));
	target.state = state;
}

static CUresult lose(CUresult result)
{
	target.is_lost = true;
	sim_log_line("state CHECKPOINTED lost");
	return result;
}

void sim_target_describe(struct sim_reply *ret_reply)
{
	ret_reply->state = (int32_t)target.state;
	ret_reply->is_lost = target.is_lost;
	ret_reply->is_operating = target.operation == OPERATION_BEGUN;
}

CUprocessState sim_target_state(void)
{
	if (target.operation == OPERATION_BEGUN && sim_breaks("custom_is_begun_until_complete"))
		return target.is_restoring ? CU_PROCESS_STATE_LOCKED
					   : CU_PROCESS_STATE_CHECKPOINTED;
	if (target.state == CU_PROCESS_STATE_RUNNING && sim_breaks("state_starts_running"))
		return CU_PROCESS_STATE_LOCKED;
	return target.state;
}

CUresult sim_target_try_lock(void)
{
	if (target.state == CU_PROCESS_STATE_LOCKED && sim_breaks("lock_twice"))
		return CUDA_SUCCESS;
	if (target.state != CU_PROCESS_STATE_RUNNING)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (!sim_gate_try_lock())
		return CUDA_ERROR_NOT_READY;
	set_state(CU_PROCESS_STATE_LOCKED);
	return CUDA_SUCCESS;
}

CUresult sim_target_lock_timed_out(void)
{
	if (!sim_breaks("lock_timeout"))
		return CUDA_ERROR_NOT_READY;
	sim_gate_set(SIM_GATE_LOCKED);
	set_state(CU_PROCESS_STATE_LOCKED);
	return CUDA_SUCCESS;
}

CUresult sim_target_unlock(void)
{
	bool is_allowed = target.state == CU_PROCESS_STATE_LOCKED;

	if (target.operation != OPERATION_NONE)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (target.state == CU_PROCESS_STATE_RUNNING && sim_breaks("unlock_running"))
		is_allowed = true;
	if (target.state == CU_PROCESS_STATE_CHECKPOINTED)
		is_allowed = sim_breaks(target.is_lost ? "lost_stays_lost" : "unlock_checkpointed");
	if (!is_allowed)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (sim_breaks("lock_and_unlock"))
		return CUDA_SUCCESS;
	set_state(CU_PROCESS_STATE_RUNNING);
	sim_gate_set(SIM_GATE_OPEN);
	return CUDA_SUCCESS;
}

static bool has_memory(enum sim_memory_kind kind)
{
	bool is_found = false;

	sim_core_lock();
	for (struct sim_memory *memory = sim_memory_first(); memory; memory = memory->next)
		is_found = is_found || memory->kind == kind;
	sim_core_unlock();
	return is_found;
}

/* Real drivers are reported to hang with it, which no test could tell from a bug: so it is refused. */
static bool holds_multicast(void)
{
	return has_memory(SIM_MEMORY_MULTICAST) || has_memory(SIM_MEMORY_MULTICAST_IMPORTED) ||
	       sim_export_is_multicast_held();
}

/* What the driver finds out before it touches anything. */
static CUresult admit_checkpoint(void)
{
	bool is_allowed = target.state == CU_PROCESS_STATE_LOCKED;

	if (target.state == CU_PROCESS_STATE_RUNNING && sim_breaks("checkpoint_running"))
		is_allowed = true;
	if (target.operation != OPERATION_NONE || !is_allowed)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (holds_multicast())
		return CUDA_ERROR_NOT_SUPPORTED;
	if (has_memory(SIM_MEMORY_MANAGED) && !sim_breaks("checkpoint_managed"))
		return CUDA_ERROR_NOT_SUPPORTED;
	return CUDA_SUCCESS;
}

/* From here on no call of the application touches the GPU. */
static void stop(void)
{
	sim_gate_shut();
	sim_stream_stop_workers();
}

CUresult sim_target_checkpoint(void)
{
	CUresult result = admit_checkpoint();

	if (target.state == CU_PROCESS_STATE_CHECKPOINTED && sim_breaks("checkpoint_twice"))
		return CUDA_SUCCESS;
	if (result != CUDA_SUCCESS)
		return result;
	stop();
	result = sim_evict(true);
	sim_evict_break_host();
	if (sim_breaks("threads_run_on"))
		(void)kill(getpid(), SIGKILL);
	if (result == CUDA_SUCCESS)
		set_state(CU_PROCESS_STATE_CHECKPOINTED);
	else
		sim_gate_set(SIM_GATE_LOCKED);
	return result;
}

/* The new GPU of the one with this UUID; -1: no pair names it, or none that is a GPU. */
static int paired_device(const struct sim_request *request, int physical)
{
	CUuuid old;
	int found = -1;

	sim_device_uuid(physical, &old);
	for (uint32_t i = 0; i < request->pair_count; i++) {
		if (memcmp(&request->pairs[i].oldUuid, &old, sizeof(old)) != 0)
			continue;
		for (int device = 0; device < sim_config()->device_count; device++) {
			CUuuid new;

			sim_device_uuid(device, &new);
			if (memcmp(&request->pairs[i].newUuid, &new, sizeof(new)) == 0)
				found = device;
		}
	}
	return found;
}

/*
 * Where each GPU of the process goes. INVALID_VALUE where the pairs do not name every GPU that it sees,
 * or send two to the same one.
 */
static CUresult map_devices(const struct sim_request *request, int ret_physical[])
{
	bool is_partial = sim_breaks("gpu_pairs_name_all");
	uint32_t count = (uint32_t)sim_core.device_count;

	for (uint32_t i = 0; i < count; i++)
		ret_physical[i] = sim_core.devices[i].physical;
	if (request->pair_count == 0 || sim_breaks("restore_forgets_gpu_pairs"))
		return CUDA_SUCCESS;
	if (request->pair_count != count && !is_partial)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < count; i++) {
		int physical = paired_device(request, ret_physical[i]);

		if (physical < 0 && !is_partial)
			return CUDA_ERROR_INVALID_VALUE;
		if (physical >= 0)
			ret_physical[i] = physical;
		for (uint32_t j = 0; j < i && !is_partial; j++)
			if (ret_physical[j] == ret_physical[i])
				return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

/* What the driver cannot bring back, though it let itself be checkpointed. */
static CUresult find_unrestorable(void)
{
	static const struct {
		enum sim_memory_kind kind;
		CUresult result;
		const char *break_name;
	} kinds[] = {
		{SIM_MEMORY_IMPORTED, CUDA_ERROR_NOT_SUPPORTED, "importer_is_lost"},
		{SIM_MEMORY_IPC_OPENED, CUDA_ERROR_INVALID_VALUE, "ipc_opener_is_lost"},
		{SIM_MEMORY_HOST, CUDA_ERROR_UNKNOWN, "host_numa_is_lost"},
	};

	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
		if (has_memory(kinds[i].kind) && !sim_breaks(kinds[i].break_name))
			return kinds[i].result;
	return CUDA_SUCCESS;
}

static void restored(void)
{
	if (sim_breaks_something())
		sim_revive_break();
	set_state(CU_PROCESS_STATE_LOCKED);
	sim_gate_set(SIM_GATE_LOCKED);
	if (sim_breaks("whole_cycle")) {
		set_state(CU_PROCESS_STATE_RUNNING);
		sim_gate_set(SIM_GATE_OPEN);
	}
}

/* What both kinds of restore begin with; memory has its storage then. */
static CUresult start_restore(const struct sim_request *request)
{
	int physical[SIM_DEVICES_MAX];
	CUresult result = map_devices(request, physical);

	if (result != CUDA_SUCCESS)
		return result;
	result = find_unrestorable();
	if (result == CUDA_SUCCESS)
		result = sim_revive(physical);
	return result == CUDA_SUCCESS ? CUDA_SUCCESS : lose(result);
}

static CUresult admit_restore(bool is_custom)
{
	if (target.state != CU_PROCESS_STATE_CHECKPOINTED || target.is_lost ||
	    target.operation != OPERATION_NONE)
		return CUDA_ERROR_ILLEGAL_STATE;
	/* Bytes come back the way that they went. */
	return (target.layout != NULL) == is_custom ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
}

CUresult sim_target_restore(const struct sim_request *request)
{
	CUresult result = admit_restore(false);

	if (target.state == CU_PROCESS_STATE_LOCKED && sim_breaks("restore_uncheckpointed"))
		return CUDA_SUCCESS;
	if (result != CUDA_SUCCESS)
		return result;
	result = start_restore(request);
	if (result != CUDA_SUCCESS)
		return result;
	result = sim_revive_show();
	if (result != CUDA_SUCCESS)
		return lose(result);
	restored();
	return CUDA_SUCCESS;
}

static CUresult prepare_checkpoint(void)
{
	CUresult result = admit_checkpoint();

	if (result != CUDA_SUCCESS)
		return result;
	stop();
	sim_core_lock();
	target.layout = sim_layout_new();
	sim_core_unlock();
	if (target.layout != NULL)
		return CUDA_SUCCESS;
	sim_gate_set(SIM_GATE_LOCKED);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult prepare_restore(const struct sim_request *request)
{
	CUresult result = admit_restore(true);

	return result == CUDA_SUCCESS ? start_restore(request) : result;
}

static void undo_prepare(void)
{
	sim_layout_close(target.layout);
	if (target.is_restoring) {
		sim_revive_undo();
	} else {
		sim_layout_free(target.layout);
		target.layout = NULL;
		sim_gate_set(SIM_GATE_LOCKED);
	}
	target.operation = OPERATION_NONE;
}

static CUresult open_prepared(struct sim_reply *ret_reply, int *ret_table)
{
	size_t piece_count = 0;
	CUresult result;

	sim_core_lock();
	result = sim_layout_open(target.layout, !target.is_restoring);
	if (result == CUDA_SUCCESS) {
		*ret_table = sim_layout_table(target.layout, target.is_restoring, &piece_count);
		if (*ret_table < 0)
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	sim_core_unlock();
	ret_reply->piece_count = (uint32_t)piece_count;
	ret_reply->file_count = (uint32_t)sim_layout_file_count(target.layout);
	return result;
}

CUresult sim_target_prepare(const struct sim_request *request, struct sim_reply *ret_reply,
			    int *ret_table)
{
	bool is_restore = request->kind == SIM_REQUEST_BEGIN_RESTORE;
	CUresult result = is_restore ? prepare_restore(request) : prepare_checkpoint();

	if (result != CUDA_SUCCESS)
		return result;
	target.is_restoring = is_restore;
	target.operation = OPERATION_PREPARED;
	result = open_prepared(ret_reply, ret_table);
	if (result != CUDA_SUCCESS)
		undo_prepare();
	return result;
}

size_t sim_target_files(size_t first, int *ret_fds)
{
	size_t count = 0;

	if (target.operation != OPERATION_PREPARED)
		return 0;
	sim_core_lock();
	if (first < sim_layout_file_count(target.layout))
		count = sim_layout_file_count(target.layout) - first;
	if (count > SIM_FILES_MAX)
		count = SIM_FILES_MAX;
	sim_layout_files(target.layout, first, count, ret_fds);
	sim_core_unlock();
	return count;
}

CUresult sim_target_begun(void)
{
	if (target.operation != OPERATION_PREPARED)
		return CUDA_ERROR_ILLEGAL_STATE;
	target.operation = OPERATION_BEGUN;
	set_state(target.is_restoring ? CU_PROCESS_STATE_RESTORING
				      : CU_PROCESS_STATE_CHECKPOINTING);
	return CUDA_SUCCESS;
}

static CUresult complete_checkpoint(void)
{
	CUresult result;

	sim_layout_close(target.layout);
	result = sim_evict(false);
	set_state(result == CUDA_SUCCESS ? CU_PROCESS_STATE_CHECKPOINTED : CU_PROCESS_STATE_FAILED);
	return result;
}

/* The driver's own state is back, or the process is beyond help: with that damaged, nothing holds. */
static CUresult complete_restore(void)
{
	CUresult result;

	if (!sim_layout_is_whole(target.layout) && !sim_breaks("custom_damage_is_hidden")) {
		sim_log_line("state RESTORING killed: the driver's state came back damaged");
		(void)kill(getpid(), SIGKILL);
	}
	sim_layout_free(target.layout);
	target.layout = NULL;
	result = sim_revive_show();
	if (result == CUDA_SUCCESS)
		restored();
	else
		set_state(CU_PROCESS_STATE_FAILED);
	return result;
}

CUresult sim_target_complete(void)
{
	if (target.operation != OPERATION_BEGUN)
		return CUDA_ERROR_ILLEGAL_STATE;
	target.operation = OPERATION_NONE;
	return target.is_restoring ? complete_restore() : complete_checkpoint();
}

void sim_target_abandon(void)
{
	if (target.operation == OPERATION_PREPARED)
		undo_prepare();
	if (target.operation == OPERATION_BEGUN) {
		target.operation = OPERATION_NONE;
		set_state(CU_PROCESS_STATE_FAILED);
	}
}
