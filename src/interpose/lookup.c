/*
 * The driver's and the runtime library's own lookups: what they find is replaced as what dlsym finds is.
 * Results, statuses and failures stay what they were; what was not found stays so.
 *
 * The runtime's lookups took three arguments in CUDA 11 and take four since. One argument more than a
 * function takes does no harm, and we look at none but the output, so the version need not be known.
 */

#include "driver/abi_enums.h"
#include "interpose/resolve.h"
#include "interpose/signature.h"

#include <string.h>

typedef int lookup4_function(const char *, void **, int, uint64_t);
typedef int lookup5_function(const char *, void **, int, uint64_t, void *);

static int found(int result, const char *name, void **ret_entry)
{
	if (result == CUDA_SUCCESS && ret_entry && *ret_entry)
		*ret_entry = stasis_resolve_replace(*ret_entry, name);
	return result;
}

static void *target_next(enum stasis_entry entry)
{
	void *target =
		atomic_load_explicit(&stasis_resolve_targets.next[entry], memory_order_acquire);

	return target ? target : stasis_resolve_next(entry);
}

static int lookup4(lookup4_function *target, const char *name, void **ret_entry, int version,
		   uint64_t flags)
{
	if (!target)
		return CUDA_ERROR_NOT_FOUND;
	return found(target(name, ret_entry, version, flags), name, ret_entry);
}

static int lookup5(lookup5_function *target, const char *name, void **ret_entry, int version,
		   uint64_t flags, void *ret_status)
{
	if (!target)
		return CUDA_ERROR_NOT_FOUND;
	return found(target(name, ret_entry, version, flags, ret_status), name, ret_entry);
}

PUBLIC int cuGetProcAddress(const char *name, void **ret_entry, int version, uint64_t flags);
PUBLIC int cuGetProcAddress(const char *name, void **ret_entry, int version, uint64_t flags)
{
	return lookup4((lookup4_function *)target_next(STASIS_ENTRY_cuGetProcAddress), name,
		       ret_entry, version, flags);
}

int stasis_lookup_words4(const char *name, void **ret_entry, int version, uint64_t flags)
{
	return lookup4((lookup4_function *)atomic_load(
			       &stasis_resolve_targets.driver[STASIS_ENTRY_cuGetProcAddress]),
		       name, ret_entry, version, flags);
}

#define LOOKUP5(elf, given)                                                                        \
	PUBLIC int elf(const char *name, void **ret_entry, int version, uint64_t flags,            \
		       void *ret_status);                                                          \
	PUBLIC int elf(const char *name, void **ret_entry, int version, uint64_t flags,            \
		       void *ret_status)                                                           \
	{                                                                                          \
		return lookup5((lookup5_function *)target_next(STASIS_ENTRY_##elf), name,          \
			       ret_entry, version, flags, ret_status);                             \
	}                                                                                          \
	int given(const char *name, void **ret_entry, int version, uint64_t flags,                 \
		  void *ret_status)                                                                \
	{                                                                                          \
		return lookup5((lookup5_function *)atomic_load(                                    \
				       &stasis_resolve_targets.driver[STASIS_ENTRY_##elf]),        \
			       name, ret_entry, version, flags, ret_status);                       \
	}

LOOKUP5(cuGetProcAddress_v2, stasis_lookup_words5)
LOOKUP5(cuGetProcAddress_v2_ptsz, stasis_lookup_words5_ptsz)

/* The runtime's lookups as numbers. */
#define NUMBER(elf, signature) RUNTIME_##elf,
enum runtime_lookup { STASIS_RUNTIME_SYMBOLS(NUMBER) RUNTIME_COUNT };

#define RUNTIME_NAME(elf, signature) [RUNTIME_##elf] = #elf,
static const char *const runtime_names[RUNTIME_COUNT] = {STASIS_RUNTIME_SYMBOLS(RUNTIME_NAME)};

/* The libraries that wrappers were given out for. */
#define RUNTIMES(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define ONE(index) +1
enum { RUNTIMES_MAX = 0 RUNTIMES(ONE) };

static struct {
	_Atomic(const void *) base;
	_Atomic(void *) targets[RUNTIME_COUNT];
} runtimes[RUNTIMES_MAX];

typedef int runtime_W4(STASIS_PARAMETERS_W4);
typedef int runtime_W5(STASIS_PARAMETERS_W5);

/* a: the name, b: the output, in all of them. Errors of the runtime count as the driver's: 0 is success. */
#define RUNTIME_CALL(signature, target)                                                            \
	{                                                                                          \
		runtime_##signature *call = (runtime_##signature *)(target);                       \
		int result = CUDA_ERROR_NOT_FOUND;                                                 \
                                                                                                   \
		if (call)                                                                          \
			result = found(call(STASIS_ARGUMENTS_##signature), (const char *)a,        \
				       (void **)b);                                                \
		return result;                                                                     \
	}

#define RUNTIME_EXPORTED(elf, signature)                                                           \
	PUBLIC int elf(STASIS_PARAMETERS_##signature);                                             \
	PUBLIC int elf(STASIS_PARAMETERS_##signature)                                              \
		RUNTIME_CALL(signature, stasis_resolve_runtime(#elf, __builtin_return_address(0)))

STASIS_RUNTIME_SYMBOLS(RUNTIME_EXPORTED)

#define RUNTIME_GIVEN(elf, signature, index)                                                       \
	static int given_##index##_##elf(STASIS_PARAMETERS_##signature)                            \
		RUNTIME_CALL(signature, atomic_load(&runtimes[index].targets[RUNTIME_##elf]))

#define RUNTIME_OF(index)                                                                          \
	RUNTIME_GIVEN(cudaGetDriverEntryPoint, W4, index)                                          \
	RUNTIME_GIVEN(cudaGetDriverEntryPoint_ptsz, W4, index)                                     \
	RUNTIME_GIVEN(cudaGetDriverEntryPointByVersion, W5, index)                                 \
	RUNTIME_GIVEN(cudaGetDriverEntryPointByVersion_ptsz, W5, index)

RUNTIMES(RUNTIME_OF)

#define ROW(index)                                                                                 \
	{(void *)given_##index##_cudaGetDriverEntryPoint,                                          \
	 (void *)given_##index##_cudaGetDriverEntryPoint_ptsz,                                     \
	 (void *)given_##index##_cudaGetDriverEntryPointByVersion,                                 \
	 (void *)given_##index##_cudaGetDriverEntryPointByVersion_ptsz},

static void *const given[RUNTIMES_MAX][RUNTIME_COUNT] = {RUNTIMES(ROW)};

/* The library's index, which it takes if it has none; RUNTIMES_MAX: all are taken. */
static int runtime_index(const void *base)
{
	for (int i = 0; i < RUNTIMES_MAX; i++) {
		const void *taken = NULL;

		if (atomic_compare_exchange_strong(&runtimes[i].base, &taken, base) ||
		    taken == base)
			return i;
	}
	return RUNTIMES_MAX;
}

void *stasis_lookup_runtime(const void *base, void *address, const char *name)
{
	int lookup = 0;
	int index;

	while (lookup < RUNTIME_COUNT && strcmp(runtime_names[lookup], name) != 0)
		lookup++;
	if (lookup == RUNTIME_COUNT)
		return address;
	index = runtime_index(base);
	if (index == RUNTIMES_MAX)
		return address;
	atomic_store(&runtimes[index].targets[lookup], address);
	return given[index][lookup];
}
