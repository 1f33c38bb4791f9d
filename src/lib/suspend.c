/*
 * stasis_library_suspend: a supervisor, which holds the deadline and duplicates of what keeps the memory alive, and a
 * worker that leads the group through its capture (group/capture.h).
 */

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/process.h"
#include "driver/report.h"
#include "group/capture.h"
#include "lib/group_work.h"
#include "lib/host_memory.h"
#include "lib/memory_dir.h"
#include "lib/tree.h"

#define TREE_TRIES 10

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

static bool has_control_character(const char *text)
{
	for (const char *at = text; *at; at++) {
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			return true;
	}
	return false;
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
	if (has_control_character(suspend->image_path))
		return stasis_fail(err, STASIS_USAGE,
				   "suspend: the path of the image has a control character in it, "
				   "which no journal takes; name one without");
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

/* With the processes as they are known now. */
struct attempt {
	struct stasis_lib_group_work *work;
	const struct suspend *suspend;
	struct stasis_lib_tree tree;
	bool is_outgrown; /* the tree has more of them than are in `tree` */
};

static int group_capture(struct attempt *attempt, const int32_t *pids, size_t count,
			 int (*census)(void *, struct stasis_error *), struct stasis_error *err)
{
	CLEANUP(group) struct stasis_group group = {.count = 0};
	const struct suspend *suspend = attempt->suspend;
	const struct stasis_driver *driver = &attempt->work->hands.driver;
	char version[STASIS_VERSION_BYTES];
	const struct stasis_group_plan plan = {
		.driver = driver,
		.watch = &attempt->work->watch,
		.operation = suspend->capture,
		.pids = pids,
		.count = count,
	};
	struct stasis_capture_options options = {
		.image_path = suspend->image_path,
		.origin = {.store = STASIS_IMAGE_STORE_NATIVE,
			   .tool_version = stasis_version(),
			   .driver_version = stasis_kernel_module_version(version),
			   .cuda_version = (uint32_t)driver->cuda_version,
			   .capture_id = &suspend->capture},
		.gate_ns = suspend->options.gate_timeout_ns,
		.chunk_bytes = suspend->options.chunk_bytes ? suspend->options.chunk_bytes
							    : STASIS_CHUNK_BYTES_DEFAULT,
		.transfer = {.store = (enum stasis_transfer_store)suspend->options.file_store,
			     .workers = suspend->options.workers},
		.is_in_memory = suspend->is_in_memory,
		.keeper_fd = suspend->keeper_fd,
		.census = census,
		.census_data = attempt,
	};

	if (host_bytes_read(suspend, &options.host_bytes, err) != 0 ||
	    stasis_group_open(&group, &plan, err) != 0)
		return -1;
	if (*version == '\0')
		options.origin.driver_version = NULL;
	return stasis_group_capture(&group, &options, err);
}

/* ---- trees ---- */

/* New processes, and some that use CUDA only now, may be there at any time until all gates are shut. */
static int tree_census(void *data, struct stasis_error *err)
{
	struct attempt *attempt = data;
	const struct stasis_suspend_options *options = &attempt->suspend->options;
	CLEANUP(lib_tree) struct stasis_lib_tree now = {.running = {.count = 0}};
	char name[STASIS_PROCESS_NAME_BYTES];
	int32_t newcomer;

	if (stasis_lib_tree_read(&attempt->work->hands.driver, options->pids, options->count, &now,
				 err) != 0)
		return -1;
	newcomer = stasis_lib_tree_newcomer(&attempt->tree, &now);
	attempt->is_outgrown = newcomer != 0;
	if (!attempt->is_outgrown)
		return 0;
	stasis_process_name(newcomer, name);
	return stasis_fail(err, STASIS_REFUSED,
			   "process %d (%s) of the tree has begun to use CUDA meanwhile",
			   (int)newcomer, name);
}

static void tree_tell(const struct attempt *attempt, const char *key,
		      const struct stasis_lib_pids *pids)
{
	for (size_t i = 0; i < pids->count; i++)
		stasis_lib_event(&attempt->work->hands.channel->sink, key, "%d",
				 (int)pids->items[i]);
}

static int tree_capture(struct attempt *attempt, struct stasis_error *err)
{
	const struct stasis_suspend_options *options = &attempt->suspend->options;

	if (stasis_lib_tree_read(&attempt->work->hands.driver, options->pids, options->count,
				 &attempt->tree, err) != 0)
		return -1;
	if (attempt->tree.running.count == 0)
		return stasis_fail(err, STASIS_REFUSED,
				   "none of the %zu processes of the tree of process %d uses CUDA "
				   "and runs",
				   attempt->tree.others.count + attempt->tree.suspended.count,
				   (int)options->pids[0]);
	if (group_capture(attempt, attempt->tree.running.items, attempt->tree.running.count,
			  tree_census, err) != 0) {
		if (attempt->is_outgrown)
			stasis_lib_channel_fact(attempt->work->hands.channel,
						STASIS_LIB_FACT_OUTGROWN, "");
		return -1;
	}
	tree_tell(attempt, "suspended_pid", &attempt->tree.running);
	tree_tell(attempt, "left_suspended_pid", &attempt->tree.suspended);
	tree_tell(attempt, "without_cuda_pid", &attempt->tree.others);
	return 0;
}

static int attempt_run(struct stasis_lib_group_work *work, const struct suspend *suspend,
		       size_t *ret_count, struct stasis_error *err)
{
	struct attempt attempt = {.work = work, .suspend = suspend};
	const struct stasis_suspend_options *options = &suspend->options;
	int result = options->is_tree
			     ? tree_capture(&attempt, err)
			     : group_capture(&attempt, options->pids, options->count, NULL, err);

	*ret_count = options->is_tree ? attempt.tree.running.count : options->count;
	stasis_lib_tree_free(&attempt.tree);
	return result;
}

/* The worker. */
static int suspend_run(struct stasis_lib_channel *channel, void *argument, struct stasis_error *err)
{
	const struct suspend *suspend = argument;
	struct stasis_lib_group_work work;
	int result = stasis_lib_group_work_init(&work, channel, err);
	size_t count = 0;

	if (result == 0)
		result = attempt_run(&work, suspend, &count, err);
	(void)stasis_fault_point("group_end");
	if (result == 0) {
		stasis_lib_channel_fact(channel, STASIS_LIB_FACT_PUBLISHED, "");
		stasis_lib_event(&channel->sink, "store", "native");
		stasis_lib_event(&channel->sink, "image", "%s", suspend->image_path);
		stasis_lib_event(&channel->sink, "suspended", "%zu", count);
	}
	stasis_lib_group_work_fini(&work);
	return result;
}

static int suspend_supervise(struct stasis_library *library, struct suspend *suspend,
			     struct stasis_lib_knowledge *knowledge, struct stasis_error *err)
{
	const struct stasis_lib_watch watch = {
		.sink = &library->sink,
		.timeout_ns = suspend->options.timeout_ns,
		.cancel_fd = suspend->options.cancel_fd,
		.knowledge = knowledge,
	};
	struct stasis_lib_group_task task = {
		.function = suspend_run,
		.argument = suspend,
		.capture = &suspend->capture,
		.image_path = suspend->image_path,
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

/* A tree that grows is taken again, with more of it, until it stays as it is for as long as shutting the gates takes. */
static int suspend_tries(struct stasis_library *library, struct suspend *suspend,
			 struct stasis_error *err)
{
	for (int try = 1;; try++) {
		struct stasis_lib_knowledge knowledge = {.has_phase = false};
		struct stasis_error failure = STASIS_ERROR_INIT;

		if (stasis_id_random(&suspend->capture, err) != 0 || path_settle(suspend, err) != 0)
			return -1;
		if (suspend_supervise(library, suspend, &knowledge, &failure) == 0)
			return 0;
		if (!knowledge.is_outgrown || failure.status != STASIS_REFUSED ||
		    try == TREE_TRIES) {
			stasis_error_take(err, &failure);
			return -1;
		}
	}
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
		result = suspend_tries(library, suspend, err);
	return stasis_lib_end(library, result);
}
