/*
 * Description: the endpoint is found by pid or thread id, answers only its own user and root, is no part
 * of a forked child, and leaves nothing that stands for a process after its death.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "checkpoint.h"
#include "child.h"
#include "device.h"
#include "witness.h"

#define OTHER_USER 65534

static struct t_load load = {.devices = 1, .bytes = T_MIB};

static const char *machine_folder(void)
{
	const char *folder = getenv("STASIS_SIM_DIR"); /* NOLINT(concurrency-mt-unsafe) */

	if (folder == NULL)
		t_fail("STASIS_SIM_DIR is not set: run by tests/run");
	return folder;
}

static void find_socket(pid_t pid, char *ret_path, size_t path_size)
{
	const char *folder = machine_folder();
	char prefix[32];
	DIR *dir = opendir(folder);

	T_TRUE(dir != NULL);
	ret_path[0] = '\0';
	(void)snprintf(prefix, sizeof(prefix), "p-%d-", (int)pid);
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
		if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
			(void)snprintf(ret_path, path_size, "%s/%s", folder, entry->d_name);
	(void)closedir(dir);
	T_TRUE(ret_path[0] != '\0');
}

static void modes(pid_t pid)
{
	char path[600];
	struct stat found;

	find_socket(pid, path, sizeof(path));
	T_SYS(stat(path, &found));
	T_TRUE(S_ISSOCK(found.st_mode));
	T_EQ(found.st_mode & 0777, 0600);
}

/* Reads the folder's path while it may, says 'r', and on 'g' goes on as somebody else. */
static void other_user(int fd, void *argument)
{
	const pid_t *pid = argument;
	CUprocessState state;

	T_OK(cuCheckpointProcessGetState(*pid, &state));
	T_SYS(syscall(SYS_setresuid, OTHER_USER, OTHER_USER, OTHER_USER));
	t_say(fd, 'r');
	t_hear(fd, 'g');
	T_IS(cuCheckpointProcessGetState(*pid, &state), CUDA_ERROR_OPERATING_SYSTEM);
	T_IS(t_lock(*pid), CUDA_ERROR_OPERATING_SYSTEM);
}

/* With folder and socket closed to others, then with both open to all. */
static void try_other_user(pid_t pid, bool is_open)
{
	char path[600];
	struct t_child child = t_child_start(other_user, &pid);

	find_socket(pid, path, sizeof(path));
	t_hear(child.fd, 'r');
	T_SYS(chmod(path, is_open ? 0666 : 0600));
	T_SYS(chmod(machine_folder(), is_open ? 0755 : 0700));
	t_say(child.fd, 'g');
	t_child_join(&child);
}

static void remove_machine(void)
{
	int folder_fd = (int)T_SYS(open(machine_folder(), O_RDONLY | O_DIRECTORY));
	DIR *dir = fdopendir(folder_fd);

	T_TRUE(dir != NULL);
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
		if (entry->d_name[0] != '.')
			T_SYS(unlinkat(folder_fd, entry->d_name, 0));
	(void)closedir(dir);
	T_SYS(rmdir(machine_folder()));
}

/* Neither past the modes nor past the endpoint itself. In a folder that others can reach at all. */
static void run_permissions(int fd, void *argument)
{
	char folder[] = "/tmp/stasis-endpoint-XXXXXX";
	struct t_child child;

	(void)fd;
	(void)argument;
	if (geteuid() != 0) {
		(void)printf("not root: another user is not tried\n");
		return;
	}
	T_TRUE(mkdtemp(folder) != NULL);
	T_SYS(setenv("STASIS_SIM_DIR", folder, 1));
	child = t_child_start(t_load_run, &load);
	t_hear(child.fd, 'R');
	try_other_user(child.pid, false);
	try_other_user(child.pid, true);
	T_SYS(chmod(folder, 0700));
	T_WITNESS(child.pid, "RUNNING");
	t_child_join(&child);
	remove_machine();
}

/* The endpoint's own thread is one of the process's. */
static void threads(pid_t pid)
{
	CUprocessState state = CU_PROCESS_STATE_FAILED;
	int thread_id = 0;

	T_OK(cuCheckpointProcessGetRestoreThreadId(pid, &thread_id));
	T_TRUE(thread_id != pid);
	T_OK(cuCheckpointProcessGetState(thread_id, &state));
	T_EQ(state, CU_PROCESS_STATE_RUNNING);
	T_OK(t_lock(thread_id));
	T_WITNESS(pid, "LOCKED");
	T_OK(t_unlock(pid));
}

/* Has CUDA, and then a child that holds on to nothing of it. */
static void run_parent(int fd, void *argument)
{
	pid_t child;

	(void)argument;
	(void)t_cuda();
	child = (pid_t)T_SYS(fork());
	if (child == 0) {
		CUprocessState state;

		T_IS(cuMemFree_v2(0), CUDA_ERROR_NOT_INITIALIZED);
		T_IS(cuCheckpointProcessGetState(getpid(), &state), CUDA_ERROR_NOT_INITIALIZED);
		t_wait_end(fd);
		_exit(0);
	}
	t_send(fd, &child, sizeof(child));
	t_wait_end(fd);
}

static void forked(void)
{
	struct t_child parent = t_child_start(run_parent, NULL);
	CUprocessState state;
	pid_t child;
	int status;

	t_receive(parent.fd, &child, sizeof(child));
	T_WITNESS(parent.pid, "RUNNING");
	T_WITNESS(child, "NONE");
	T_SYS(kill(parent.pid, SIGKILL));
	T_SYS(waitpid(parent.pid, &status, 0));
	T_IS(cuCheckpointProcessGetState(parent.pid, &state), CUDA_ERROR_OPERATING_SYSTEM);
	T_EQ(t_witness_bytes(parent.pid, 0), 0);
	T_IS(cuCheckpointProcessGetState(child, &state), CUDA_ERROR_NOT_INITIALIZED);
}

/* The next process to start takes away what a killed one left. */
static void swept(void)
{
	struct t_child first = t_child_start(t_load_run, &load);
	struct t_child second;
	char path[600];

	t_hear(first.fd, 'R');
	find_socket(first.pid, path, sizeof(path));
	t_child_kill(&first);
	T_SYS(access(path, F_OK));
	second = t_child_start(t_load_run, &load);
	t_hear(second.fd, 'R');
	T_EQ(access(path, F_OK), -1);
	t_child_join(&second);
}

/* A folder whose name leaves no room for a socket's address. */
static void run_deep(int fd, void *argument)
{
	const char *folder = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe) */
	struct t_child child;
	char path[600];

	(void)fd;
	(void)argument;
	(void)snprintf(path, sizeof(path), "%s/%0120d", folder, 0);
	T_SYS(setenv("STASIS_SIM_DIR", path, 1));
	child = t_child_start(t_load_run, &load);
	t_hear(child.fd, 'R');
	t_suspend(child.pid);
	t_resume(child.pid);
	T_WITNESS(child.pid, "RUNNING");
	t_child_join(&child);
}

int main(void)
{
	struct t_child deep = t_child_start(run_deep, NULL);
	struct t_child permissions;
	struct t_child child;
	CUprocessState state;
	pid_t pid;

	t_child_join(&deep);
	permissions = t_child_start(run_permissions, NULL);
	t_child_join(&permissions);
	child = t_child_start(t_load_run, &load);
	pid = child.pid;
	t_hear(child.fd, 'R');
	modes(pid);
	threads(pid);
	forked();
	swept();
	t_child_join(&child);
	T_IS(cuCheckpointProcessGetState(pid, &state), CUDA_ERROR_OPERATING_SYSTEM);
	return 0;
}
