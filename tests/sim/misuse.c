/*
 * Description: a value of the environment that the simulator cannot use ends the process with exit status
 * 98 and a line that names it, so that no test passes for nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "child.h"
#include "device.h"

#define EXIT_MISUSE 98

struct setting {
	const char *name;
	const char *value;
};

static void init_with(const struct setting *setting, int err_fd)
{
	T_SYS(setenv(setting->name, setting->value, 1));
	T_SYS(dup2(err_fd, STDERR_FILENO));
	(void)cuInit(0);
}

/* The exit status of cuInit under that setting, and what it said. */
static int try_setting(const struct setting *setting, char *ret_said, size_t said_size)
{
	int ends[2];
	int status;
	ssize_t got;
	pid_t pid;

	T_SYS(pipe(ends));
	pid = (pid_t)T_SYS(fork());
	if (pid == 0) {
		init_with(setting, ends[1]);
		_exit(0);
	}
	(void)close(ends[1]);
	got = read(ends[0], ret_said, said_size - 1);
	ret_said[got < 0 ? 0 : got] = '\0';
	(void)close(ends[0]);
	T_SYS(waitpid(pid, &status, 0));
	T_TRUE(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void refused(struct setting setting)
{
	char said[512];
	int status = try_setting(&setting, said, sizeof(said));

	if (status != EXIT_MISUSE || strstr(said, setting.value) == NULL)
		t_fail("%s=%s: exit status %d, said '%s'", setting.name, setting.value, status,
		       said);
}

static void taken(struct setting setting)
{
	char said[512];
	int status = try_setting(&setting, said, sizeof(said));

	if (status != 0 || said[0] != '\0')
		t_fail("%s=%s: exit status %d, said '%s'", setting.name, setting.value, status,
		       said);
}

static void folders(void)
{
	const char *folder = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe) */
	char path[512];
	char link_path[512];

	T_TRUE(folder != NULL);
	(void)snprintf(path, sizeof(path), "%s/open", folder);
	T_SYS(mkdir(path, 0755));
	refused((struct setting){"STASIS_SIM_DIR", path});
	T_SYS(chmod(path, 0700));
	taken((struct setting){"STASIS_SIM_DIR", path});
	(void)snprintf(link_path, sizeof(link_path), "%s/link", folder);
	T_SYS(symlink(path, link_path));
	refused((struct setting){"STASIS_SIM_DIR", link_path});
	refused((struct setting){"STASIS_SIM_DIR", "relative"});
	refused((struct setting){"STASIS_SIM_DIR", "/nowhere/at/all"});
}

int main(void)
{
	static const struct setting wrong[] = {
		{"STASIS_SIM_DEVICES", "0"},
		{"STASIS_SIM_DEVICES", "17"},
		{"STASIS_SIM_DEVICES", "two"},
		{"STASIS_SIM_MEMORY", "8X"},
		{"STASIS_SIM_MEMORY", "-1"},
		{"STASIS_SIM_MEMORY", "99999999999999999999"},
		{"STASIS_SIM_MEMORY", "8GG"},
		{"STASIS_SIM_CUDA", "13020"},
		{"STASIS_SIM_CONTEXT_BYTES", "some"},
		{"STASIS_SIM_PERSISTENCE", "yes"},
		{"STASIS_SIM_HOST_VISIBLE", "2"},
		{"STASIS_SIM_COMPUTE_MODE", "1"},
		{"STASIS_SIM_MIG", "2"},
		{"STASIS_SIM_BREAK", "nothing_of_the_kind"},
		{"STASIS_SIM_FAULT", "cuMemAlloc"},
		{"STASIS_SIM_FAULT", "cuMemAlloc:0=UNKNOWN"},
		{"STASIS_SIM_FAULT", "cuMemAlloc:1=SUCCESS"},
		{"STASIS_SIM_FAULT", "cuMemAlloc:1=delay="},
		{"STASIS_SIM_FAULT", "cuMemAlloc:one=UNKNOWN"},
		{"STASIS_SIM_FAULT", "cuMemAllok:1=UNKNOWN"},
		{"STASIS_SIM_FAULT", "cuMemAlloc:1=NO_SUCH_RESULT"},
		{"STASIS_SIM_LOG", "relative"},
	};

	for (size_t i = 0; i < ARRAY_COUNT(wrong); i++)
		refused(wrong[i]);
	taken((struct setting){"STASIS_SIM_MEMORY", "512M"});
	taken((struct setting){"STASIS_SIM_CUDA", "13010"});
	taken((struct setting){"STASIS_SIM_FAULT", "cuMemAlloc!:1=hang,cuMemFree:*=delay=3"});
	folders();
	return 0;
}
