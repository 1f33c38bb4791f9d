#include "operation.h"

#include <stdlib.h>

#include "address.h"
#include "context.h"
#include "memory.h"
#include "peer.h"
#include "storage.h"
#include "stream.h"

/* A view: what the target has on one GPU. */
struct view {
	int ordinal;
	uint64_t start; /* 0: not yet reserved */
	uint64_t bytes;
	uint64_t mapped_bytes;
	struct sim_stream *stream;
	uint64_t stream_id;
};

struct operation {
	struct operation *next;
	pid_t pid;
	int fd;
	size_t file_count;
	struct sim_memory **files;
	size_t piece_count;
	struct sim_piece *pieces;
	size_t view_count;
	struct view views[SIM_DEVICES_MAX];
	CUcheckpointCustomStorageInfo info;
	CUcheckpointCustomStoragePerDeviceData data[SIM_DEVICES_MAX];
};

static struct sim_mutex operations_mutex = SIM_MUTEX_INITIALIZER;
static struct operation *operations GUARDED_BY(operations_mutex);
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* A child that kept the connections would hide its parent's death from the targets. */
static void forget_in_child(void) NO_THREAD_SAFETY_ANALYSIS
{
	operations_mutex = (struct sim_mutex)SIM_MUTEX_INITIALIZER;
	for (struct operation *operation = operations; operation; operation = operation->next)
		cleanup_fd(&operation->fd);
	operations = NULL;
}

static void watch_forks(void)
{
	if (pthread_atfork(NULL, NULL, forget_in_child) != 0)
		sim_die("pthread_atfork failed");
}

static void unmap_views_locked(struct operation *operation)
{
	for (size_t i = 0; i < operation->view_count; i++) {
		struct view *view = &operation->views[i];

		if (view->mapped_bytes != 0)
			(void)sim_address_unmap(view->start, view->mapped_bytes);
		if (view->start != 0)
			(void)sim_address_free(view->start, view->bytes, false);
		view->mapped_bytes = 0;
		view->start = 0;
	}
}

/* Whether the application has neither destroyed it nor ended its context. */
static bool stream_stands_locked(const struct view *view)
{
	return view->stream != NULL && sim_set_has(&sim_core.streams, view->stream) &&
	       view->stream->id == view->stream_id;
}

static void operation_free(struct operation *operation)
{
	sim_core_lock();
	unmap_views_locked(operation);
	for (size_t i = 0; i < operation->view_count; i++)
		if (stream_stands_locked(&operation->views[i]))
			sim_stream_drop(operation->views[i].stream);
	for (size_t i = 0; operation->files != NULL && i < operation->file_count; i++)
		if (operation->files[i] != NULL)
			sim_memory_unref(operation->files[i]);
	sim_core_unlock();
	cleanup_fd(&operation->fd);
	free(operation->files);
	free(operation->pieces);
	free(operation);
}

static int ordinal_of(uint32_t physical)
{
	for (int i = 0; i < sim_core.device_count; i++)
		if (sim_core.devices[i].physical == (int)physical)
			return i;
	return -1;
}

static CUresult receive_table(struct operation *operation, const struct sim_reply *reply, int table)
{
	size_t bytes = reply->piece_count * sizeof(*operation->pieces);

	operation->piece_count = reply->piece_count;
	operation->file_count = reply->file_count;
	operation->pieces = calloc(reply->piece_count + 1, sizeof(*operation->pieces));
	operation->files = calloc(reply->file_count + 1, sizeof(struct sim_memory *));
	if (operation->pieces == NULL || operation->files == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (sim_storage_read(table, 0, operation->pieces, bytes) != 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	for (size_t i = 0; i < operation->piece_count; i++)
		if (operation->pieces[i].file >= operation->file_count)
			return CUDA_ERROR_OPERATING_SYSTEM;
	return CUDA_SUCCESS;
}

static CUresult begin_on_target(struct operation *operation, const struct sim_request *request)
{
	struct sim_reply reply;
	struct sim_descriptors table = {0};
	CUresult result = sim_peer_connect(operation->pid, &operation->fd);

	if (result == CUDA_SUCCESS)
		result = sim_peer_ask(operation->fd, request, &reply, &table);
	if (result == CUDA_SUCCESS && table.count != 1)
		result = CUDA_ERROR_OPERATING_SYSTEM;
	if (result == CUDA_SUCCESS)
		result = receive_table(operation, &reply, table.fds[0]);
	sim_peer_drop(&table);
	return result;
}

/* One memory object a file, as long as the pieces in it need; takes the descriptor. */
static CUresult adopt_file(struct operation *operation, size_t index, int fd)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
	uint64_t bytes = 0;
	CUresult result;

	properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	for (size_t i = 0; i < operation->piece_count; i++) {
		const struct sim_piece *piece = &operation->pieces[i];

		if (piece->file != index)
			continue;
		properties.location.id = ordinal_of(piece->device);
		if (piece->offset + piece->bytes > bytes)
			bytes = piece->offset + piece->bytes;
	}
	if (bytes == 0) {
		(void)close(fd);
		return CUDA_SUCCESS;
	}
	sim_core_lock();
	result = sim_memory_adopt(SIM_MEMORY_IMPORTED, &properties, bytes, 0, fd, -1,
				  &operation->files[index]);
	sim_core_unlock();
	return result;
}

static CUresult fetch_files(struct operation *operation)
{
	for (size_t first = 0; first < operation->file_count;) {
		struct sim_request request = {
			.kind = SIM_REQUEST_FILES,
			.first_file = (uint32_t)first,
		};
		struct sim_reply reply;
		struct sim_descriptors files = {0};
		CUresult result = sim_peer_ask(operation->fd, &request, &reply, &files);

		for (size_t i = 0; i < files.count && result == CUDA_SUCCESS; i++) {
			result = adopt_file(operation, first + i, files.fds[i]);
			files.fds[i] = -1;
		}
		if (result == CUDA_SUCCESS && files.count == 0)
			result = CUDA_ERROR_OPERATING_SYSTEM;
		first += files.count;
		if (result != CUDA_SUCCESS) {
			sim_peer_drop(&files);
			return result;
		}
	}
	return CUDA_SUCCESS;
}

/* Pieces of one GPU stand together: each change of it is the next view. */
static CUresult lay_out_views(struct operation *operation)
{
	int last = -1;

	for (size_t i = 0; i < operation->piece_count; i++) {
		const struct sim_piece *piece = &operation->pieces[i];
		int ordinal = ordinal_of(piece->device);

		if (ordinal < 0)
			return CUDA_ERROR_INVALID_DEVICE;
		if (ordinal != last) {
			if (operation->view_count == SIM_DEVICES_MAX)
				return CUDA_ERROR_OPERATING_SYSTEM;
			operation->views[operation->view_count++].ordinal = ordinal;
		}
		operation->views[operation->view_count - 1].bytes += piece->bytes;
		last = ordinal;
	}
	return CUDA_SUCCESS;
}

static CUresult open_view_locked(struct view *view)
{
	int home = sim_breaks("custom_stream_names_device") ? 0 : view->ordinal;
	struct sim_context *primary = sim_core.devices[home].primary;
	CUresult result = sim_context_check(primary);

	if (result != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_CONTEXT;
	result = sim_stream_new(primary, CU_STREAM_NON_BLOCKING, 0, &view->stream);
	if (result != CUDA_SUCCESS)
		return result;
	view->stream_id = view->stream->id;
	return sim_address_reserve(view->bytes, SIM_GRANULARITY, 0, false, &view->start);
}

static CUresult map_piece_locked(struct operation *operation, struct view *view,
				 const struct sim_piece *piece)
{
	struct sim_range *range = NULL;
	CUresult result =
		sim_address_map(view->start + view->mapped_bytes, piece->bytes,
				operation->files[piece->file], piece->offset, true, &range);

	if (result != CUDA_SUCCESS)
		return result;
	view->mapped_bytes += piece->bytes;
	range->device_rights[view->ordinal] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return CUDA_SUCCESS;
}

static CUresult open_views(struct operation *operation)
{
	CUresult result = lay_out_views(operation);
	struct view *view = operation->views;

	sim_core_lock();
	for (size_t i = 0; i < operation->view_count && result == CUDA_SUCCESS; i++)
		result = open_view_locked(&operation->views[i]);
	for (size_t i = 0; i < operation->piece_count && result == CUDA_SUCCESS; i++) {
		if (view->mapped_bytes == view->bytes)
			view++;
		result = map_piece_locked(operation, view, &operation->pieces[i]);
	}
	sim_core_unlock();
	return result;
}

static void describe(struct operation *operation)
{
	static uint64_t handle_count GUARDED_BY(operations_mutex);

	for (size_t i = 0; i < operation->view_count; i++) {
		const struct view *view = &operation->views[i];

		operation->data[i] = (CUcheckpointCustomStoragePerDeviceData){
			.devPtr = view->start,
			.size = view->bytes,
			.stream = (CUstream)(void *)view->stream,
		};
	}
	sim_mutex_lock(&operations_mutex);
	/* No address: a handle is never the same again. */
	handle_count++;
	operation->info.handle = (CUcheckpointOperationHandle)(uintptr_t)(handle_count << 12);
	operation->info.perDeviceData = operation->view_count ? operation->data : NULL;
	operation->info.deviceCount = (unsigned int)operation->view_count;
	operation->next = operations;
	operations = operation;
	sim_mutex_unlock(&operations_mutex);
}

static CUresult say_begun(const struct operation *operation)
{
	struct sim_request request = {.kind = SIM_REQUEST_BEGUN};
	struct sim_reply reply;

	return sim_peer_ask(operation->fd, &request, &reply, NULL);
}

CUresult sim_operation_begin(pid_t pid, const struct sim_request *request,
			     CUcheckpointCustomStorageInfo **ret_info)
{
	struct operation *operation = calloc(1, sizeof(*operation));
	CUresult result;

	(void)pthread_once(&fork_once, watch_forks);
	if (operation == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	operation->pid = pid;
	operation->fd = -1;
	result = begin_on_target(operation, request);
	if (result == CUDA_SUCCESS)
		result = fetch_files(operation);
	if (result == CUDA_SUCCESS)
		result = open_views(operation);
	if (result == CUDA_SUCCESS)
		result = say_begun(operation);
	if (result != CUDA_SUCCESS) {
		operation_free(operation);
		return result;
	}
	describe(operation);
	*ret_info = &operation->info;
	return CUDA_SUCCESS;
}

static struct operation *operation_take(CUcheckpointOperationHandle handle)
{
	struct operation **link;
	struct operation *operation;

	sim_mutex_lock(&operations_mutex);
	link = &operations;
	while (*link != NULL && (*link)->info.handle != handle)
		link = &(*link)->next;
	operation = *link;
	if (operation != NULL)
		*link = operation->next;
	sim_mutex_unlock(&operations_mutex);
	return operation;
}

static void operation_put_back(struct operation *operation)
{
	sim_mutex_lock(&operations_mutex);
	operation->next = operations;
	operations = operation;
	sim_mutex_unlock(&operations_mutex);
}

static CUresult synchronize_locked(const struct view *view)
{
	if (!stream_stands_locked(view))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (view->stream->capture != NULL)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	sim_stream_wait(view->stream);
	return sim_context_check(view->stream->context);
}

static CUresult synchronize(const struct operation *operation)
{
	CUresult result = CUDA_SUCCESS;

	sim_core_lock();
	for (size_t i = 0; i < operation->view_count && result == CUDA_SUCCESS; i++)
		result = synchronize_locked(&operation->views[i]);
	sim_core_unlock();
	return result;
}

static CUresult say_complete(struct operation *operation)
{
	struct sim_request request = {.kind = SIM_REQUEST_COMPLETE};
	struct sim_reply reply;

	sim_core_lock();
	unmap_views_locked(operation);
	sim_core_unlock();
	return sim_peer_ask(operation->fd, &request, &reply, NULL);
}

CUresult sim_operation_complete(CUcheckpointOperationHandle handle)
{
	struct operation *operation = operation_take(handle);
	CUresult result;

	if (operation == NULL)
		return sim_breaks("custom_completes_once") && handle != NULL
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_INVALID_HANDLE;
	result = synchronize(operation);
	if (result != CUDA_SUCCESS) {
		operation_put_back(operation);
		return result;
	}
	result = say_complete(operation);
	operation_free(operation);
	return result;
}

pid_t sim_operation_pid(CUcheckpointOperationHandle handle)
{
	pid_t pid = 0;

	sim_mutex_lock(&operations_mutex);
	for (struct operation *operation = operations; operation; operation = operation->next)
		if (operation->info.handle == handle)
			pid = operation->pid;
	sim_mutex_unlock(&operations_mutex);
	return pid;
}
