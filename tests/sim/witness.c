/*
 * Runs sim-state and reads what it prints; and the workload that the tests of the checkpoint API share.
 */
#include "witness.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "check.h"
#include "child.h"
#include "device.h"

#define TEXT_BYTES 2048
#define LOAD_DEVICES_MAX 8
#define SEED 77

NORETURN static void run_program(int out_fd, const char *argument)
{
	const char *build = getenv("STASIS_BUILD_DIR"); /* NOLINT(concurrency-mt-unsafe) */
	char program[512];

	if (build == NULL)
		t_fail("STASIS_BUILD_DIR is not set: run by tests/run");
	(void)snprintf(program, sizeof(program), "%s/sim/sim-state", build);
	T_SYS(dup2(out_fd, STDOUT_FILENO));
	(void)execl(program, program, argument, (char *)NULL);
	t_fail("cannot run %s: errno %d", program, errno);
}

static void ask(const char *argument, char *ret_text)
{
	size_t used = 0;
	ssize_t got;
	int status;
	int ends[2];
	pid_t pid;

	T_SYS(pipe(ends));
	(void)fflush(stdout);
	pid = (pid_t)T_SYS(fork());
	if (pid == 0)
		run_program(ends[1], argument);
	(void)close(ends[1]);
	while ((got = read(ends[0], ret_text + used, TEXT_BYTES - 1 - used)) > 0)
		used += (size_t)got;
	ret_text[used] = '\0';
	(void)close(ends[0]);
	T_SYS(waitpid(pid, &status, 0));
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		t_fail("sim-state %s ended with wait status %d: %s", argument, status, ret_text);
}

static void ask_process(pid_t pid, char *ret_text)
{
	char argument[16];

	(void)snprintf(argument, sizeof(argument), "%d", (int)pid);
	ask(argument, ret_text);
}

/* The number behind "key=" in the text, searched from 'from' on. */
static uint64_t number_behind(const char *from, const char *key, const char *text)
{
	const char *found = from ? strstr(from, key) : NULL;

	if (found == NULL)
		t_fail("sim-state says no %s: %s", key, text);
	return strtoull(found + strlen(key), NULL, 10);
}

const char *t_witness_state(pid_t pid)
{
	static _Thread_local char state[32];
	char text[TEXT_BYTES];

	ask_process(pid, text);
	if (sscanf(text, "%*d %31s", state) != 1) /* NOLINT(cert-err34-c) */
		t_fail("sim-state said '%s'", text);
	return state;
}

void t_witness_check(const char *file, int line, pid_t pid, const char *state)
{
	const char *seen = t_witness_state(pid);

	if (strcmp(seen, state) != 0)
		t_fail("%s:%d: process %d is %s, expected %s", file, line, (int)pid, seen, state);
}

int t_witness_is_lost(pid_t pid)
{
	char text[TEXT_BYTES];

	ask_process(pid, text);
	return number_behind(text, "lost=", text) != 0;
}

uint64_t t_witness_bytes(pid_t pid, int device)
{
	char text[TEXT_BYTES];
	char key[16];

	ask_process(pid, text);
	(void)snprintf(key, sizeof(key), " gpu%d=", device);
	return number_behind(text, key, text);
}

uint64_t t_witness_free_bytes(int device)
{
	char text[TEXT_BYTES];
	char key[16];

	ask("--machine", text);
	(void)snprintf(key, sizeof(key), "gpu%d ", device);
	return number_behind(strstr(text, key), "free=", text);
}

uint32_t t_load_word(int device, size_t index)
{
	return t_word(SEED + (uint32_t)device, index);
}

static CUdeviceptr load_device(int ordinal, size_t bytes)
{
	CUcontext context = NULL;
	CUdeviceptr address;

	T_OK(cuDevicePrimaryCtxRetain(&context, ordinal));
	T_OK(cuCtxSetCurrent(context));
	address = t_alloc(bytes);
	t_fill(address, bytes, SEED + (uint32_t)ordinal);
	return address;
}

static bool is_right(int ordinal, CUdeviceptr address, size_t bytes)
{
	CUcontext context = NULL;
	bool matches;

	T_OK(cuDevicePrimaryCtxRetain(&context, ordinal));
	T_OK(cuCtxSetCurrent(context));
	matches = t_matches(address, bytes, SEED + (uint32_t)ordinal);
	T_OK(cuMemsetD8_v2(address, 0, 1));
	T_OK(cuMemsetD8_v2(address, (unsigned char)(t_load_word(ordinal, 0) & 0xff), 1));
	T_OK(cuDevicePrimaryCtxRelease_v2(ordinal));
	return matches;
}

void t_load_run(int fd, void *argument)
{
	const struct t_load *load = argument;
	CUdeviceptr addresses[LOAD_DEVICES_MAX];

	t_init_only();
	for (int i = 0; i < load->devices; i++)
		addresses[i] = load_device(i, load->bytes);
	t_say(fd, 'R');
	while (t_hear_any(fd) == 'V') {
		bool all_right = true;

		for (int i = 0; i < load->devices; i++)
			all_right = is_right(i, addresses[i], load->bytes) && all_right;
		t_say(fd, all_right ? 'O' : 'N');
	}
}
