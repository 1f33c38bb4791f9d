/*
 * stasis_library_suspend: a supervisor, which holds the deadline and duplicates of what keeps the memory alive, and a
 * worker that leads the group through its capture (group/capture.h).
 */

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "driver/report.h"
#include "group/capture.h"
#include "lib/group_work.h"
#include "lib/host_memory.h"
#include "lib/memory_dir.h"

struct suspend {
	struct stasis_suspend_options options;
	struct stasis_id capture;
	char image_path[STASIS_LIB_PATH_BYTES];
	bool is_in_memory;
	int keeper_fd; /* the worker's end */
};

static int options_check(const struct stasis_suspend_options *options, struct stasis_error *err)
{
	if (options->count == 0 || !options->pids)
		return stasis_fail(err, STASIS_USAGE, "suspend: no process is named");
	if (options->timeout_ns == 0 || options->gate_timeout_ns == 0)
		return stasis_fail(err, STASIS_USAGE, "suspend: a timeout must not be 0");
	if (options->chunk_bytes > 0 && (options->chunk_bytes < STASIS_CHUNK_BYTES_MIN ||
					 options->chunk_bytes > STASIS_CHUNK_BYTES_MAX ||
					 options->chunk_bytes % STASIS_STORED_ALIGNMENT != 0))
		return stasis_fail(err, STASIS_USAGE,
				   "suspend: chunks must be between 64K and 64M and a multiple of "
				   "4096 bytes");
	if (options->workers > STASIS_TRANSFER_WORKERS_MAX)
		return stasis_fail(err, STASIS_USAGE, "suspend: at most %d workers",
				   STASIS_TRANSFER_WORKERS_MAX);
	if ((unsigned int)options->file_store > STASIS_FILE_STORE_PLAIN)
		return stasis_fail(err, STASIS_USAGE, "suspend: unknown file store");
	return 0;
}

/* The path as anybody can use it, from any folder. */
static int path_settle(struct suspend *suspend, struct stasis_error *err)
{
	const char *path = suspend->options.image_path;
	char folder[STASIS_LIB_PATH_BYTES];
	int length;

	suspend->is_in_memory = path == NULL;
	if (!path)
		return stasis_lib_memory_image_path(&suspend->capture, suspend->image_path, err);
	if (path[0] == '/') {
		length = snprintf(suspend->image_path, sizeof(suspend->image_path), "%s", path);
	} else {
		if (!getcwd(folder, sizeof(folder)))
			return stasis_fail_errno(err, STASIS_REFUSED, "find the present folder");
		length = snprintf(suspend->image_path, sizeof(suspend->image_path), "%s/%s", folder,
				  path);
	}
	if (length < 0 || length >= (int)sizeof(suspend->image_path))
		return stasis_fail(err, STASIS_USAGE, "suspend: the path of the image is too long");
	return 0;
}

static int host_bytes_read(const struct suspend *suspend, uint64_t *ret_bytes,
			   struct stasis_error *err)
{
	struct stasis_lib_host_memory host;

	*ret_bytes = suspend->options.memory_bytes;
	if (*ret_bytes > 0)
		return 0;
	if (stasis_lib_host_memory_read(&host, err) != 0)
		return -1;
	*ret_bytes = host.available_bytes;
	return 0;
}

static int group_capture(struct stasis_lib_group_work *work, const struct suspend *suspend,
			 struct stasis_error *err)
{
	CLEANUP(group) struct stasis_group group = {.count = 0};
	char version[STASIS_VERSION_BYTES];
	const struct stasis_group_plan plan = {
		.driver = &work->hands.driver,
		.watch = &work->watch,
		.operation = suspend->capture,
		.pids = suspend->options.pids,
		.count = suspend->options.count,
	};
	struct stasis_capture_options options = {
		.image_path = suspend->image_path,
		.origin = {.store = STASIS_IMAGE_STORE_NATIVE,
			   .tool_version = stasis_version(),
			   .driver_version = stasis_kernel_module_version(version),
			   .cuda_version = (uint32_t)work->hands.driver.cuda_version,
			   .capture_id = &suspend->capture},
		.gate_ns = suspend->options.gate_timeout_ns,
		.chunk_bytes = suspend->options.chunk_bytes ? suspend->options.chunk_bytes
							    : STASIS_CHUNK_BYTES_DEFAULT,
		.transfer = {.store = (enum stasis_transfer_store)suspend->options.file_store,
			     .workers = suspend->options.workers},
		.is_in_memory = suspend->is_in_memory,
		.keeper_fd = suspend->keeper_fd,
	};

	if (host_bytes_read(suspend, &options.host_bytes, err) != 0 ||
	    stasis_group_open(&group, &plan, err) != 0)
		return -1;
	if (*version == '\0')
		options.origin.driver_version = NULL;
	return stasis_group_capture(&group, &options, err);
}

/* The worker. */
static int suspend_run(struct stasis_lib_channel *channel, void *argument, struct stasis_error *err)
{
	const struct suspend *suspend = argument;
	struct stasis_lib_group_work work;
	int result = stasis_lib_group_work_init(&work, channel, err);

	if (result == 0)
		result = group_capture(&work, suspend, err);
	if (result == 0) {
		stasis_lib_channel_fact(channel, STASIS_LIB_FACT_PUBLISHED, "");
		stasis_lib_event(&channel->sink, "store", "native");
		stasis_lib_event(&channel->sink, "image", "%s", suspend->image_path);
		stasis_lib_event(&channel->sink, "suspended", "%zu", suspend->options.count);
	}
	stasis_lib_group_work_fini(&work);
	return result;
}

static int suspend_supervise(struct stasis_library *library, struct suspend *suspend,
			     struct stasis_error *err)
{
	struct stasis_lib_knowledge knowledge = {.has_phase = false};
	const struct stasis_lib_watch watch = {
		.sink = &library->sink,
		.timeout_ns = suspend->options.timeout_ns,
		.cancel_fd = suspend->options.cancel_fd,
		.knowledge = &knowledge,
	};
	struct stasis_lib_group_task task = {
		.function = suspend_run,
		.argument = suspend,
		.capture = &suspend->capture,
	};
	int keeper[2];
	int result;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, keeper) != 0)
		return stasis_fail_errno(err, STASIS_REFUSED, "socketpair for descriptors");
	suspend->keeper_fd = keeper[1];
	task.keeper_fd = keeper[0];
	result = stasis_lib_group_supervise(&watch, &task, err);
	(void)close(keeper[0]);
	(void)close(keeper[1]);
	return result;
}

enum stasis_status stasis_library_suspend(struct stasis_library *library,
					  const struct stasis_suspend_options *options)
{
	struct stasis_error *err = stasis_lib_begin(library);
	CLEANUP(free) struct suspend *suspend = calloc(1, sizeof(*suspend));
	int result;

	if (!suspend) {
		(void)stasis_fail(err, STASIS_REFUSED, "out of memory");
		return stasis_lib_end(library, -1);
	}
	suspend->options = (struct stasis_suspend_options)STASIS_SUSPEND_OPTIONS_INIT;
	result = stasis_lib_options_copy("suspend", options, &suspend->options,
					 sizeof(suspend->options), err);
	if (result == 0)
		result = options_check(&suspend->options, err);
	if (result == 0)
		result = stasis_id_random(&suspend->capture, err);
	if (result == 0)
		result = path_settle(suspend, err);
	if (result == 0)
		result = suspend_supervise(library, suspend, err);
	return stasis_lib_end(library, result);
}
