/*
 * Description: the transfer engine brings device memory out and back through the simulated driver; every driver
 * call it makes may fail, before or behind its work, at the first, a middle and the last passage: the transfer
 * ends with that result as the device's fault, and the same engine then does the work.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "check.h"
#include "driver/device.h"
#include "transfer/transfer.h"

#define CHUNK_BYTES STASIS_CHUNK_BYTES_MIN
#define CHUNKS 24 /* every fourth is all zeros: 24 copies out, 18 in, 6 memsets */
#define BYTES ((CHUNKS - 1) * CHUNK_BYTES + 77)
#define STRIPES 2

/* What is to become of the first try; the second must always work. */
enum outcome { WORKS, PREPARE_FAILS, SAVE_FAILS, LOAD_FAILS };

struct row {
	const char *faults;
	enum outcome outcome;
	uint64_t leaked_slots;
};

struct copy {
	struct stasis_driver driver;
	CUcontext context;
	CUdeviceptr memory;
	struct stasis_transfer *engine;
	struct stasis_transfer_extent extent;
	struct stasis_transfer_segment segment;
	struct stasis_chunk chunks[CHUNKS];
	struct stasis_transfer_result result;
};

static uint8_t pattern[BYTES];
static uint8_t back[BYTES];

static void pattern_fill(void)
{
	uint32_t seed = 7;

	for (size_t i = 0; i < BYTES; i++) {
		seed = seed * 1103515245 + 12345;
		pattern[i] = i / CHUNK_BYTES % 4 == 3 ? 0 : (uint8_t)((seed >> 16) | 1);
	}
}

static void copy_open(struct copy *copy)
{
	static const char *const names[STRIPES] = {"stripe.0", "stripe.1"};
	struct stasis_transfer_options options = {
		.driver = &copy->driver,
		.chunk_bytes = CHUNK_BYTES,
		.workers = 2,
	};
	CUdevice device = 0;

	T_EQ(stasis_driver_open(NULL, &copy->driver, NULL), 0);
	T_EQ(stasis_driver_start(&copy->driver, NULL), 0);
	T_OK(copy->driver.cuDeviceGet(&device, 0));
	T_OK(copy->driver.cuDevicePrimaryCtxRetain(&copy->context, device));
	T_OK(copy->driver.cuCtxPushCurrent(copy->context));
	T_OK(copy->driver.cuMemAlloc(&copy->memory, BYTES));
	T_OK(copy->driver.cuMemcpyHtoD(copy->memory, pattern, BYTES));
	T_OK(copy->driver.cuCtxSynchronize());
	copy->extent = (struct stasis_transfer_extent){
		.id.bytes = {1},
		.name = "extent",
		.bytes = BYTES,
		.chunk_bytes = CHUNK_BYTES,
		.stripe_count = STRIPES,
		.chunks = copy->chunks,
	};
	for (uint32_t s = 0; s < STRIPES; s++) {
		copy->extent.stripe_names[s] = names[s];
		copy->extent.stripe_fds[s] = (int)T_SYS(memfd_create(names[s], MFD_CLOEXEC));
	}
	copy->segment = (struct stasis_transfer_segment){
		.context = copy->context,
		.device_pointer = copy->memory,
		.bytes = BYTES,
	};
	T_EQ(stasis_transfer_new(&options, &copy->engine, NULL), 0);
}

static void copy_close(struct copy *copy)
{
	stasis_transfer_free(copy->engine);
	for (uint32_t s = 0; s < STRIPES; s++)
		T_SYS(close(copy->extent.stripe_fds[s]));
	T_OK(copy->driver.cuMemFree(copy->memory));
}

static int copy_run(struct copy *copy, enum stasis_transfer_direction direction,
		    struct stasis_error *err)
{
	struct stasis_transfer_plan plan = {
		.extents = &copy->extent,
		.extent_count = 1,
		.segments = &copy->segment,
		.segment_count = 1,
		.verify = true,
	};

	copy->extent.direction = direction;
	return stasis_transfer_run(copy->engine, &plan, NULL, &copy->result, err);
}

static enum outcome copy_try(struct copy *copy, struct stasis_error *err)
{
	if (stasis_transfer_prepare(copy->engine, copy->context, 0, err) != 0)
		return PREPARE_FAILS;
	if (copy_run(copy, STASIS_TRANSFER_SAVE, err) != 0)
		return SAVE_FAILS;
	T_OK(copy->driver.cuMemsetD8(copy->memory, 0x5a, BYTES));
	/* The engine's streams wait for nobody. */
	T_OK(copy->driver.cuCtxSynchronize());
	if (copy_run(copy, STASIS_TRANSFER_LOAD, err) != 0)
		return LOAD_FAILS;
	memset(back, 0, sizeof(back));
	T_OK(copy->driver.cuMemcpyDtoH(back, copy->memory, BYTES));
	T_EQ(memcmp(back, pattern, BYTES), 0);
	return WORKS;
}

static void row_check(const struct row *row)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct copy *copy = calloc(1, sizeof(*copy));

	T_TRUE(copy != NULL);
	(void)alarm(30);
	T_SYS(setenv("STASIS_SIM_FAULT", row->faults, 1));
	copy_open(copy);
	T_EQ(copy_try(copy, &err), row->outcome);
	if (row->outcome != WORKS) {
		T_EQ(err.status, STASIS_REFUSED);
		T_EQ(err.cuda_result, CUDA_ERROR_LAUNCH_FAILED);
		T_TRUE(strncmp(err.text, "GPU 0: ", 7) == 0);
		T_EQ(copy->result.pinned_leaked_bytes, row->leaked_slots * CHUNK_BYTES);
	}
	if (row->outcome == SAVE_FAILS || row->outcome == LOAD_FAILS)
		T_EQ(copy->result.failed_side, STASIS_TRANSFER_DEVICE_SIDE);
	/* The contents are what they were: a failed save took nothing, a failed load is repeated. */
	if (row->outcome == LOAD_FAILS)
		T_EQ(copy_run(copy, STASIS_TRANSFER_LOAD, NULL), 0);
	T_EQ(copy_try(copy, NULL), WORKS);
	copy_close(copy);
	free(copy);
}

static bool log_has(const char *path, const char *text)
{
	CLEANUP(file) FILE *file = fopen(path, "r");
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		if (strstr(line, text))
			return true;
	}
	return false;
}

/* Each fault of the row must have been reached: the driver's log says so. */
static void row_run(const struct row *row)
{
	const char *folder = secure_getenv("TMPDIR");
	char path[4096];
	char wanted[256];
	int status = 0;
	pid_t pid;

	(void)snprintf(path, sizeof(path), "%s/calls.log", folder ? folder : "/tmp");
	(void)unlink(path);
	T_SYS(setenv("STASIS_SIM_LOG", path, 1));
	pid = (pid_t)T_SYS(fork());
	if (pid == 0) {
		row_check(row);
		exit(0);
	}
	T_SYS(waitpid(pid, &status, 0));
	if (status != 0)
		t_fail("row '%s' ended with status 0x%x", row->faults, (unsigned int)status);
	if (!*row->faults)
		return;
	(void)snprintf(wanted, sizeof(wanted), "fault %.*s", (int)strcspn(row->faults, ","),
		       row->faults);
	if (!log_has(path, wanted))
		t_fail("row '%s' was not reached", row->faults);
}

/* Calls are counted from the start of the process; two workers make theirs in any order. */
static const struct row rows[] = {
	{"", WORKS, 0},
	{"cuCtxSetCurrent:1=LAUNCH_FAILED", PREPARE_FAILS, 0},
	{"cuCtxSetCurrent:2=LAUNCH_FAILED", PREPARE_FAILS, 0},
	{"cuStreamCreate:1=LAUNCH_FAILED", PREPARE_FAILS, 0},
	{"cuStreamCreate:2=LAUNCH_FAILED", PREPARE_FAILS, 0},
	{"cuMemHostRegister:1=LAUNCH_FAILED", PREPARE_FAILS, 0},
	{"cuMemHostRegister:2=LAUNCH_FAILED", PREPARE_FAILS, 0},
	{"cuMemHostRegister:1=OUT_OF_MEMORY", WORKS, 0},
	/* Where it cannot be registered, the driver's own memory serves. */
	{"cuMemHostRegister:*=NOT_SUPPORTED", WORKS, 0},
	{"cuMemHostRegister:2=NOT_PERMITTED", WORKS, 0},
	{"cuMemHostAlloc:1=LAUNCH_FAILED,cuMemHostRegister:*=NOT_SUPPORTED", PREPARE_FAILS, 0},
	{"cuMemHostAlloc:1=OUT_OF_MEMORY,cuMemHostRegister:*=NOT_SUPPORTED", WORKS, 0},
	{"cuEventCreate:1=LAUNCH_FAILED", PREPARE_FAILS, 0},
	{"cuEventCreate:4=LAUNCH_FAILED", PREPARE_FAILS, 0},
	{"cuMemcpyDtoHAsync:1=LAUNCH_FAILED", SAVE_FAILS, 0},
	{"cuMemcpyDtoHAsync:12=LAUNCH_FAILED", SAVE_FAILS, 0},
	{"cuMemcpyDtoHAsync:24=LAUNCH_FAILED", SAVE_FAILS, 0},
	{"cuMemcpyDtoHAsync!:12=LAUNCH_FAILED", SAVE_FAILS, 0},
	{"cuMemcpyDtoHAsync:12=delay=100", WORKS, 0},
	{"cuMemcpyHtoDAsync:1=LAUNCH_FAILED", LOAD_FAILS, 0},
	{"cuMemcpyHtoDAsync:9=LAUNCH_FAILED", LOAD_FAILS, 0},
	{"cuMemcpyHtoDAsync:18=LAUNCH_FAILED", LOAD_FAILS, 0},
	{"cuMemcpyHtoDAsync!:9=LAUNCH_FAILED", LOAD_FAILS, 0},
	{"cuMemsetD8Async:1=LAUNCH_FAILED", LOAD_FAILS, 0},
	{"cuMemsetD8Async:6=LAUNCH_FAILED", LOAD_FAILS, 0},
	{"cuMemsetD8Async!:3=LAUNCH_FAILED", LOAD_FAILS, 0},
	{"cuEventRecord:1=LAUNCH_FAILED", SAVE_FAILS, 0},
	{"cuEventRecord:24=LAUNCH_FAILED", SAVE_FAILS, 0},
	{"cuEventRecord:25=LAUNCH_FAILED", LOAD_FAILS, 0},
	{"cuEventRecord:48=LAUNCH_FAILED", LOAD_FAILS, 0},
	{"cuEventRecord!:30=LAUNCH_FAILED", LOAD_FAILS, 0},
	{"cuEventQuery:1=LAUNCH_FAILED", SAVE_FAILS, 0},
	{"cuEventQuery:10=LAUNCH_FAILED", SAVE_FAILS, 0},
	{"cuStreamQuery:1=LAUNCH_FAILED,cuMemcpyDtoHAsync:12=LAUNCH_FAILED", SAVE_FAILS, 2},
	{"cuStreamQuery:1=LAUNCH_FAILED,cuMemcpyHtoDAsync:9=LAUNCH_FAILED", LOAD_FAILS, 2},
	/* What fails at the end fails nobody. */
	{"cuEventDestroy:1=LAUNCH_FAILED", WORKS, 0},
	{"cuMemHostUnregister:1=LAUNCH_FAILED", WORKS, 0},
	{"cuMemFreeHost:1=LAUNCH_FAILED,cuMemHostRegister:*=NOT_SUPPORTED", WORKS, 0},
	{"cuStreamDestroy:1=LAUNCH_FAILED", WORKS, 0},
};

int main(void)
{
	pattern_fill();
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
		row_run(&rows[i]);
	return 0;
}
