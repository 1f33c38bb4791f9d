/*
 * See resolve.h. Keeps the tables of what is where: of the program's own scope, filled call by call, and of
 * libcuda, filled whole before the first entry of it is replaced. Libraries found are never let go, so
 * that what was given out stays valid.
 */

#include "interpose/resolve.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>

#include "base/compiler.h"
#include "interpose/names.h"
#include "interpose/notes.h"

#define SLOT_COUNT 2048u /* a power of two, well above the number of entries */
_Static_assert(STASIS_ENTRY_COUNT < SLOT_COUNT / 2, "the hash table is too small");

/* Which library an address lies in. */
struct place {
	const void *base;
	const char *path;
	const struct link_map *map;
};

static struct {
	_Atomic(const void *) base;    /* of the libcuda that the table is about */
	atomic_bool is_complete;       /* the table, and its targets */
	atomic_uint slots[SLOT_COUNT]; /* by address: entry + 1 */
} driver;

struct stasis_resolve_targets stasis_resolve_targets;
stasis_dlsym_function *stasis_resolve_real_dlsym;

stasis_dlsym_function *stasis_resolve_dlsym(void)
{
	stasis_dlsym_function *real = __atomic_load_n(&stasis_resolve_real_dlsym, __ATOMIC_ACQUIRE);

	if (real)
		return real;
	real = (stasis_dlsym_function *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
	if (!real)
		real = (stasis_dlsym_function *)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	/* No guard: threads that come at once find the same, and none waits for another's loader lock. */
	__atomic_store_n(&stasis_resolve_real_dlsym, real, __ATOMIC_RELEASE);
	return real;
}

/*
 * "libcuda.so", "libcuda.so.1", "libcuda.so.580.159.04"; not "libcuda.so.fake". Without libc's string
 * functions: a sanitizer's runtime watches those, and knows nothing of the loader's order among threads.
 */
static bool is_library(const char *path, const char *stem)
{
	const char *name = path;

	for (const char *at = path; *at != '\0'; at++) {
		if (*at == '/')
			name = at + 1;
	}
	for (; *stem != '\0'; stem++, name++) {
		if (*name != *stem)
			return false;
	}
	while (*name == '.' && name[1] >= '0' && name[1] <= '9') {
		for (name++; *name >= '0' && *name <= '9'; name++)
			;
	}
	return *name == '\0';
}

static bool place_find(const void *address, struct place *ret_place)
{
	struct link_map *map = NULL;
	Dl_info info;

	if (dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || !map || !info.dli_fname)
		return false;
	*ret_place = (struct place){.base = info.dli_fbase, .path = map->l_name, .map = map};
	return true;
}

/*
 * A handle on the library for good; NULL: it is in another link namespace than ours, where the same path
 * names another library or none.
 */
static void *library_keep(const struct place *place)
{
	struct link_map *map = NULL;
	void *handle = dlopen(place->path, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);

	if (!handle)
		return NULL;
	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map == place->map)
		return handle;
	(void)dlclose(handle);
	return NULL;
}

/* Lookups of ours that found nothing are no business of the program's. */
static void error_forget(void)
{
	/* glibc keeps the error by thread. NOLINTNEXTLINE(concurrency-mt-unsafe) */
	(void)dlerror();
}

static uint32_t slot_of(const void *address)
{
	uint64_t hash = (uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u;

	return (uint32_t)(hash >> 32) & (SLOT_COUNT - 1);
}

/* Of entries with one address the first counts. Threads that fill in the same order do not disturb. */
static void slot_fill(enum stasis_entry entry, void *address)
{
	for (uint32_t slot = slot_of(address);; slot = (slot + 1) & (SLOT_COUNT - 1)) {
		unsigned int found = 0;

		if (atomic_compare_exchange_strong(&driver.slots[slot], &found, entry + 1u))
			return;
		if (atomic_load(&stasis_resolve_targets.driver[found - 1]) == address)
			return;
	}
}

/* STASIS_ENTRY_COUNT: there is none. */
static enum stasis_entry slot_find(const void *address)
{
	for (uint32_t slot = slot_of(address);; slot = (slot + 1) & (SLOT_COUNT - 1)) {
		unsigned int found =
			atomic_load_explicit(&driver.slots[slot], memory_order_relaxed);

		if (found == 0)
			return STASIS_ENTRY_COUNT;
		if (atomic_load_explicit(&stasis_resolve_targets.driver[found - 1],
					 memory_order_relaxed) == address)
			return (enum stasis_entry)(found - 1);
	}
}

static void driver_fill(void *handle)
{
	stasis_dlsym_function *real = stasis_resolve_dlsym();

	for (int i = 0; i < STASIS_ENTRY_COUNT; i++) {
		void *address = real(handle, stasis_entry_name((uint32_t)i));

		if (!address)
			continue;
		atomic_store_explicit(&stasis_resolve_targets.driver[i], address,
				      memory_order_release);
		slot_fill((enum stasis_entry)i, address);
	}
	error_forget();
	atomic_store_explicit(&driver.is_complete, true, memory_order_release);
}

/* The table is about the library at this place, and complete. */
static bool driver_know(const struct place *place)
{
	const void *base = atomic_load_explicit(&driver.base, memory_order_acquire);
	void *handle;

	if (base && base != place->base) {
		stasis_notes_add("second libcuda");
		return false;
	}
	if (base && atomic_load_explicit(&driver.is_complete, memory_order_acquire))
		return true;
	handle = library_keep(place);
	if (!handle) {
		error_forget();
		return false;
	}
	if (!atomic_compare_exchange_strong(&driver.base, &base, place->base) &&
	    base != place->base) {
		stasis_notes_add("second libcuda");
		return false;
	}
	driver_fill(handle);
	return true;
}

static void *driver_replace(const struct place *place, void *address, const char *name)
{
	enum stasis_entry entry;

	if (!driver_know(place))
		return address;
	entry = slot_find(address);
	if (entry == STASIS_ENTRY_COUNT) {
		stasis_notes_add(name);
		return address;
	}
	return stasis_entry_given[entry] ? stasis_entry_given[entry] : address;
}

void *stasis_resolve_replace(void *address, const char *name)
{
	int saved_errno = errno;
	struct place place;

	if (place_find(address, &place) && is_library(place.path, "libcuda.so"))
		address = driver_replace(&place, address, name);
	errno = saved_errno;
	return address;
}

void *stasis_resolve_driver_entry(enum stasis_entry entry)
{
	int saved_errno = errno;
	struct place place;
	void *handle;
	void *init;

	if (!atomic_load_explicit(&driver.is_complete, memory_order_acquire)) {
		/* The one that is there; a program that has none yet is not made to have one. */
		handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
		init = handle ? stasis_resolve_dlsym()(handle, "cuInit") : NULL;
		if (!init || !place_find(init, &place) || !driver_know(&place)) {
			error_forget();
			errno = saved_errno;
			return NULL;
		}
		errno = saved_errno;
	}
	return atomic_load_explicit(&stasis_resolve_targets.driver[entry], memory_order_acquire);
}

static void *found_replace(void *address, const char *name, const void *caller)
{
	struct place place;
	struct place callers;

	if (!place_find(address, &place))
		return address;
	/* A library that looks itself up means itself: its own wrapper would lead it in a circle. */
	if (place_find(caller, &callers) && callers.base == place.base)
		return address;
	if (is_library(place.path, "libcuda.so"))
		return driver_replace(&place, address, name);
	if (is_library(place.path, "libcudart.so") && library_keep(&place))
		return stasis_lookup_runtime(place.base, address, name);
	return address;
}

void *stasis_resolve_handle(void *handle, const char *name)
{
	const void *caller = __builtin_return_address(0);
	stasis_dlsym_function *real = stasis_resolve_dlsym();
	void *address = real(handle, name);
	int saved_errno = errno;

	/* All names of the driver and of the runtime's lookups begin so. */
	if (!address || name[0] != 'c' || name[1] != 'u')
		return address;
	address = found_replace(address, name, caller);
	errno = saved_errno;
	return address;
}

/* The next one behind us in the program's scope. */
static void *scope_find(const char *name)
{
	stasis_dlsym_function *real = stasis_resolve_dlsym();
	void *address = real(RTLD_NEXT, name);

	/* Not a tail call: the scope must be ours. */
	__asm__ volatile("" : "+r"(address));
	return address;
}

void *stasis_resolve_next(enum stasis_entry entry)
{
	int saved_errno = errno;
	void *address = scope_find(stasis_entry_name(entry));

	if (!address) {
		/* libcuda is not in that scope if a library that was opened RTLD_LOCAL brought it. */
		void *handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NODELETE);

		if (handle)
			address = stasis_resolve_dlsym()(handle, stasis_entry_name(entry));
	}
	if (address)
		atomic_store_explicit(&stasis_resolve_targets.next[entry], address,
				      memory_order_release);
	errno = saved_errno;
	return address;
}

void *stasis_resolve_runtime(const char *name, const void *caller)
{
	int saved_errno = errno;
	void *address = scope_find(name);
	struct place place;

	/* Runtime libraries differ, so it is never a fixed name that is opened: the caller's own counts. */
	if (!address && place_find(caller, &place)) {
		void *handle = library_keep(&place);

		if (handle)
			address = stasis_resolve_dlsym()(handle, name);
	}
	errno = saved_errno;
	return address;
}
