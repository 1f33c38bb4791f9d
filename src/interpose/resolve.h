#ifndef STASIS_INTERPOSE_RESOLVE_H
#define STASIS_INTERPOSE_RESOLVE_H

/*
 * How a program gets at the driver's entries, and where ours lead to. An entry has two wrappers with a
 * target each: the exported one, for calls by name, goes to whatever comes next in the program's scope
 * (maybe a second interposer); the other one, given out where a program looked an entry up in libcuda
 * itself, goes to libcuda. Were they one, an interposer behind us that looks up libcuda's entry would be
 * led back to itself.
 *
 * A result is replaced only if it is exactly an entry of libcuda in the program's own link namespace.
 * Whatever calls the loader here holds no lock of ours, and works out the same values when several
 * threads come at once: a constructor that calls us already holds the loader's lock.
 */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "interpose/symbols.h"

typedef void *stasis_dlsym_function(void *handle, const char *name);

/* The real one once it is known; read by dlsym.c. */
extern stasis_dlsym_function *stasis_resolve_real_dlsym;
stasis_dlsym_function *stasis_resolve_dlsym(void);

/* dlsym with a real handle. */
void *stasis_resolve_handle(void *handle, const char *name);

/* Where wrappers lead to; NULL: not known yet, or not there. */
struct stasis_resolve_targets {
	_Atomic(void *) next[STASIS_ENTRY_COUNT]; /* of those that are called by name */
	_Atomic(void *)
		driver[STASIS_ENTRY_COUNT]; /* of those that are given out: known before they are */
};
extern struct stasis_resolve_targets stasis_resolve_targets;

/* Finds what is missing in `next`; NULL: this program has no such entry. errno is kept. */
void *stasis_resolve_next(enum stasis_entry entry);

/*
 * libcuda's own entry, never a wrapper; NULL: this process has no libcuda, or this one no such entry. errno is
 * kept.
 */
void *stasis_resolve_driver_entry(enum stasis_entry entry);

/* Replaces an entry of libcuda that a lookup other than dlsym gave to the program; others stay. */
void *stasis_resolve_replace(void *address, const char *name);

/* `name` in the runtime library that the code at `caller` is linked with; NULL: none. */
void *stasis_resolve_runtime(const char *name, const void *caller);

/* The wrappers that are given out, made by entry.c; NULL for pure entries. */
extern void *const stasis_entry_given[STASIS_ENTRY_COUNT];

/* Those of the entries that find other entries, which are in lookup.c. */
int stasis_lookup_words4(const char *name, void **ret_entry, int version, uint64_t flags);
int stasis_lookup_words5(const char *name, void **ret_entry, int version, uint64_t flags,
			 void *ret_status);
int stasis_lookup_words5_ptsz(const char *name, void **ret_entry, int version, uint64_t flags,
			      void *ret_status);

/*
 * The wrapper of a lookup of the runtime library at `base`, found there under `name`. Several runtime
 * libraries in a process are normal, so each wrapper that is given out belongs to one of them. Returns
 * `address` itself where the name is no lookup or all wrappers are taken.
 */
void *stasis_lookup_runtime(const void *base, void *address, const char *name);

#endif
