#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

static struct {
	pthread_once_t once;
	const char *path;
	char executable[NAME_MAX + 1];
} logging = {.once = PTHREAD_ONCE_INIT};

static void read_log(void)
{
	const char *path = secure_getenv("STASIS_SIM_LOG");
	char exe[PATH_MAX];
	ssize_t exe_bytes = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	const char *base;

	exe[exe_bytes < 0 ? 0 : exe_bytes] = '\0';
	base = strrchr(exe, '/');
	(void)snprintf(logging.executable, sizeof(logging.executable), "%.*s", NAME_MAX,
		       base ? base + 1 : "unknown");
	if (path == NULL)
		return;
	if (path[0] != '/')
		sim_die("STASIS_SIM_LOG='%s' must begin with /", path);
	logging.path = strdup(path);
}

bool sim_log_is_on(void)
{
	(void)pthread_once(&logging.once, read_log);
	return logging.path != NULL;
}

const char *sim_log_executable(void)
{
	(void)pthread_once(&logging.once, read_log);
	return logging.executable;
}

void sim_log_line(const char *format, ...)
{
	char line[512];
	va_list arguments;
	int used;
	CLEANUP(fd) int fd = -1;

	if (!sim_log_is_on())
		return;
	used = snprintf(line, sizeof(line), "%d %s ", (int)getpid(), logging.executable);
	va_start(arguments, format);
	(void)vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, arguments);
	va_end(arguments);
	used = (int)strlen(line);
	line[used] = '\n';
	fd = open(logging.path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, line, (size_t)used + 1) != used + 1)
		sim_die("cannot write to STASIS_SIM_LOG='%s': errno %d", logging.path, errno);
}
