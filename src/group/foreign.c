/*
 * See foreign.h. Only the driver can say what one of its descriptors is: an export reads /dev/nvidiactl like those
 * that every CUDA process has, and importing one of those fails and does no harm (driver 580). A driver without
 * device files, as the simulated one is, exports sockets; so where a process has no device file of the driver's,
 * its sockets are tried, and on hardware a socket never is.
 */

#include "group/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/number.h"
#include "wire/mark.h"

#define DEVICES_BYTES 16384
#define LINK_BYTES 256
/* More than the driver opens in an import. */
#define DESCRIPTORS_NEEDED 16

static const struct {
	const char *link; /* how each begins */
	const char *device;
	enum stasis_foreign_kind kind;
} kinds[] = {
	{"/dev/nvidia", "nvidia", STASIS_FOREIGN_DRIVER},
	{"/dev/infiniband/uverbs", "infiniband_verbs", STASIS_FOREIGN_RDMA},
	{"/dev/gdrdrv", "gdrdrv", STASIS_FOREIGN_RDMA},
};

static const char socket_link[] = "socket:[";

struct look {
	const struct stasis_driver *driver;
	const struct stasis_process *process;
	bool releases_memory;
	DIR *dir;                    /* its descriptors */
	char devices[DEVICES_BYTES]; /* /proc/devices, or empty */
	bool has_device_files;       /* of the driver's */
	stasis_foreign_found *found; /* told of each */
	void *found_data;
};

struct found {
	int number;
	char link[LINK_BYTES]; /* as much of it as fits */
};

static bool begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

enum stasis_foreign_kind stasis_foreign_kind(const char *link, const char *device)
{
	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
		if (begins_with(link, kinds[i].link) || begins_with(device, kinds[i].device))
			return kinds[i].kind;
	}
	return STASIS_FOREIGN_NONE;
}

/* ---- what a descriptor is ---- */

static void devices_read(char devices[DEVICES_BYTES])
{
	CLEANUP(file) FILE *file = fopen("/proc/devices", "re");
	size_t bytes = file ? fread(devices, 1, DEVICES_BYTES - 1, file) : 0;

	devices[bytes] = '\0';
}

/* The name of a major number among the character devices; they come first, a line "195 nvidia" each. */
static void device_name(const char *devices, unsigned int major_number, char ret_name[32])
{
	const char *end = strstr(devices, "Block devices:");

	ret_name[0] = '\0';
	for (const char *line = devices; line && line != end; line = strchr(line, '\n')) {
		unsigned int number = 0;
		char name[32] = "";

		line += *line == '\n';
		if (line == end)
			return;
		/* The kernel's own numbers, in range. NOLINTNEXTLINE(cert-err34-c) */
		if (sscanf(line, "%u %31s", &number, name) == 2 && number == major_number) {
			memcpy(ret_name, name, sizeof(name));
			return;
		}
	}
}

static enum stasis_foreign_kind kind_of(const struct look *look, const struct dirent *entry,
					const char *link)
{
	struct stat status;
	char name[32] = "";

	/* Through the link, to the device itself, whichever file system that is in. */
	if (fstatat(dirfd(look->dir), entry->d_name, &status, 0) == 0 && S_ISCHR(status.st_mode))
		device_name(look->devices, major(status.st_rdev), name);
	return stasis_foreign_kind(link, name);
}

/* False: no descriptor, or one that was closed meanwhile. */
static bool found_read(const struct look *look, const struct dirent *entry, struct found *ret_found)
{
	struct stasis_error ignored = STASIS_ERROR_INIT;
	ssize_t length =
		readlinkat(dirfd(look->dir), entry->d_name, ret_found->link, LINK_BYTES - 1);
	uint64_t number;

	if (length < 0 || stasis_parse_u64("descriptor", entry->d_name, &number, &ignored) != 0)
		return false;
	ret_found->link[length] = '\0';
	ret_found->number = (int)number;
	return true;
}

/* ---- verdicts ---- */

/* Whether it is an export. What the driver answers to anything else is not laid down. */
static int import_try(const struct look *look, int fd, bool *ret_is_export,
		      struct stasis_error *err)
{
	CUmemGenericAllocationHandle handle;
	CUresult result = look->driver->cuMemImportFromShareableHandle(
		&handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);

	*ret_is_export = result == CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		return look->driver->cuMemRelease(handle) == CUDA_SUCCESS
			       ? 0
			       : stasis_fail(
					 err, STASIS_REFUSED,
					 "give back memory that was imported to see what it is");
	if (result == CUDA_ERROR_OUT_OF_MEMORY || result == CUDA_ERROR_NOT_INITIALIZED ||
	    result == CUDA_ERROR_DEINITIALIZED)
		return stasis_fail_cuda(err, STASIS_REFUSED, result,
					"see what a descriptor of the driver's is");
	return 0;
}

static int export_refuse(const struct look *look, const struct found *found,
			 struct stasis_error *err)
{
	CLEANUP(fd) int fd = -1;
	bool is_export = false;

	if (stasis_process_take_descriptor(look->process, found->number, &fd, err) != 0)
		return -1;
	if (fd < 0 || stasis_wire_is_marked(fd))
		return 0;
	if (import_try(look, fd, &is_export, err) != 0) {
		stasis_error_context(err, "process %d: its descriptor %d ('%s')",
				     (int)look->process->pid, found->number, found->link);
		return -1;
	}
	if (!is_export)
		return 0;
	return stasis_fail(
		err, STASIS_REFUSED,
		"process %d: its descriptor %d ('%s') is an export of GPU memory that was "
		"not made through the interposer; after a checkpoint it would name other "
		"memory than the process has. Let the program close it, or start every "
		"program that shares this memory with 'stasis run'",
		(int)look->process->pid, found->number, found->link);
}

static int rdma_refuse(const struct look *look, const struct found *found, struct stasis_error *err)
{
	if (!look->releases_memory)
		return 0;
	return stasis_fail(err, STASIS_REFUSED,
			   "process %d: its descriptor %d ('%s') is of an RDMA device, which could "
			   "read and write memory that is given up in a capture. Let the program "
			   "close it, or run without RDMA",
			   (int)look->process->pid, found->number, found->link);
}

static int device_look(struct look *look, const struct dirent *entry, struct stasis_error *err)
{
	struct found found;

	if (!found_read(look, entry, &found))
		return 0;
	switch (kind_of(look, entry, found.link)) {
	case STASIS_FOREIGN_DRIVER:
		look->has_device_files = true;
		return export_refuse(look, &found, err);
	case STASIS_FOREIGN_RDMA:
		return rdma_refuse(look, &found, err);
	case STASIS_FOREIGN_NONE:
		break;
	}
	return 0;
}

static int socket_look(struct look *look, const struct dirent *entry, struct stasis_error *err)
{
	struct found found;

	if (!found_read(look, entry, &found) || !begins_with(found.link, socket_link))
		return 0;
	return export_refuse(look, &found, err);
}

/* ---- the walk ---- */

/* A driver that runs out of descriptors in the middle of an import fails it, as if it had been no export. */
static int room_check(const struct look *look, struct stasis_error *err)
{
	int fds[DESCRIPTORS_NEEDED];
	int count = 0;
	int cause;

	while (count < DESCRIPTORS_NEEDED &&
	       (fds[count] = fcntl(dirfd(look->dir), F_DUPFD_CLOEXEC, 0)) >= 0)
		count++;
	cause = errno;
	for (int i = 0; i < count; i++)
		(void)close(fds[i]);
	if (count == DESCRIPTORS_NEEDED)
		return 0;
	return stasis_fail_code(err, STASIS_REFUSED, cause,
				"process %d: look at its descriptors: this program has fewer than "
				"%d left (raise 'ulimit -n')",
				(int)look->process->pid, DESCRIPTORS_NEEDED);
}

typedef int look_function(struct look *look, const struct dirent *entry, struct stasis_error *err);

static int walk(struct look *look, look_function *function, struct stasis_error *err)
{
	struct dirent *entry;

	rewinddir(look->dir);
	for (entry = stasis_dir_next(look->dir); entry; entry = stasis_dir_next(look->dir)) {
		if (function(look, entry, err) != 0)
			return -1;
	}
	if (errno != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "process %d: list its descriptors",
					 (int)look->process->pid);
	return 0;
}

static int look_open(struct look *look, struct stasis_error *err)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)look->process->pid);
	look->dir = opendir(path);
	if (!look->dir)
		return stasis_fail_errno(err, STASIS_REFUSED,
					 "process %d: list its descriptors (needs the right to "
					 "ptrace it; stasis doctor says what is missing)",
					 (int)look->process->pid);
	devices_read(look->devices);
	return 0;
}

static void cleanup_look(struct look *look)
{
	if (look->dir)
		(void)closedir(look->dir);
}

int stasis_foreign_check(const struct stasis_driver *driver, const struct stasis_process *process,
			 bool releases_memory, struct stasis_error *err)
{
	CLEANUP(look)
	struct look look = {
		.driver = driver, .process = process, .releases_memory = releases_memory};

	if (look_open(&look, err) != 0 || room_check(&look, err) != 0 ||
	    walk(&look, device_look, err) != 0 ||
	    (!look.has_device_files && walk(&look, socket_look, err) != 0))
		return -1;
	/* What was listed was its own, unless its number went to another process meanwhile. */
	if (!stasis_process_is_alive(process))
		return stasis_fail(err, STASIS_REFUSED, "process %d has ended", (int)process->pid);
	return 0;
}

static int device_tell(struct look *look, const struct dirent *entry, struct stasis_error *err)
{
	struct found found;

	(void)err;
	if (found_read(look, entry, &found) &&
	    kind_of(look, entry, found.link) == STASIS_FOREIGN_DRIVER)
		look->found(look->found_data, found.number, found.link);
	return 0;
}

int stasis_foreign_device_files(const struct stasis_process *process, stasis_foreign_found *found,
				void *data, struct stasis_error *err)
{
	CLEANUP(look) struct look look = {.process = process, .found = found, .found_data = data};

	if (look_open(&look, err) != 0)
		return -1;
	return walk(&look, device_tell, err);
}
