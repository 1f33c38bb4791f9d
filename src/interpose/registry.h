#ifndef STASIS_INTERPOSE_REGISTRY_H
#define STASIS_INTERPOSE_REGISTRY_H

/*
 * What the application made with the driver's virtual memory calls, as far as we must know it: one record an
 * object (an allocation, a multicast object, a foreign import), its virtual handles, and its mappings. Data only:
 * no call of the driver's or the loader's is made here. One mutex guards everything. While the gate is shut
 * the application changes nothing, so that a phase may walk the records without it; the peer thread then
 * only reads what its own functions lock.
 *
 * Handles are virtual: 0xd94d in the top 16 bits and a number that is never used again. The application
 * keeps them over any number of suspends; the driver's handle behind them changes.
 *
 * An object lives as long as it has a counted handle, a mapping, or a pin (a call that is using it). The driver's
 * handle is kept as long: it adds nothing to the life that a mapping gives the memory anyway.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/id.h"
#include "base/mutex.h"
#include "driver/abi.h"
#include "wire/record.h"

#define STASIS_HANDLE_TAG UINT64_C(0xd94d)

static inline bool stasis_handle_is_virtual(uint64_t handle)
{
	return handle >> 48 == STASIS_HANDLE_TAG;
}

enum stasis_object_kind {
	STASIS_OBJECT_ALLOCATION,
	STASIS_OBJECT_MULTICAST,
	STASIS_OBJECT_FOREIGN, /* imported from a descriptor of the driver's: hinders a capture */
};

struct stasis_object;

struct stasis_handle {
	struct stasis_handle *next_in_slot;
	struct stasis_handle *next;  /* of the object */
	struct stasis_handle **link; /* what points here in that list */
	struct stasis_object *object;
	uint64_t value;
	uint64_t count;         /* as the application holds it; 0: only mappings name it */
	uint32_t mapping_count; /* that answer it to a retain by address */
	bool is_import; /* of what was made here: to the driver it would be an import all the same */
};

struct stasis_access {
	CUmemLocation location;
	uint32_t rights; /* a CUmemAccess_flags, never NONE */
};

struct stasis_mapping {
	/* the tree of all mappings, by address */
	struct stasis_mapping *left, *right;
	uint32_t priority;

	struct stasis_mapping *next;  /* of the object */
	struct stasis_mapping **link; /* what points here in that list */
	struct stasis_object *object;
	struct stasis_handle *handle;
	uint64_t address;
	uint64_t bytes;
	uint64_t offset;
	uint64_t flags;
	/* False between PREPARE_UNICAST and the phase that rebuilds it: */
	bool is_mapped; /* the driver has it */
	bool is_up;     /* and its rights are set: the application may use it */
	struct stasis_access *access;
	uint32_t access_count;
	uint32_t access_room;
};

/* A device of a multicast team that this process added, and a binding that it made. */
struct stasis_team_device {
	struct stasis_team_device *next;
	CUdevice ordinal;
	struct stasis_id uuid;
	bool is_up;
};

struct stasis_binding {
	struct stasis_binding *next;  /* of the object, in order of making */
	struct stasis_object *member; /* NULL: native memory, by address */
	bool is_unsupported;          /* of memory whose life we cannot follow: hinders a capture */
	uint64_t address;             /* of a bind by address, else 0 */
	uint64_t member_offset;
	uint64_t offset;
	uint64_t bytes;
	uint64_t flags;
	CUdevice device;
	uint32_t call_version; /* 1 or 2 */
	bool is_up;
};

struct stasis_object {
	struct stasis_object *previous, *next; /* in order of making */
	struct stasis_object *next_in_slot;    /* by id */
	enum stasis_object_kind kind;
	struct stasis_id id;
	struct stasis_id creator; /* participant */
	uint64_t bytes;
	CUmemAllocationProp prop; /* as the application asked; of an import as the driver reports */
	struct stasis_id device;  /* UUID of its device, or zero */
	bool is_importer;
	bool is_shared;     /* exported, imported or bound to multicast; never taken back */
	bool is_reattached; /* an import to the driver: `descriptor` stands for an export */
	bool is_recreated; /* made here by a rebuild: an import that exports, after its creator let go */
	bool has_driver_handle;
	CUmemGenericAllocationHandle driver_handle;
	int descriptor; /* the driver's, kept: of an import, of what was re-attached; else -1 */
	uint32_t pin_count;
	uint64_t handle_count; /* sum over its handles */
	uint64_t mapping_count;
	struct stasis_handle *handles;
	struct stasis_mapping *mappings;

	/* a multicast object's; see multicast.h */
	CUmulticastObjectProp multicast;
	struct stasis_team_device *team;
	struct stasis_binding *bindings;

	uint64_t binding_member_count; /* of an allocation: how many bindings name it as member */
};

struct stasis_registry {
	struct stasis_mutex mutex;
	struct stasis_object *first, *last;
	uint64_t generation;
	uint64_t object_count;
	uint64_t sparse_count;    /* calls that mapped memory of ours into sparse arrays */
	uint64_t endpoint_count;  /* logical endpoints made or imported, ever */
	uint64_t ipc_given_count; /* handles of legacy IPC to memory given out, ever */
	uint64_t ipc_open_count;  /* memory of others open by them now */
	uint64_t ipc_event_count; /* events given out or opened, ever */
	uint64_t pool_count;      /* pools given out or imported, ever */
	uint64_t
		native_binding_count; /* bindings by address of memory that the driver alone knows */
	uint64_t damage_count;        /* what could not be recorded: hinders a capture for good */
};

extern struct stasis_registry stasis_registry;

void stasis_registry_lock(void) ACQUIRE(stasis_registry.mutex);
void stasis_registry_unlock(void) RELEASE(stasis_registry.mutex);

/*
 * Memory for a new object with one handle of count 1, made before the driver is asked so that nothing need be
 * undone behind it; NULL: none. Not in any table yet: stasis_object_add() puts it there, stasis_object_free()
 * drops it.
 */
struct stasis_object *stasis_object_new(enum stasis_object_kind kind);
void stasis_object_free(struct stasis_object *object);
/* Returns its handle's value. */
uint64_t stasis_object_add(struct stasis_object *object) REQUIRES(stasis_registry.mutex);

struct stasis_object *stasis_object_find(const struct stasis_id *id)
	REQUIRES(stasis_registry.mutex);

/* NULL: nothing of that value with a count. */
struct stasis_handle *stasis_handle_find(uint64_t value) REQUIRES(stasis_registry.mutex);

/* Memory for one more handle; see stasis_handle_add(). */
struct stasis_handle *stasis_handle_new(void);
/* An alias: one more virtual handle of an object that is there already. Returns its value. */
uint64_t stasis_handle_add(struct stasis_object *object, struct stasis_handle *handle)
	REQUIRES(stasis_registry.mutex);

/* What is left to do outside the lock when an object went: give the driver's handle back. */
struct stasis_gone {
	struct stasis_object *object; /* NULL: it lives on */
};

/* One count of the handle less; one pin less. */
void stasis_handle_release(struct stasis_handle *handle, struct stasis_gone *ret_gone)
	REQUIRES(stasis_registry.mutex);
static inline void stasis_object_pin(struct stasis_object *object)
{
	object->pin_count++;
}
/* A handle that a call used (its mapping_count was raised) is used no more. */
void stasis_handle_unuse(struct stasis_handle *handle) REQUIRES(stasis_registry.mutex);
void stasis_object_unpin(struct stasis_object *object, struct stasis_gone *ret_gone)
	REQUIRES(stasis_registry.mutex);

/* ---- mappings ---- */

struct stasis_mapping *stasis_mapping_new(void);
void stasis_mapping_free(struct stasis_mapping *mapping);
/* Takes it; its object, handle, address and bytes are set. */
void stasis_mapping_add(struct stasis_mapping *mapping) REQUIRES(stasis_registry.mutex);
/* Out of the tree and its object; the caller frees it, or adds it again. */
void stasis_mapping_remove(struct stasis_mapping *mapping) REQUIRES(stasis_registry.mutex);
/* After a mapping went for good: whether its object and handle go, too. Frees it. */
void stasis_mapping_drop(struct stasis_mapping *mapping, struct stasis_gone *ret_gone)
	REQUIRES(stasis_registry.mutex);
/* The one that holds this byte; the first one at or behind it. NULL: none. */
struct stasis_mapping *stasis_mapping_at(uint64_t address) REQUIRES(stasis_registry.mutex);
struct stasis_mapping *stasis_mapping_from(uint64_t address) REQUIRES(stasis_registry.mutex);

/* Replaces or adds the right of one location; NONE takes it away. False: no memory. */
bool stasis_mapping_grant(struct stasis_mapping *mapping, const CUmemAccessDesc *access);

/* Part of stasis_registry_forget(). */
void stasis_mappings_forget(void);

/* Notes that something could not be recorded. Any thread. */
void stasis_registry_damage(void);

/* Notes that memory of ours was mapped into a sparse array. Any thread. */
void stasis_registry_note_sparse(void);

/* Notes that a logical endpoint was made or imported. Any thread. */
void stasis_registry_note_endpoint(void);

/* Notes sharing by other means than descriptors of memory. Any thread. */
enum stasis_ipc {
	STASIS_IPC_MEMORY_GIVEN,
	STASIS_IPC_MEMORY_OPENED,
	STASIS_IPC_MEMORY_CLOSED,
	STASIS_IPC_EVENT,
	STASIS_IPC_POOL,
};
void stasis_registry_note_ipc(enum stasis_ipc what);

/* Whether we save and rebuild it, and not the driver. */
bool stasis_object_is_ours(const struct stasis_object *object);

/*
 * In a forked child, on its only thread: everything is forgotten, nothing is freed (another thread may have held
 * the lock).
 */
void stasis_registry_forget(void);

#endif
