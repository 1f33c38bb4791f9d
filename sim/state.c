/*
 * sim-state: what the simulated machine knows of processes and GPUs, past fault plan and call log, so
 * that tests have a witness that is no part of what they test.
 *
 *     sim-state PID...      PID RUNNING|LOCKED|CHECKPOINTED|FAILED|OPERATING|NONE lost=0|1 gpuN=BYTES...
 *     sim-state --machine   gpuN total=BYTES free=BYTES, a line each
 *     sim-state --breaks    the names that STASIS_SIM_BREAK knows
 *
 * NONE: no process, or none with CUDA state. Exit: 0; 1 where a process did not answer; 2 wrong usage.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "answers.h"
#include "breaks.h"
#include "config.h"
#include "machine.h"
#include "peer.h"

#define ANSWER_SECONDS 10

static const char *state_word(const struct sim_reply *reply)
{
	static const char *const words[] = {
		[CU_PROCESS_STATE_RUNNING] = "RUNNING",
		[CU_PROCESS_STATE_LOCKED] = "LOCKED",
		[CU_PROCESS_STATE_CHECKPOINTED] = "CHECKPOINTED",
		[CU_PROCESS_STATE_FAILED] = "FAILED",
		[CU_PROCESS_STATE_CHECKPOINTING] = "OPERATING",
		[CU_PROCESS_STATE_RESTORING] = "OPERATING",
	};

	if (reply->state < 0 || (size_t)reply->state >= ARRAY_COUNT(words))
		return "UNKNOWN";
	return words[reply->state];
}

/* A reply of state NONE where there is no endpoint; false: it does not answer. */
static bool ask_state(pid_t pid, struct sim_reply *ret_reply, bool *ret_is_there)
{
	struct sim_request request = {.kind = SIM_REQUEST_STATE};
	struct timeval limit = {.tv_sec = ANSWER_SECONDS};
	CLEANUP(fd) int fd = -1;
	CUresult result = sim_peer_connect(pid, &fd);

	*ret_is_there = result == CUDA_SUCCESS;
	if (!*ret_is_there)
		return true;
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return sim_peer_ask(fd, &request, ret_reply, NULL) == CUDA_SUCCESS;
}

static int print_process(const char *text, bool has_machine)
{
	struct sim_reply reply = {0};
	char *end = NULL;
	long pid = strtol(text, &end, 10);
	bool is_there = false;

	if (*text == '\0' || *end != '\0' || pid <= 0) {
		(void)fprintf(stderr, "sim-state: '%s' is no process id\n", text);
		return 2;
	}
	if (!ask_state((pid_t)pid, &reply, &is_there)) {
		(void)fprintf(stderr, "sim-state: process %ld did not answer\n", pid);
		return 1;
	}
	(void)printf("%ld %s lost=%u", pid, is_there ? state_word(&reply) : "NONE", reply.is_lost);
	for (int device = 0; has_machine && device < sim_machine_device_count(); device++)
		(void)printf(" gpu%d=%llu", device,
			     (unsigned long long)sim_machine_process_bytes((pid_t)pid, device));
	(void)printf("\n");
	return 0;
}

static int print_machine(bool has_machine)
{
	for (int device = 0; has_machine && device < sim_machine_device_count(); device++)
		(void)printf("gpu%d total=%llu free=%llu\n", device,
			     (unsigned long long)sim_machine_total_bytes(device),
			     (unsigned long long)sim_machine_free_bytes(device));
	return 0;
}

static int print_breaks(void)
{
	/* clang-format off */
#define BREAK_ROW(name, text) {#name, text},
#define ANSWER_ROW(name, call, from, to) {#name, #call " answers " #to " where " #from " is due"},
	static const struct {
		const char *name;
		const char *text;
	} rows[] = {SIM_BREAKS(BREAK_ROW) SIM_BREAK_ANSWERS(ANSWER_ROW)};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
		(void)printf("%s\t%s\n", rows[i].name, rows[i].text);
	return 0;
}

int main(int argc, char **argv)
{
	bool has_machine;
	int status = 0;

	if (argc < 2) {
		(void)fprintf(stderr, "usage: sim-state PID... | --machine | --breaks\n");
		return 2;
	}
	if (strcmp(argv[1], "--breaks") == 0)
		return print_breaks();
	has_machine = sim_machine_observe();
	if (strcmp(argv[1], "--machine") == 0)
		return print_machine(has_machine);
	for (int i = 1; i < argc; i++) {
		int result = print_process(argv[i], has_machine);

		if (result > status)
			status = result;
	}
	return status;
}
