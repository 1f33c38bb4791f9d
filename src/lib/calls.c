/*
 * See calls.h.
 */

#include "lib/calls.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>

/* clang-format off */

/* X(entry, parameters, arguments): the calls that can block, as the driver's table has them. */
#define NOTED_CALLS(X) \
	X(cuInit, (unsigned int a), (a)) \
	X(cuDevicePrimaryCtxRetain, (CUcontext *a, CUdevice b), (a, b)) \
	X(cuDevicePrimaryCtxRelease, (CUdevice a), (a)) \
	X(cuMemGetInfo, (size_t *a, size_t *b), (a, b)) \
	X(cuMemHostAlloc, (void **a, size_t b, unsigned int c), (a, b, c)) \
	X(cuMemFreeHost, (void *a), (a)) \
	X(cuStreamCreate, (CUstream *a, unsigned int b), (a, b)) \
	X(cuCheckpointProcessGetState, (int a, CUprocessState *b), (a, b)) \
	X(cuCheckpointProcessLock, (int a, CUcheckpointLockArgs *b), (a, b)) \
	X(cuCheckpointProcessCheckpoint, (int a, CUcheckpointCheckpointArgs *b), (a, b)) \
	X(cuCheckpointProcessRestore, (int a, CUcheckpointRestoreArgs *b), (a, b)) \
	X(cuCheckpointProcessUnlock, (int a, CUcheckpointUnlockArgs *b), (a, b)) \
	X(cuCheckpointOperationComplete, (CUcheckpointOperationHandle a), (a))

/* clang-format on */

enum noted_call {
	CALL_NONE,
#define CALL_NUMBER(entry, parameters, arguments) CALL_##entry,
	NOTED_CALLS(CALL_NUMBER)
#undef CALL_NUMBER
};

static const char *const names[] = {[CALL_NONE] = NULL,
#define CALL_NAME(entry, parameters, arguments) [CALL_##entry] = #entry,
				    NOTED_CALLS(CALL_NAME)
#undef CALL_NAME
};

/* Set once, before any other thread is there. */
static struct {
	struct stasis_driver real;
	stasis_lib_call_word *word;
	pthread_t thread;
} notes;

static bool call_enter(enum noted_call call)
{
	bool is_ours = pthread_equal(notes.thread, pthread_self()) != 0;

	if (is_ours)
		atomic_store(notes.word, (unsigned int)call);
	return is_ours;
}

static void call_leave(bool is_ours)
{
	if (is_ours)
		atomic_store(notes.word, (unsigned int)CALL_NONE);
}

#define CALL_WRAPPER(entry, parameters, arguments)                                                 \
	static CUresult CUDAAPI noted_##entry parameters                                           \
	{                                                                                          \
		bool is_ours = call_enter(CALL_##entry);                                           \
		CUresult result = notes.real.entry arguments;                                      \
                                                                                                   \
		call_leave(is_ours);                                                               \
		return result;                                                                     \
	}
NOTED_CALLS(CALL_WRAPPER)
#undef CALL_WRAPPER

stasis_lib_call_word *stasis_lib_call_word_new(void)
{
	void *memory = mmap(NULL, sizeof(stasis_lib_call_word), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void stasis_lib_call_word_free(stasis_lib_call_word *word)
{
	if (word)
		(void)munmap(word, sizeof(*word));
}

const char *stasis_lib_call_name(const stasis_lib_call_word *word)
{
	unsigned int call = word ? atomic_load(word) : CALL_NONE;

	return call < ARRAY_COUNT(names) ? names[call] : NULL;
}

void stasis_lib_calls_note(struct stasis_driver *driver, stasis_lib_call_word *word)
{
	if (!word)
		return;
	notes.real = *driver;
	notes.word = word;
	notes.thread = pthread_self();
	/* An entry that the driver has not got stays missing. */
#define CALL_PUT(entry, parameters, arguments) driver->entry = driver->entry ? noted_##entry : NULL;
	NOTED_CALLS(CALL_PUT)
#undef CALL_PUT
}
