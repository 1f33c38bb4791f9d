#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "answers.h"
#include "breaks.h"

#define EXIT_MISUSE 98
#define DEFAULT_DIR_BYTES 64

static const int versions[] = {12080, 13000, 13010, 13040};

/* clang-format off */
#define NAME_ROW(name, ...) #name,
static const char *const break_names[] = {SIM_BREAKS(NAME_ROW) SIM_BREAK_ANSWERS(NAME_ROW)};
/* clang-format on */

static struct sim_config config;
static bool is_broken[ARRAY_COUNT(break_names)];
static bool is_something_broken;
static char default_dir[DEFAULT_DIR_BYTES];
static pthread_once_t config_once = PTHREAD_ONCE_INIT;

void sim_die(const char *format, ...)
{
	char line[512];
	va_list arguments;
	int used = snprintf(line, sizeof(line), "simulated driver: ");

	va_start(arguments, format);
	(void)vsnprintf(line + used, sizeof(line) - (size_t)used, format, arguments);
	va_end(arguments);
	(void)fprintf(stderr, "%s\n", line);
	(void)fflush(stderr);
	_exit(EXIT_MISUSE);
}

static uint64_t unit_bytes(const char *suffix)
{
	static const char units[] = "KkMmGgTt";
	const char *unit = *suffix ? strchr(units, *suffix) : NULL;

	if (*suffix == '\0')
		return 1;
	if (unit == NULL || suffix[1] != '\0')
		return 0;
	return 1ULL << (10 * ((unit - units) / 2 + 1));
}

static uint64_t env_bytes(const char *name, uint64_t otherwise)
{
	const char *text = secure_getenv(name);
	char *end = NULL;
	unsigned long long value;
	uint64_t unit;

	if (text == NULL)
		return otherwise;
	errno = 0;
	value = strtoull(text, &end, 10);
	unit = unit_bytes(end);
	if (!isdigit((unsigned char)text[0]) || errno != 0 || unit == 0 ||
	    value > UINT64_MAX / unit / 2)
		sim_die("%s='%s' is no number of bytes such as 512M", name, text);
	return value * unit;
}

static int env_number(const char *name, int otherwise, int low, int high)
{
	const char *text = secure_getenv(name);
	char *end = NULL;
	long value;

	if (text == NULL)
		return otherwise;
	errno = 0;
	value = strtol(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || errno != 0 || *end != '\0' || value < low ||
	    value > high)
		sim_die("%s='%s' is no number from %d to %d", name, text, low, high);
	return (int)value;
}

static int env_version(void)
{
	int version = env_number("STASIS_SIM_CUDA", 13040, 0, 99999);

	for (size_t i = 0; i < ARRAY_COUNT(versions); i++)
		if (versions[i] == version)
			return version;
	sim_die("STASIS_SIM_CUDA=%d is none of 12080, 13000, 13010, 13040", version);
}

/* Others must not reach what stands in the directory: it is memory of the programs under test. */
static const char *env_dir(void)
{
	const char *dir = secure_getenv("STASIS_SIM_DIR");
	struct stat found;

	if (dir == NULL) {
		(void)snprintf(default_dir, sizeof(default_dir), "/tmp/stasis-sim-%u",
			       (unsigned int)geteuid());
		dir = default_dir;
	}
	if (dir[0] != '/')
		sim_die("STASIS_SIM_DIR='%s' must begin with /", dir);
	if (mkdir(dir, 0700) != 0 && errno != EEXIST)
		sim_die("cannot make the directory STASIS_SIM_DIR='%s': errno %d", dir, errno);
	if (lstat(dir, &found) != 0 || !S_ISDIR(found.st_mode))
		sim_die("STASIS_SIM_DIR='%s' is no directory", dir);
	if (geteuid() != 0 && found.st_uid != geteuid())
		sim_die("STASIS_SIM_DIR='%s' belongs to another user", dir);
	if ((found.st_mode & 077) != 0)
		sim_die("STASIS_SIM_DIR='%s' is open to others: its mode must be 0700", dir);
	dir = strdup(dir);
	if (dir == NULL)
		sim_die("out of memory");
	return dir;
}

static size_t break_index(const char *name, size_t name_bytes)
{
	size_t i = 0;

	while (i < ARRAY_COUNT(break_names) && (strlen(break_names[i]) != name_bytes ||
						memcmp(break_names[i], name, name_bytes) != 0))
		i++;
	return i;
}

static void read_breaks(void)
{
	const char *text = secure_getenv("STASIS_SIM_BREAK");

	while (text != NULL && *text != '\0') {
		size_t name_bytes = strcspn(text, ",");
		size_t i = break_index(text, name_bytes);

		if (i == ARRAY_COUNT(break_names))
			sim_die("STASIS_SIM_BREAK names '%.*s', which 'sim-state --breaks' does "
				"not "
				"list",
				(int)name_bytes, text);
		is_broken[i] = true;
		is_something_broken = true;
		text += name_bytes;
		text += *text == ',';
	}
}

static void read_config(void)
{
	config = (struct sim_config){
		.dir = env_dir(),
		.device_count = env_number("STASIS_SIM_DEVICES", 1, 1, SIM_DEVICES_MAX),
		.version = env_version(),
		.memory_bytes = env_bytes("STASIS_SIM_MEMORY", 8ULL << 30),
		.context_bytes = env_bytes("STASIS_SIM_CONTEXT_BYTES", 64ULL << 20),
		.is_persistent = env_number("STASIS_SIM_PERSISTENCE", 1, 0, 1) == 1,
		.is_host_visible = env_number("STASIS_SIM_HOST_VISIBLE", 0, 0, 1) == 1,
		.has_multicast = env_number("STASIS_SIM_MULTICAST", 1, 0, 1) == 1,
		.is_mig = env_number("STASIS_SIM_MIG", 0, 0, 1) == 1,
		.compute_mode = env_number("STASIS_SIM_COMPUTE_MODE", 0, 0, 3),
	};
	/* There was a mode 1, which drivers have no more. */
	if (config.compute_mode == 1)
		sim_die("STASIS_SIM_COMPUTE_MODE=1 is none of 0, 2, 3");
	if (config.memory_bytes < 1ULL << 20)
		sim_die("STASIS_SIM_MEMORY must be 1M at least");
	read_breaks();
	if (is_broken[break_index("cpu_touch_faults", strlen("cpu_touch_faults"))])
		config.is_host_visible = true;
}

const struct sim_config *sim_config(void)
{
	(void)pthread_once(&config_once, read_config);
	return &config;
}

bool sim_breaks_something(void)
{
	(void)sim_config();
	return is_something_broken;
}

bool sim_breaks(const char *name)
{
	size_t i;

	if (!sim_breaks_something())
		return false;
	i = break_index(name, strlen(name));
	if (i == ARRAY_COUNT(break_names))
		sim_die("'%s' does not stand in breaks.h", name);
	return is_broken[i];
}
