/*
 * See fake_driver.h.
 */

#include "fake_driver.h"

#include "unit.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define HANDLE_BASE 40 /* the device handle of ordinal i is HANDLE_BASE - i */

struct fake fake;

/* The functions below are named after what they play, as in cuInit_fake. */
#define SUFFIX "_fake"
#define PLAYED() played(__func__, (char[64]){0})

static struct {
	char name[64];
	int count;
} counts[64];

static const char *played(const char *function, char name[64])
{
	(void)snprintf(name, 64, "%.*s", (int)(strlen(function) - strlen(SUFFIX)), function);
	return name;
}

static int *count_of(const char *call)
{
	size_t i = 0;

	while (counts[i].name[0] && strcmp(counts[i].name, call) != 0)
		i++;
	assert_true(i + 1 < sizeof(counts) / sizeof(counts[0]));
	(void)snprintf(counts[i].name, sizeof(counts[i].name), "%s", call);
	return &counts[i].count;
}

int fake_count(const char *call)
{
	return *count_of(call);
}

static void rule_add(const char *call, int passage, CUresult result, int state, bool works)
{
	assert_true(fake.rule_count < FAKE_RULES_MAX);
	fake.rules[fake.rule_count++] = (struct fake_rule){
		.call = call, .passage = passage, .result = result, .state = state, .works = works};
}

void fake_rule(const char *call, int passage, CUresult result, int state)
{
	rule_add(call, passage, result, state, false);
}

void fake_rule_works(const char *call, int passage, CUresult result, int state)
{
	rule_add(call, passage, result, state, true);
}

/* Counts the call; true: a rule answers in its place with *ret_result, and sets the state. */
static bool ruled(const char *call, CUresult *ret_result, const struct fake_rule **ret_rule)
{
	int passage = ++*count_of(call);

	*ret_result = CUDA_SUCCESS;
	*ret_rule = NULL;
	if (fake.kills_call && strcmp(fake.kills_call, call) == 0)
		fake_target_kill();
	for (int i = 0; i < fake.rule_count; i++) {
		const struct fake_rule *rule = &fake.rules[i];

		if (strcmp(rule->call, call) != 0 || (rule->passage && rule->passage != passage))
			continue;
		*ret_result = rule->result;
		*ret_rule = rule;
		return !rule->works;
	}
	return false;
}

static void rule_end(const struct fake_rule *rule)
{
	if (rule && rule->state != FAKE_KEEP)
		fake.state = (CUprocessState)rule->state;
}

#define RULED()                                                                                    \
	CUresult result;                                                                           \
	const struct fake_rule *rule;                                                              \
	bool is_ruled = ruled(PLAYED(), &result, &rule)

/* Where the call has no effect of its own to undo. */
#define RETURN_IF_RULED()                                                                          \
	RULED();                                                                                   \
	do {                                                                                       \
		if (is_ruled || result != CUDA_SUCCESS) {                                          \
			rule_end(rule);                                                            \
			return result;                                                             \
		}                                                                                  \
	} while (0)

static struct fake_gpu *gpu_of(CUdevice device)
{
	int ordinal = HANDLE_BASE - device;

	assert_in_range(ordinal, 0, fake.gpu_count - 1);
	return &fake.gpus[ordinal];
}

static CUresult cuInit_fake(unsigned int flags)
{
	RETURN_IF_RULED();
	assert_int_equal(flags, 0);
	return CUDA_SUCCESS;
}

static CUresult cuDeviceGetCount_fake(int *count)
{
	RETURN_IF_RULED();
	*count = fake.gpu_count;
	if (fake.vanish_passage && *count_of("cuDeviceGetCount") >= fake.vanish_passage)
		*count = fake.gpu_count - 1;
	return CUDA_SUCCESS;
}

static CUresult cuDeviceGet_fake(CUdevice *device, int ordinal)
{
	RETURN_IF_RULED();
	assert_in_range(ordinal, 0, fake.gpu_count - 1);
	*device = HANDLE_BASE - ordinal;
	return CUDA_SUCCESS;
}

static CUresult cuDeviceGetUuid_fake(CUuuid *uuid, CUdevice device)
{
	RETURN_IF_RULED();
	*uuid = gpu_of(device)->uuid;
	return CUDA_SUCCESS;
}

/* The old form: a MIG instance's answer is the whole GPU's. */
static CUresult fake_old_get_uuid(CUuuid *uuid, CUdevice device)
{
	*uuid = gpu_of(device)->uuid;
	if (gpu_of(device)->is_mig)
		uuid->bytes[15] = 0x7f;
	return CUDA_SUCCESS;
}

static CUresult cuGetProcAddress_fake(const char *name, void **address, int version,
				      cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	__typeof__(&fake_old_get_uuid) old = fake_old_get_uuid;

	RETURN_IF_RULED();
	assert_string_equal(name, "cuDeviceGetUuid");
	assert_int_equal(version, 9020);
	assert_int_equal(flags, 0);
	memcpy(address, &old, sizeof(old));
	*status = CU_GET_PROC_ADDRESS_SUCCESS;
	return CUDA_SUCCESS;
}

static CUresult cuDeviceGetName_fake(char *name, int bytes, CUdevice device)
{
	RETURN_IF_RULED();
	(void)snprintf(name, (size_t)bytes, "%s", gpu_of(device)->name);
	return CUDA_SUCCESS;
}

static CUresult cuDeviceGetPCIBusId_fake(char *text, int bytes, CUdevice device)
{
	RETURN_IF_RULED();
	(void)snprintf(text, (size_t)bytes, "0000:0%d:00.0", HANDLE_BASE - device);
	return CUDA_SUCCESS;
}

static CUresult cuDeviceTotalMem_fake(size_t *bytes, CUdevice device)
{
	RETURN_IF_RULED();
	*bytes = gpu_of(device)->total_bytes;
	return CUDA_SUCCESS;
}

static CUresult cuDeviceGetAttribute_fake(int *value, CUdevice_attribute attribute, CUdevice device)
{
	RETURN_IF_RULED();
	if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
		*value = gpu_of(device)->capability_major;
	else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
		*value = gpu_of(device)->capability_minor;
	else if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_MODE)
		*value = gpu_of(device)->compute_mode;
	else
		fail_msg("attribute %d is asked for", (int)attribute);
	return CUDA_SUCCESS;
}

static CUresult cuDevicePrimaryCtxRetain_fake(CUcontext *context, CUdevice device)
{
	struct fake_gpu *gpu = gpu_of(device);

	RETURN_IF_RULED();
	gpu->retained++;
	if (gpu->retained > gpu->retained_most)
		gpu->retained_most = gpu->retained;
	*context = (CUcontext)(void *)&gpu->context;
	return CUDA_SUCCESS;
}

static CUresult cuDevicePrimaryCtxRelease_fake(CUdevice device)
{
	RETURN_IF_RULED();
	assert_true(gpu_of(device)->retained > 0);
	gpu_of(device)->retained--;
	return CUDA_SUCCESS;
}

static CUresult cuCtxPushCurrent_fake(CUcontext context)
{
	RETURN_IF_RULED();
	for (int i = 0; i < fake.gpu_count; i++) {
		if ((void *)context == (void *)&fake.gpus[i].context)
			fake.current = i;
	}
	fake.pushed++;
	return CUDA_SUCCESS;
}

static CUresult cuCtxPopCurrent_fake(CUcontext *context)
{
	RETURN_IF_RULED();
	assert_true(fake.pushed > 0);
	fake.pushed--;
	*context = (CUcontext)(void *)&fake.gpus[fake.current].context;
	return CUDA_SUCCESS;
}

static CUresult cuCtxGetDevice_fake(CUdevice *device)
{
	RETURN_IF_RULED();
	assert_true(fake.pushed > 0);
	*device = HANDLE_BASE - fake.current;
	return CUDA_SUCCESS;
}

static CUresult cuMemGetInfo_fake(size_t *free_bytes, size_t *total_bytes)
{
	RETURN_IF_RULED();
	assert_true(fake.pushed > 0);
	*free_bytes = fake.gpus[fake.current].free_bytes;
	*total_bytes = fake.gpus[fake.current].total_bytes;
	return CUDA_SUCCESS;
}

static int stream_ordinal(CUstream stream)
{
	for (int i = 0; i < fake.gpu_count; i++) {
		if ((void *)stream == (void *)&fake.gpus[i].stream)
			return i;
	}
	fail_msg("a stream is used that nobody made");
	return -1;
}

static CUresult cuStreamGetCtx_fake(CUstream stream, CUcontext *context, CUgreenCtx *green)
{
	struct fake_gpu *gpu = &fake.gpus[stream_ordinal(stream)];

	RETURN_IF_RULED();
	assert_null(*context);
	assert_null(*green);
	*context = gpu->has_no_context ? NULL : (CUcontext)(void *)&gpu->context;
	return CUDA_SUCCESS;
}

static CUresult cuStreamGetDevice_fake(CUstream stream, CUdevice *device)
{
	int ordinal = stream_ordinal(stream);

	RETURN_IF_RULED();
	if (fake.gpus[ordinal].stream_device >= 0)
		ordinal = fake.gpus[ordinal].stream_device;
	*device = HANDLE_BASE - ordinal;
	return CUDA_SUCCESS;
}

/* ---- the target ---- */

static void target_called(const char *call, int pid)
{
	size_t used = strlen(fake.calls);

	assert_int_equal(pid, fake.pid);
	if (strcmp(call, "cuCheckpointProcessGetState") == 0)
		return;
	assert_true(used + strlen(call) + 2 < sizeof(fake.calls));
	(void)snprintf(fake.calls + used, sizeof(fake.calls) - used, "%s ",
		       call + strlen("cuCheckpoint"));
}

void fake_target_kill(void)
{
	siginfo_t info = {0};

	assert_int_equal(kill(fake.pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)fake.pid, &info, WEXITED | WNOWAIT), 0);
}

#define CHECKPOINT_CALL(pid)                                                                       \
	RULED();                                                                                   \
	target_called(PLAYED(), pid);                                                              \
	do {                                                                                       \
		if (is_ruled) {                                                                    \
			rule_end(rule);                                                            \
			return result;                                                             \
		}                                                                                  \
	} while (0)

static CUresult moved(CUprocessState from, CUprocessState to, CUresult result,
		      const struct fake_rule *rule)
{
	if (fake.state != from)
		return CUDA_ERROR_ILLEGAL_STATE;
	fake.state = to;
	rule_end(rule);
	return result;
}

static CUresult cuCheckpointProcessGetState_fake(int pid, CUprocessState *state)
{
	RULED();

	target_called(PLAYED(), pid);
	rule_end(rule);
	if (is_ruled)
		return result;
	*state = fake.state;
	return result;
}

static CUresult cuCheckpointProcessLock_fake(int pid, CUcheckpointLockArgs *args)
{
	CUcheckpointLockArgs zero = {.timeoutMs = args->timeoutMs};

	CHECKPOINT_CALL(pid);
	fake.lock_timeout_ms = args->timeoutMs;
	fake.has_dirty_args |= memcmp(&zero, args, sizeof(zero)) != 0;
	return moved(CU_PROCESS_STATE_RUNNING, CU_PROCESS_STATE_LOCKED, result, rule);
}

static CUresult cuCheckpointProcessUnlock_fake(int pid, CUcheckpointUnlockArgs *args)
{
	CUcheckpointUnlockArgs zero = {0};

	CHECKPOINT_CALL(pid);
	fake.has_dirty_args |= memcmp(&zero, args, sizeof(zero)) != 0;
	return moved(CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_RUNNING, result, rule);
}

static void begin_record(void)
{
	for (int i = 0; i < fake.gpu_count; i++)
		fake.gpus[i].retained_begin = fake.gpus[i].retained;
	if (fake.kills)
		fake_target_kill();
}

static CUresult cuCheckpointProcessCheckpoint_fake(int pid, CUcheckpointCheckpointArgs *args)
{
	CUcheckpointCheckpointArgs zero = {.customStorageInfo_out = args->customStorageInfo_out};

	begin_record();
	CHECKPOINT_CALL(pid);
	fake.has_dirty_args |= memcmp(&zero, args, sizeof(zero)) != 0;
	if (!args->customStorageInfo_out)
		return moved(CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_CHECKPOINTED, result, rule);
	*args->customStorageInfo_out = fake.info;
	return moved(CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_CHECKPOINTING, result, rule);
}

static CUresult cuCheckpointProcessRestore_fake(int pid, CUcheckpointRestoreArgs *args)
{
	CUcheckpointRestoreArgs zero = {.gpuPairs = args->gpuPairs,
					.gpuPairsCount = args->gpuPairsCount,
					.customStorageInfo_out = args->customStorageInfo_out};

	begin_record();
	CHECKPOINT_CALL(pid);
	fake.has_dirty_args |= memcmp(&zero, args, sizeof(zero)) != 0;
	fake.pairs_count = (int)args->gpuPairsCount;
	for (unsigned int i = 0; i < args->gpuPairsCount; i++)
		fake.pairs[i] = args->gpuPairs[i];
	if (!args->customStorageInfo_out)
		return moved(CU_PROCESS_STATE_CHECKPOINTED, CU_PROCESS_STATE_LOCKED, result, rule);
	*args->customStorageInfo_out = fake.info;
	return moved(CU_PROCESS_STATE_CHECKPOINTED, CU_PROCESS_STATE_RESTORING, result, rule);
}

static CUresult cuCheckpointOperationComplete_fake(CUcheckpointOperationHandle handle)
{
	CHECKPOINT_CALL(fake.pid);
	fake.completed = handle;
	if (fake.state == CU_PROCESS_STATE_CHECKPOINTING)
		fake.state = CU_PROCESS_STATE_CHECKPOINTED;
	else if (fake.state == CU_PROCESS_STATE_RESTORING)
		fake.state = CU_PROCESS_STATE_LOCKED;
	else
		return CUDA_ERROR_ILLEGAL_STATE;
	rule_end(rule);
	return result;
}

/* ---- the table ---- */

static void table_fill(struct stasis_driver *driver)
{
	*driver = (struct stasis_driver){
		.cuda_version = STASIS_CUDA_CUSTOM_STORAGE,
		.path = "libfake.so",
		.cuInit = cuInit_fake,
		.cuGetProcAddress = cuGetProcAddress_fake,
		.cuDeviceGet = cuDeviceGet_fake,
		.cuDeviceGetCount = cuDeviceGetCount_fake,
		.cuDeviceGetName = cuDeviceGetName_fake,
		.cuDeviceGetUuid = cuDeviceGetUuid_fake,
		.cuDeviceTotalMem = cuDeviceTotalMem_fake,
		.cuDeviceGetAttribute = cuDeviceGetAttribute_fake,
		.cuDeviceGetPCIBusId = cuDeviceGetPCIBusId_fake,
		.cuDevicePrimaryCtxRetain = cuDevicePrimaryCtxRetain_fake,
		.cuDevicePrimaryCtxRelease = cuDevicePrimaryCtxRelease_fake,
		.cuCtxPushCurrent = cuCtxPushCurrent_fake,
		.cuCtxPopCurrent = cuCtxPopCurrent_fake,
		.cuCtxGetDevice = cuCtxGetDevice_fake,
		.cuMemGetInfo = cuMemGetInfo_fake,
		.cuStreamGetCtx = cuStreamGetCtx_fake,
		.cuStreamGetDevice = cuStreamGetDevice_fake,
		.cuCheckpointProcessGetState = cuCheckpointProcessGetState_fake,
		.cuCheckpointProcessLock = cuCheckpointProcessLock_fake,
		.cuCheckpointProcessUnlock = cuCheckpointProcessUnlock_fake,
		.cuCheckpointProcessCheckpoint = cuCheckpointProcessCheckpoint_fake,
		.cuCheckpointProcessRestore = cuCheckpointProcessRestore_fake,
		.cuCheckpointOperationComplete = cuCheckpointOperationComplete_fake,
	};
}

void fake_reset(int gpu_count, struct stasis_driver *ret_driver)
{
	assert_in_range(gpu_count, 0, FAKE_GPUS_MAX);
	memset(&fake, 0, sizeof(fake));
	memset(counts, 0, sizeof(counts));
	fake.gpu_count = gpu_count;
	for (int i = 0; i < FAKE_GPUS_MAX; i++) {
		struct fake_gpu *gpu = &fake.gpus[i];

		memset(gpu->uuid.bytes, 0x10 + i, sizeof(gpu->uuid.bytes));
		gpu->name = "Fake GPU";
		gpu->capability_major = 9;
		gpu->total_bytes = (size_t)80 << 30;
		gpu->free_bytes = (size_t)60 << 30;
		gpu->stream_device = -1;
	}
	table_fill(ret_driver);
}

struct stasis_id fake_uuid(int ordinal)
{
	return stasis_id_of_cuda(&fake.gpus[ordinal].uuid);
}

pid_t fake_target_start(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	fake.pid = pid;
	return pid;
}

void fake_target_end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}
