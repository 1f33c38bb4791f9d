#ifndef SIM_MEMORY_H
#define SIM_MEMORY_H

/*
 * Simulated physical memory. Each object is a run of bytes in a file in memory: private device memory
 * is a piece of one sparse heap file a process and device; what can leave the process has a file of
 * its own. Addresses know nothing of it: address.h maps ranges onto these objects. Nothing here is
 * ever mapped into the CPU's address space unless an object is meant for the CPU (managed, host) or
 * STASIS_SIM_HOST_VISIBLE is set. All functions want the core lock held.
 */

#include "core.h"
#include "table.h"

enum sim_memory_kind {
	SIM_MEMORY_PRIVATE,    /* piece of the heap file of the device */
	SIM_MEMORY_EXPORTABLE, /* created here with a handle type; a file of its own */
	SIM_MEMORY_IMPORTED, /* another's, by an export descriptor; may be our own, imported again */
	SIM_MEMORY_IPC_OPENED, /* another's, by a legacy IPC handle */
	SIM_MEMORY_MANAGED,    /* file of its own, always mapped for the CPU */
	SIM_MEMORY_MULTICAST,  /* its file is the state of its team (team.h), not bytes */
	SIM_MEMORY_MULTICAST_IMPORTED,
	SIM_MEMORY_HOST, /* HOST_NUMA: file of its own, mapped where the CPU was given access */
};

struct sim_memory {
	struct sim_memory *next;
	struct sim_memory *previous;
	enum sim_memory_kind kind;
	CUmemAllocationProp properties; /* as asked for; location as resolved */
	int device;                     /* ordinal of the device whose memory it takes; -1: none */
	uint64_t id;
	uint64_t bytes;
	int fd;                     /* its file: the device's heap if private; -1 while evicted */
	uint64_t offset;            /* where it begins in that file */
	struct sim_span heap_piece; /* private: what it occupies of the heap */
	int claim_fd; /* once exported: its own account (machine.h); -1: on that of the process */
	unsigned handle_references; /* of cuMemCreate, import, retain; 0: only mappings keep it */
	unsigned references;        /* all: handles, mappings, work in flight, allocations */
	bool exported;              /* an export descriptor was made at least once */
	bool ipc_handle_taken;      /* cuIpcGetMemHandle named it */
	void *saved;                /* contents while evicted: anonymous, sparse, 'bytes' long */
};

static inline bool sim_memory_is_multicast(const struct sim_memory *memory)
{
	return memory->kind == SIM_MEMORY_MULTICAST ||
	       memory->kind == SIM_MEMORY_MULTICAST_IMPORTED;
}

/* First of all objects of the process; follow next. */
struct sim_memory *sim_memory_first(void);

/*
 * A new object with one reference, charged to the machine. Contents are zero, or poison where freed
 * memory of the process is used again. OUT_OF_MEMORY where the device is full.
 */
CUresult sim_memory_new(enum sim_memory_kind kind, const CUmemAllocationProp *properties,
			uint64_t bytes, struct sim_memory **ret_memory);
/* Wraps another's file (imports, IPC). Takes both descriptors, also on failure. */
CUresult sim_memory_adopt(enum sim_memory_kind kind, const CUmemAllocationProp *properties,
			  uint64_t bytes, uint64_t offset, int fd, int claim_fd,
			  struct sim_memory **ret_memory);
void sim_memory_ref(struct sim_memory *memory);
/* The last one frees: storage returns to the machine, contents are poisoned. */
void sim_memory_unref(struct sim_memory *memory);

/*
 * For checkpoints; call with all streams drained. Evict moves the contents to anonymous memory
 * ('saved', holes stay holes) and drops the file; when every private object is evicted,
 * sim_memory_close_heaps() drops the heap files, and the process holds nothing of the simulator for
 * its memory. A claim is closed; the process's own account is left to sim_machine_leave() and
 * sim_machine_resume(). Revive takes fresh storage (a claim's bytes are taken on the own account
 * of devices[].physical), writes the contents back and frees 'saved'; evicted without contents, the
 * fresh storage is empty, for the caller to fill. Mappings for the CPU are taken away and renewed by
 * sim_address_hide_all() and sim_address_show_all().
 */
CUresult sim_memory_evict(struct sim_memory *memory, bool keep_contents);
CUresult sim_memory_revive(struct sim_memory *memory);
void sim_memory_close_heaps(void);

#endif
