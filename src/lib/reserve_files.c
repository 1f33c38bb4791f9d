/*
 * reserve: files allocated ahead for the next capture into a directory. How many and how large is what the
 * transfer engine would ask for; the image module makes them.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/statvfs.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "driver/device.h"
#include "image/image.h"
#include "lib/host_memory.h"
#include "lib/library.h"
#include "transfer/transfer.h"

struct making {
	const struct stasis_lib_sink *sink;
	int cancel_fd;
};

static bool progress(void *data, uint64_t done_bytes, uint64_t total_bytes)
{
	const struct making *making = data;
	struct pollfd cancel = {.fd = making->cancel_fd, .events = POLLIN};

	stasis_lib_event(making->sink, "progress", "reserve %" PRIu64 " %" PRIu64, done_bytes,
			 total_bytes);
	return cancel.fd < 0 || poll(&cancel, 1, 0) <= 0;
}

static int room_fail(const char *what, const char *path, uint64_t need_bytes, uint64_t free_bytes,
		     struct stasis_error *err)
{
	char need_text[32];
	char free_text[32];

	return stasis_fail(err, STASIS_REFUSED,
			   "a reserve in '%.200s' needs %s, and %s has %s left; nothing was made",
			   path, stasis_format_bytes(need_bytes, need_text, sizeof(need_text)),
			   what, stasis_format_bytes(free_bytes, free_text, sizeof(free_text)));
}

/*
 * Looked at beforehand, since a file system in memory says that it has room where the machine has none, and
 * what comes then is the OOM killer.
 */
static int room_check(const char *path, uint64_t bytes, struct stasis_error *err)
{
	CLEANUP(fd) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	enum stasis_transfer_store store = STASIS_TRANSFER_STORE_PLAIN;
	struct stasis_lib_host_memory host;
	struct statvfs info;
	uint64_t free_bytes;

	if (fd < 0 || fstatvfs(fd, &info) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "open the directory '%.200s'", path);
	if (!stasis_multiply_u64(info.f_bavail, info.f_frsize, &free_bytes))
		free_bytes = UINT64_MAX;
	if (free_bytes < bytes)
		return room_fail("its file system", path, bytes, free_bytes, err);
	if (stasis_transfer_store_detect(fd, path, &store, err) != 0)
		return -1;
	if (store != STASIS_TRANSFER_STORE_STRIPES && store != STASIS_TRANSFER_STORE_MAPPING)
		return 0;
	if (stasis_lib_host_memory_read(&host, err) != 0)
		return -1;
	if (host.available_bytes < bytes)
		return room_fail("the machine's memory", path, bytes, host.available_bytes, err);
	return 0;
}

static int reserve_make(struct stasis_library *library,
			const struct stasis_reserve_options *options, struct stasis_error *err)
{
	struct making making = {.sink = &library->sink, .cancel_fd = options->cancel_fd};
	/* Each GPU has an extent of its own, and each of those as many files as serve it well. */
	uint32_t gpus = options->gpus ? options->gpus : 1;
	uint64_t bytes = options->bytes / gpus + (options->bytes % gpus != 0);
	uint32_t files = stasis_transfer_stripe_count(bytes, STASIS_CHUNK_BYTES_DEFAULT);
	const struct stasis_image_reserve_plan plan = {
		.file_count = files * gpus,
		.file_bytes =
			stasis_transfer_reserve_bytes(bytes, STASIS_CHUNK_BYTES_DEFAULT, files, 0),
		.progress = progress,
		.progress_data = &making,
	};

	if (room_check(options->path, plan.file_count * plan.file_bytes, err) != 0 ||
	    stasis_image_reserve_make(options->path, &plan, err) != 0)
		return -1;
	stasis_lib_event(&library->sink, "reserve", "made");
	stasis_lib_event(&library->sink, "files", "%u", plan.file_count);
	stasis_lib_event(&library->sink, "bytes", "%" PRIu64, plan.file_count * plan.file_bytes);
	return 0;
}

static int reserve_remove(struct stasis_library *library, const char *path,
			  struct stasis_error *err)
{
	uint64_t bytes = 0;

	if (stasis_image_reserve_remove(path, &bytes, err) != 0)
		return -1;
	stasis_lib_event(&library->sink, "reserve", "%s", bytes ? "removed" : "none");
	stasis_lib_event(&library->sink, "bytes", "%" PRIu64, bytes);
	return 0;
}

enum stasis_status stasis_library_reserve(struct stasis_library *library,
					  const struct stasis_reserve_options *options)
{
	struct stasis_error *err = stasis_lib_begin(library);
	struct stasis_reserve_options ours = STASIS_RESERVE_OPTIONS_INIT;

	if (stasis_lib_options_copy("reserve", options, &ours, sizeof(ours), err) != 0)
		return stasis_lib_end(library, -1);
	if (!ours.path || !*ours.path || (ours.bytes == 0) != ours.is_removing) {
		(void)stasis_fail(err, STASIS_USAGE,
				  "reserve: a directory, and either a number of bytes or removal");
		return stasis_lib_end(library, -1);
	}
	if (ours.gpus > STASIS_DEVICES_MAX) {
		(void)stasis_fail(err, STASIS_USAGE, "reserve: at most %d GPUs",
				  STASIS_DEVICES_MAX);
		return stasis_lib_end(library, -1);
	}
	return stasis_lib_end(library, ours.is_removing ? reserve_remove(library, ours.path, err)
							: reserve_make(library, &ours, err));
}
