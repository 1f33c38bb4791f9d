/*
 * See fake_device.h.
 */

#include "fake_device.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "fake_pinned.h"
#include "unit.h"

#include "base/digest.h"

#define ADDRESS_BASE UINT64_C(0x7e9000000000)
#define ADDRESS_STEP (UINT64_C(1) << 36)

enum op_kind { OP_TO_HOST, OP_TO_DEVICE, OP_SET, OP_EVENT };

struct CUctx_st {
	int ordinal;
	uint8_t *bytes;
};

struct CUstream_st {
	struct CUstream_st *next; /* in `all_streams` */
	struct CUctx_st *context;
	uint64_t pending;
	CUresult broken; /* sticky */
	bool is_hung;
	bool is_destroyed;
};

struct CUevent_st {
	struct CUevent_st *next; /* in `all_events` */
	uint64_t pending;
	CUresult broken;
};

struct op {
	struct op *next;
	enum op_kind kind;
	struct CUstream_st *stream;
	struct CUevent_st *event;
	uint8_t *host;
	uint8_t *device;
	size_t bytes;
	struct stasis_digest digest; /* of what is to be copied to the device */
	bool is_to_break;
	bool is_to_hang;
};

/* All below is guarded by `mutex`. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct stasis_driver driver;
static struct CUctx_st contexts[T_FAKE_DEVICES];
static uint64_t device_bytes;
static struct t_fake_faults faults;
static struct {
	uint64_t copies, memsets, records, allocs, streams_made, events_made, contexts_set;
} counts; /* since faults were set */
static struct op *first_op;
static struct op **last_op = &first_op;
static struct op *running_op;
static struct op *hung_ops;
static uint64_t stream_count;
static uint64_t event_count;
static struct CUstream_st *all_streams;
static struct CUevent_st *all_events;
static bool is_held;
static bool is_ending;
static char violation[128];
static pthread_t executor;

static _Thread_local struct CUctx_st *current;

static void violate(const char *text)
{
	if (!violation[0])
		(void)snprintf(violation, sizeof(violation), "%s", text);
}

static bool overlaps(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes)
{
	return a < b + b_bytes && b < a + a_bytes;
}

static bool list_uses(const struct op *op, const uint8_t *memory, size_t bytes)
{
	for (; op; op = op->next) {
		if (op->host && overlaps(op->host, op->bytes, memory, bytes))
			return true;
	}
	return false;
}

static bool is_in_use(const uint8_t *memory, size_t bytes)
{
	return list_uses(first_op, memory, bytes) || list_uses(running_op, memory, bytes) ||
	       list_uses(hung_ops, memory, bytes);
}

/* Carries out a copy without the lock, as a GPU would: the caller must not be in its way. */
static void op_do(struct op *op)
{
	struct stasis_digest digest;

	pthread_mutex_unlock(&mutex);
	if (op->kind == OP_TO_HOST)
		memcpy(op->host, op->device, op->bytes);
	if (op->kind == OP_TO_DEVICE)
		memcpy(op->device, op->host, op->bytes);
	if (op->kind == OP_SET)
		memset(op->device, 0, op->bytes);
	digest = stasis_digest_of(op->device, op->bytes);
	pthread_mutex_lock(&mutex);
	if (op->kind == OP_TO_DEVICE && !stasis_digest_equal(&digest, &op->digest))
		violate("a pinned buffer changed while it was copied to the device");
}

static void op_finish(struct op *op)
{
	struct CUstream_st *stream = op->stream;

	stream->is_hung |= op->is_to_hang;
	if (stream->is_hung) {
		op->next = hung_ops;
		hung_ops = op;
		return;
	}
	if (op->is_to_break)
		stream->broken = CUDA_ERROR_ILLEGAL_ADDRESS;
	else if (stream->broken == CUDA_SUCCESS && op->kind != OP_EVENT)
		op_do(op);
	if (op->event) {
		op->event->broken = stream->broken;
		op->event->pending--;
	}
	stream->pending--;
	free(op);
}

static void *executor_main(void *data)
{
	(void)data;
	pthread_mutex_lock(&mutex);
	for (;;) {
		struct op *op = first_op;

		if (op && !is_held) {
			first_op = op->next;
			if (!first_op)
				last_op = &first_op;
			op->next = NULL;
			running_op = op;
			op_finish(op);
			running_op = NULL;
		} else if (is_ending) {
			break;
		} else {
			(void)pthread_cond_wait(&changed, &mutex);
		}
	}
	pthread_mutex_unlock(&mutex);
	return NULL;
}

static bool hit(uint64_t *counter, uint64_t at)
{
	return ++*counter == at;
}

static CUresult enqueue(const struct op *wanted)
{
	struct op *op;

	if (!wanted->stream || wanted->stream->is_destroyed || wanted->stream->context != current) {
		violate("a call with another context than its stream's, or a stream that ended");
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	op = malloc(sizeof(*op));
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*op = *wanted;
	op->next = NULL;
	op->stream->pending++;
	if (op->event)
		op->event->pending++;
	*last_op = op;
	last_op = &op->next;
	(void)pthread_cond_broadcast(&changed);
	return CUDA_SUCCESS;
}

/* The memory behind a device address of the current context; NULL: not wholly inside it. */
static uint8_t *device_memory(CUdeviceptr address, size_t bytes)
{
	uint64_t offset;

	if (!current)
		return NULL;
	offset = address - (ADDRESS_BASE + (uint64_t)current->ordinal * ADDRESS_STEP);
	if (offset > device_bytes || bytes > device_bytes - offset || bytes == 0)
		return NULL;
	return current->bytes + offset;
}

static CUresult copy_enqueue(enum op_kind kind, uint8_t *host, CUdeviceptr address, size_t bytes,
			     CUstream stream)
{
	struct op op = {
		.kind = kind,
		.stream = stream,
		.host = host,
		.device = device_memory(address, bytes),
		.bytes = bytes,
	};
	CUresult result;

	pthread_mutex_lock(&mutex);
	counts.copies += kind != OP_SET;
	counts.memsets += kind == OP_SET;
	op.is_to_break = counts.copies + counts.memsets == faults.copy_broken;
	op.is_to_hang = counts.copies + counts.memsets == faults.copy_hung;
	if (counts.copies + counts.memsets == faults.copy_cancels) {
		atomic_store(faults.cancel, true);
		is_held = true;
	}
	if (!op.device)
		violate("a copy outside device memory");
	if (host && !t_fake_pinned_holds(host, bytes))
		violate("a copy outside pinned memory");
	if (host && is_in_use(host, bytes))
		violate("a pinned buffer was used for a second copy");
	if (kind == OP_TO_DEVICE)
		op.digest = stasis_digest_of(host, bytes);
	if (!op.device || counts.copies + counts.memsets == faults.copy_refused)
		result = CUDA_ERROR_INVALID_VALUE;
	else
		result = enqueue(&op);
	pthread_mutex_unlock(&mutex);
	return result;
}

static CUresult fake_to_host(void *host, CUdeviceptr address, size_t bytes, CUstream stream)
{
	return copy_enqueue(OP_TO_HOST, host, address, bytes, stream);
}

static CUresult fake_to_device(CUdeviceptr address, const void *host, size_t bytes, CUstream stream)
{
	return copy_enqueue(OP_TO_DEVICE, (uint8_t *)(uintptr_t)host, address, bytes, stream);
}

static CUresult fake_set(CUdeviceptr address, unsigned char value, size_t bytes, CUstream stream)
{
	assert_int_equal(value, 0);
	return copy_enqueue(OP_SET, NULL, address, bytes, stream);
}

static CUresult fake_context_set(CUcontext context)
{
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&mutex);
	if (context && hit(&counts.contexts_set, faults.context_refused))
		result = CUDA_ERROR_INVALID_CONTEXT;
	else
		current = context;
	pthread_mutex_unlock(&mutex);
	return result;
}

static CUresult fake_stream_create(CUstream *ret_stream, unsigned int flags)
{
	CUresult result = CUDA_ERROR_LAUNCH_FAILED;

	pthread_mutex_lock(&mutex);
	if (flags != CU_STREAM_NON_BLOCKING)
		violate("a stream that waits for the default stream");
	if (!hit(&counts.streams_made, faults.stream_refused)) {
		*ret_stream = calloc(1, sizeof(**ret_stream));
		(*ret_stream)->context = current;
		(*ret_stream)->next = all_streams;
		all_streams = *ret_stream;
		stream_count++;
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&mutex);
	return result;
}

static CUresult fake_stream_destroy(CUstream stream)
{
	pthread_mutex_lock(&mutex);
	if (stream->pending || stream->is_destroyed)
		violate("a stream was destroyed in use, or twice");
	stream->is_destroyed = true;
	stream_count--;
	pthread_mutex_unlock(&mutex);
	return CUDA_SUCCESS;
}

static CUresult fake_stream_query(CUstream stream)
{
	CUresult result;

	pthread_mutex_lock(&mutex);
	if (faults.copy_cancels) {
		is_held = false;
		(void)pthread_cond_broadcast(&changed);
	}
	result = stream->broken != CUDA_SUCCESS ? stream->broken
		 : stream->pending > 0          ? CUDA_ERROR_NOT_READY
						: CUDA_SUCCESS;
	pthread_mutex_unlock(&mutex);
	return result;
}

static CUresult fake_event_create(CUevent *ret_event, unsigned int flags)
{
	CUresult result = CUDA_ERROR_LAUNCH_FAILED;

	(void)flags;
	pthread_mutex_lock(&mutex);
	if (!hit(&counts.events_made, faults.event_refused)) {
		*ret_event = calloc(1, sizeof(**ret_event));
		(*ret_event)->next = all_events;
		all_events = *ret_event;
		event_count++;
		result = CUDA_SUCCESS;
	}
	pthread_mutex_unlock(&mutex);
	return result;
}

static CUresult fake_event_destroy(CUevent event)
{
	pthread_mutex_lock(&mutex);
	if (event->pending)
		violate("an event was destroyed in use");
	event_count--;
	pthread_mutex_unlock(&mutex);
	return CUDA_SUCCESS;
}

static CUresult fake_event_record(CUevent event, CUstream stream)
{
	struct op op = {.kind = OP_EVENT, .stream = stream, .event = event};
	CUresult result = CUDA_ERROR_LAUNCH_FAILED;

	pthread_mutex_lock(&mutex);
	if (!hit(&counts.records, faults.record_refused))
		result = enqueue(&op);
	pthread_mutex_unlock(&mutex);
	return result;
}

static CUresult fake_event_query(CUevent event)
{
	CUresult result;

	pthread_mutex_lock(&mutex);
	result = event->pending > 0 ? CUDA_ERROR_NOT_READY : event->broken;
	pthread_mutex_unlock(&mutex);
	return result;
}

/* `memory` NULL: of our own. */
static CUresult pin(uint8_t *memory, size_t bytes, bool is_portable, uint8_t **ret_memory)
{
	counts.allocs++;
	if (!is_portable)
		violate("pinned memory that only one context can use");
	if (faults.alloc_refused && counts.allocs >= faults.alloc_refused)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (counts.allocs == faults.alloc_broken)
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	*ret_memory = t_fake_pinned_add(memory, bytes);
	return *ret_memory ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

static CUresult fake_host_alloc(void **ret_memory, size_t bytes, unsigned int flags)
{
	uint8_t *memory = NULL;
	CUresult result;

	pthread_mutex_lock(&mutex);
	result = pin(NULL, bytes, flags & CU_MEMHOSTALLOC_PORTABLE, &memory);
	pthread_mutex_unlock(&mutex);
	if (result == CUDA_SUCCESS)
		*ret_memory = memory;
	return result;
}

static CUresult fake_host_register(void *memory, size_t bytes, unsigned int flags)
{
	CUresult result = CUDA_ERROR_NOT_SUPPORTED;
	uint8_t *unused;

	pthread_mutex_lock(&mutex);
	if (!faults.is_register_unsupported)
		result = pin(memory, bytes, flags & CU_MEMHOSTREGISTER_PORTABLE, &unused);
	pthread_mutex_unlock(&mutex);
	return result;
}

static CUresult unpin(uint8_t *memory, bool is_registered)
{
	bool is_done;

	pthread_mutex_lock(&mutex);
	if (is_in_use(memory, t_fake_pinned_size(memory)))
		violate("a pinned buffer was freed in use");
	is_done = t_fake_pinned_remove(memory, is_registered);
	if (!is_done)
		violate("memory was unpinned that is not pinned, or not so");
	pthread_mutex_unlock(&mutex);
	return is_done ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult fake_host_free(void *memory)
{
	return unpin(memory, false);
}

static CUresult fake_host_unregister(void *memory)
{
	return unpin(memory, true);
}

static void driver_fill(void)
{
	driver.cuCtxSetCurrent = fake_context_set;
	driver.cuStreamCreate = fake_stream_create;
	driver.cuStreamDestroy = fake_stream_destroy;
	driver.cuStreamQuery = fake_stream_query;
	driver.cuEventCreate = fake_event_create;
	driver.cuEventDestroy = fake_event_destroy;
	driver.cuEventRecord = fake_event_record;
	driver.cuEventQuery = fake_event_query;
	driver.cuMemHostAlloc = fake_host_alloc;
	driver.cuMemFreeHost = fake_host_free;
	driver.cuMemHostRegister = fake_host_register;
	driver.cuMemHostUnregister = fake_host_unregister;
	driver.cuMemcpyDtoHAsync = fake_to_host;
	driver.cuMemcpyHtoDAsync = fake_to_device;
	driver.cuMemsetD8Async = fake_set;
}

const struct stasis_driver *t_fake_start(uint64_t bytes)
{
	static const struct t_fake_faults none;

	t_fake_set_faults(&none);
	device_bytes = bytes;
	is_ending = false;
	is_held = false;
	violation[0] = '\0';
	for (int i = 0; i < T_FAKE_DEVICES; i++) {
		contexts[i].ordinal = i;
		contexts[i].bytes = calloc(1, bytes + 1);
		assert_non_null(contexts[i].bytes);
	}
	driver_fill();
	assert_int_equal(pthread_create(&executor, NULL, executor_main, NULL), 0);
	return &driver;
}

/* Streams and events are kept to the end, so that one used after its end is noticed; so is what was leaked. */
static void all_free(void)
{
	while (all_streams) {
		struct CUstream_st *stream = all_streams;

		all_streams = stream->next;
		free(stream);
	}
	while (all_events) {
		struct CUevent_st *event = all_events;

		all_events = event->next;
		free(event);
	}
	while (hung_ops) {
		struct op *op = hung_ops;

		hung_ops = op->next;
		free(op);
	}
	t_fake_pinned_clear();
	stream_count = 0;
	event_count = 0;
}

void t_fake_stop_leaking(uint64_t expected_bytes)
{
	pthread_mutex_lock(&mutex);
	is_held = false;
	is_ending = true;
	(void)pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&mutex);
	assert_int_equal(pthread_join(executor, NULL), 0);
	for (int i = 0; i < T_FAKE_DEVICES; i++)
		free(contexts[i].bytes);
	if (violation[0])
		print_error("the fake driver saw: %s\n", violation);
	assert_int_equal(violation[0], 0);
	assert_int_equal(t_fake_pinned_bytes(), expected_bytes);
	if (expected_bytes == 0) {
		assert_int_equal(stream_count, 0);
		assert_int_equal(event_count, 0);
	}
	all_free();
}

void t_fake_stop(void)
{
	t_fake_stop_leaking(0);
}

void t_fake_set_faults(const struct t_fake_faults *wanted_faults)
{
	pthread_mutex_lock(&mutex);
	faults = *wanted_faults;
	memset(&counts, 0, sizeof(counts));
	pthread_mutex_unlock(&mutex);
}

CUcontext t_fake_context(int ordinal)
{
	return &contexts[ordinal];
}

CUdeviceptr t_fake_address(int ordinal, uint64_t offset)
{
	return ADDRESS_BASE + (uint64_t)ordinal * ADDRESS_STEP + offset;
}

uint8_t *t_fake_bytes(int ordinal)
{
	return contexts[ordinal].bytes;
}

static uint64_t counter_read(const uint64_t *counter)
{
	uint64_t value;

	pthread_mutex_lock(&mutex);
	value = *counter;
	pthread_mutex_unlock(&mutex);
	return value;
}

uint64_t t_fake_copy_count(void)
{
	return counter_read(&counts.copies);
}

uint64_t t_fake_memset_count(void)
{
	return counter_read(&counts.memsets);
}
