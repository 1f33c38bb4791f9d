/*
 * The wrappers, generated from symbols.h: enter the gate, call what the entry leads to, or its handler, leave.
 * No logic. Each entry has two, with a target each; resolve.h says why.
 */

#include "driver/abi_enums.h"
#include "interpose/gate.h"
#include "interpose/resolve.h"
#include "interpose/signature.h"

/* The target is found before the gate is entered: finding it may wait for the loader's lock. */
#define BODY(elf, held_at, signature, resolve)                                                     \
	{                                                                                          \
		int (*target)(STASIS_PARAMETERS_##signature) = resolve(STASIS_ENTRY_##elf);        \
		int result = CUDA_ERROR_NOT_FOUND;                                                 \
                                                                                                   \
		if (__builtin_expect(target != NULL, 1)) {                                         \
			struct stasis_gate_mark *mark =                                            \
				stasis_gate_enter(STASIS_ENTRY_##elf, held_at);                    \
                                                                                                   \
			result = target(STASIS_ARGUMENTS_##signature);                             \
			stasis_gate_leave(mark);                                                   \
		}                                                                                  \
		return result;                                                                     \
	}

/* A call that another call makes in turn is the driver's own or another interposer's: nothing new to record. */
#define HANDLED_BODY(elf, held_at, signature, resolve)                                             \
	{                                                                                          \
		int (*target)(STASIS_PARAMETERS_##signature) = resolve(STASIS_ENTRY_##elf);        \
		int (*handle)(void *, STASIS_PARAMETERS_##signature) =                             \
			(void *)stasis_handle_##elf;                                               \
		int result = CUDA_ERROR_NOT_FOUND;                                                 \
                                                                                                   \
		if (__builtin_expect(target != NULL, 1)) {                                         \
			struct stasis_gate_mark *mark =                                            \
				stasis_gate_enter(STASIS_ENTRY_##elf, held_at);                    \
                                                                                                   \
			if (atomic_load_explicit(&mark->depth, memory_order_relaxed) > 1)          \
				result = target(STASIS_ARGUMENTS_##signature);                     \
			else                                                                       \
				result = handle((void *)target, STASIS_ARGUMENTS_##signature);     \
			stasis_gate_leave(mark);                                                   \
		}                                                                                  \
		return result;                                                                     \
	}

#define HANDLED_PAIR(elf, held_at, signature)                                                       \
	/* As an address alone: its types are in handlers.h, with the driver's own declarations. */ \
	void stasis_handle_##elf(void);                                                             \
	PUBLIC int elf(STASIS_PARAMETERS_##signature);                                              \
	PUBLIC int elf(STASIS_PARAMETERS_##signature)                                               \
		HANDLED_BODY(elf, held_at, signature,                                               \
			     target_next) static int given_##elf(STASIS_PARAMETERS_##signature)     \
			HANDLED_BODY(elf, held_at, signature, target_in_driver)

#define PAIR(elf, held_at, signature)                                                              \
	PUBLIC int elf(STASIS_PARAMETERS_##signature);                                             \
	PUBLIC int elf(STASIS_PARAMETERS_##signature)                                              \
		BODY(elf, held_at, signature,                                                      \
		     target_next) static int given_##elf(STASIS_PARAMETERS_##signature)            \
			BODY(elf, held_at, signature, target_in_driver)

#define WRAPPER_PURE(elf, signature)
#define WRAPPER_LOOKUP(elf, signature)
#define WRAPPER_GATED(elf, signature) PAIR(elf, STASIS_GATE_CLOSED, signature)
#define WRAPPER_HANDLED(elf, signature) HANDLED_PAIR(elf, STASIS_GATE_CLOSED, signature)
#define WRAPPER_CAPTURE(elf, signature) HANDLED_PAIR(elf, STASIS_GATE_CAPTURES_HELD, signature)
#define WRAPPER(elf, class, signature) WRAPPER_##class(elf, signature)

static inline void *target_next(enum stasis_entry entry)
{
	void *target =
		atomic_load_explicit(&stasis_resolve_targets.next[entry], memory_order_acquire);

	return __builtin_expect(target != NULL, 1) ? target : stasis_resolve_next(entry);
}

/* Known before the wrapper is given out. */
static inline void *target_in_driver(enum stasis_entry entry)
{
	return atomic_load_explicit(&stasis_resolve_targets.driver[entry], memory_order_acquire);
}

/* The signatures are the driver's. NOLINTNEXTLINE(readability-function-size) */
STASIS_SYMBOLS(WRAPPER)

#define GIVEN_PURE(elf) NULL
#define GIVEN_GATED(elf) (void *)given_##elf
#define GIVEN_HANDLED(elf) (void *)given_##elf
#define GIVEN_CAPTURE(elf) (void *)given_##elf
#define GIVEN_LOOKUP(elf) (void *)LOOKUP_##elf
#define LOOKUP_cuGetProcAddress stasis_lookup_words4
#define LOOKUP_cuGetProcAddress_v2 stasis_lookup_words5
#define LOOKUP_cuGetProcAddress_v2_ptsz stasis_lookup_words5_ptsz
#define GIVEN(elf, class, signature) [STASIS_ENTRY_##elf] = GIVEN_##class(elf),

void *const stasis_entry_given[STASIS_ENTRY_COUNT] = {STASIS_SYMBOLS(GIVEN)};
