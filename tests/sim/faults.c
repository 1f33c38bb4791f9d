/*
 * Description: a planned fault hits the call and the number that it names, before or behind the work,
 * also through cuGetProcAddress and only in the process it is meant for; the log says that it was
 * reached, and says calls and states.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "device.h"
#include "witness.h"

#define LOG_BYTES 65536

static char log_path[512];

struct plan {
	const char *faults;
	const char *process;
	void (*run)(void);
};

static void run_plan(int fd, void *argument)
{
	const struct plan *plan = argument;

	(void)fd;
	T_SYS(setenv("STASIS_SIM_FAULT", plan->faults, 1));
	T_SYS(setenv("STASIS_SIM_LOG", log_path, 1));
	if (plan->process != NULL)
		T_SYS(setenv("STASIS_SIM_FAULT_PROCESS", plan->process, 1));
	plan->run();
}

static void read_log(char *ret_text)
{
	FILE *file = fopen(log_path, "r");
	size_t got;

	T_TRUE(file != NULL);
	got = fread(ret_text, 1, LOG_BYTES - 1, file);
	ret_text[got] = '\0';
	(void)fclose(file);
}

/* The line "PID faults ..." must be in the log, or must not. */
static void check_log(pid_t pid, const char *line, bool is_there)
{
	static char text[LOG_BYTES];
	char wanted[256];

	read_log(text);
	(void)snprintf(wanted, sizeof(wanted), "%d faults %s\n", (int)pid, line);
	if ((strstr(text, wanted) != NULL) != is_there)
		t_fail("'%s' should %sbe in the log:\n%s", wanted, is_there ? "" : "not ", text);
}

/* Runs it to its end; how it ended is what waitpid() says. */
static pid_t run(struct plan plan, int *ret_status)
{
	struct t_child child = t_child_start(run_plan, &plan);

	T_SYS(waitpid(child.pid, ret_status, 0));
	(void)close(child.fd);
	return child.pid;
}

static void third_of_three(void)
{
	CUdeviceptr address;
	CUresult (*allocate)(CUdeviceptr *, size_t);

	(void)t_cuda();
	allocate = (CUresult(*)(CUdeviceptr *, size_t))t_entry("cuMemAlloc", 12000);
	T_OK(cuMemAlloc_v2(&address, T_MIB));
	T_OK(cuMemAlloc_v2(&address, T_MIB));
	T_IS(allocate(&address, T_MIB), CUDA_ERROR_UNKNOWN);
	T_OK(allocate(&address, T_MIB));
}

static void every_one(void)
{
	CUdeviceptr address = 0;

	(void)t_cuda();
	T_IS(cuMemAlloc_v2(&address, T_MIB), CUDA_ERROR_OUT_OF_MEMORY);
	T_IS(cuMemAlloc_v2(&address, T_MIB), CUDA_ERROR_OUT_OF_MEMORY);
	T_EQ(address, 0);
}

/* The work is done though the call says that it failed. */
static void behind_the_work(void)
{
	size_t free_bytes;
	CUdeviceptr address = 0;

	(void)t_cuda();
	free_bytes = t_free_bytes();
	T_IS(cuMemAlloc_v2(&address, 4 * T_MIB), CUDA_ERROR_UNKNOWN);
	T_TRUE(address != 0);
	T_TRUE(t_free_bytes() + 4 * T_MIB <= free_bytes);
}

static void never_hit(void)
{
	(void)t_cuda();
	(void)t_alloc(T_MIB);
}

static void is_killed(void)
{
	(void)t_cuda();
	(void)t_alloc(T_MIB);
	t_fail("went on behind a fault that kills");
}

static void results(void)
{
	int status;
	pid_t pid =
		run((struct plan){"cuMemAlloc:3=UNKNOWN,cuMemFree:1=UNKNOWN", NULL, third_of_three},
		    &status);

	T_EQ(status, 0);
	check_log(pid, "fault cuMemAlloc:3=UNKNOWN", true);
	check_log(pid, "fault cuMemFree:1=UNKNOWN", false);
	check_log(pid, "cuMemAlloc UNKNOWN", true);
	check_log(pid, "cuMemAlloc SUCCESS", true);
	check_log(pid, "cuInit SUCCESS", true);
	(void)run((struct plan){"cuMemAlloc:*=OUT_OF_MEMORY", NULL, every_one}, &status);
	T_EQ(status, 0);
	pid = run((struct plan){"cuMemAlloc!:1=UNKNOWN", NULL, behind_the_work}, &status);
	T_EQ(status, 0);
	check_log(pid, "fault cuMemAlloc!:1=UNKNOWN", true);
	pid = run((struct plan){"cuMemAlloc:1=delay=5", NULL, never_hit}, &status);
	T_EQ(status, 0);
	check_log(pid, "fault cuMemAlloc:1=delay=5", true);
	pid = run((struct plan){"cuMemAlloc:1=UNKNOWN", "other", never_hit}, &status);
	T_EQ(status, 0);
	check_log(pid, "fault cuMemAlloc:1=UNKNOWN", false);
	(void)run((struct plan){"cuMemAlloc:*=OUT_OF_MEMORY", "faults", every_one}, &status);
	T_EQ(status, 0);
}

static void deaths(void)
{
	int status;
	pid_t pid = run((struct plan){"cuMemAlloc:1=kill", NULL, is_killed}, &status);

	T_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	check_log(pid, "fault cuMemAlloc:1=kill", true);
	check_log(pid, "cuMemAlloc SUCCESS", false);
}

/* It says in the log that it hangs, and then is still there. */
static void hangs(void)
{
	static char text[LOG_BYTES];
	struct plan plan = {"cuMemAlloc:1=hang", NULL, is_killed};
	struct t_child child = t_child_start(run_plan, &plan);
	char wanted[128];

	(void)snprintf(wanted, sizeof(wanted), "%d faults fault cuMemAlloc:1=hang\n",
		       (int)child.pid);
	do {
		read_log(text);
	} while (strstr(text, wanted) == NULL);
	T_EQ(waitpid(child.pid, NULL, WNOHANG), 0);
	t_child_kill(&child);
}

static void logged_load(int fd, void *argument)
{
	T_SYS(setenv("STASIS_SIM_LOG", log_path, 1));
	t_load_run(fd, argument);
}

static void states(void)
{
	struct t_load load = {.devices = 1, .bytes = T_MIB};
	struct t_child child = t_child_start(logged_load, &load);

	t_hear(child.fd, 'R');
	t_suspend(child.pid);
	t_resume(child.pid);
	check_log(child.pid, "state RUNNING->LOCKED", true);
	check_log(child.pid, "state LOCKED->CHECKPOINTED", true);
	check_log(child.pid, "state CHECKPOINTED->LOCKED", true);
	check_log(child.pid, "state LOCKED->RUNNING", true);
	t_child_join(&child);
}

int main(void)
{
	const char *folder = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe) */

	T_TRUE(folder != NULL);
	(void)snprintf(log_path, sizeof(log_path), "%s/calls.log", folder);
	results();
	deaths();
	hangs();
	states();
	return 0;
}
