#ifndef TESTS_WORKLOADS_SHARE_RANDOM_H
#define TESTS_WORKLOADS_SHARE_RANDOM_H

/*
 * What the parts of share_random have in common. An actor is a thread of a process; it holds handles, and has mapped what
 * they name in spans of adjacent addresses. All that it has is its own and nobody else's, but for what stands in memory
 * of the processes, the model: which objects there are, who keeps each alive, and what must stand in them.
 *
 * An object is 1 or 2 blocks of 2 MiB, in pieces of 64 KiB; word i of a piece is factor * mix(seed, i) + added, with a
 * factor of 0 or 1. An object's mutex is held by whoever does anything with it, also over calls of the driver, and a
 * team's over a write to the team. Order: the team's mutex, then objects by index.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/abi.h"

#define PROCESSES_MAX 8
#define DEVICES_MAX 8
#define THREADS 2 /* of each process */
#define ACTORS_MAX (PROCESSES_MAX * THREADS)
#define OBJECTS_MAX 48
#define HOLDS_MAX 16
#define SPANS_MAX 10
#define SLOTS_MAX 3 /* of a span */
#define NATIVES_MAX 4
#define BLOCK_BYTES ((size_t)2 << 20)
#define BLOCKS_MAX 2
#define PIECE_BYTES ((size_t)64 << 10)
#define PIECE_WORDS (PIECE_BYTES / 4)
#define PIECES_OF_BLOCK (BLOCK_BYTES / PIECE_BYTES)
#define PIECES_MAX (BLOCKS_MAX * PIECES_OF_BLOCK)

enum object_kind {
	OBJECT_NONE,
	OBJECT_SHARED,  /* of a device, exportable, and perhaps never exported */
	OBJECT_PRIVATE, /* of a device, without a handle type */
	OBJECT_NUMA,    /* of a node of the host, exportable */
};

struct piece {
	bool is_known; /* until it is first written, anything may stand there */
	uint32_t factor;
	uint32_t seed;
	uint32_t added;
};

struct object {
	pthread_mutex_t mutex; /* guards the rest, and the contents */
	enum object_kind kind;
	unsigned creator; /* process */
	int device;
	unsigned blocks;
	unsigned flights;              /* descriptors that are on their way */
	unsigned keeps[PROCESSES_MAX]; /* handles, mappings and bindings of each process */
	struct piece pieces[PIECES_MAX];
};

enum team_state { TEAM_NONE, TEAM_FORMING, TEAM_READY, TEAM_ENDING };

/* The one multicast team that there is at a time. */
struct team {
	pthread_mutex_t mutex; /* guards the rest */
	enum team_state state;
	unsigned creator; /* actor */
	unsigned blocks;
	unsigned added;
	unsigned bound;
	unsigned left;
	unsigned members[DEVICES_MAX]; /* actors, by device */
	unsigned objects[DEVICES_MAX]; /* what each has bound */
};

struct model {
	struct object objects[OBJECTS_MAX];
	struct team team;
	_Atomic uint64_t rounds[ACTORS_MAX];
	size_t free_bytes[PROCESSES_MAX]; /* of its device, before anything was made */
	atomic_uint begun;                /* actors that are there, ... */
	atomic_uint measured;             /* ... and that have seen what is free */
	atomic_bool is_ending;
	atomic_uint at_rest;          /* actors that begin nothing any more */
	atomic_uint empty;            /* actors that have let go of everything */
	int mailboxes[ACTORS_MAX][2]; /* where it reads, where the others write */
};

struct options {
	unsigned processes;
	unsigned devices;
	bool has_multicast;
	bool has_newer_binds;
	bool reexports; /* an imported handle can be exported, which no driver allows by itself */
	uint64_t seed;
};

struct mail {
	enum { MAIL_OBJECT, MAIL_TEAM } kind;
	unsigned object;
};

/* A handle and the references that the actor has of it. */
struct hold {
	struct object *object; /* NULL: none */
	CUmemGenericAllocationHandle handle;
	unsigned count;
	CUmemAllocationProp prop; /* what the driver said of it at first */
};

struct slot {
	struct object *object; /* NULL: nothing is mapped */
	CUdeviceptr address;
	size_t bytes;
	CUmemGenericAllocationHandle handle; /* that the driver gives for the address */
	unsigned long long rights[DEVICES_MAX];
};

struct span {
	CUdeviceptr address; /* 0: none */
	size_t bytes;
	unsigned count;
	struct slot slots[SLOTS_MAX];
};

/* Memory of cuMemAlloc. */
struct native {
	CUdeviceptr address; /* 0: none */
	struct piece piece;
};

/* What an actor has of the team. */
struct seat {
	bool is_taken;
	bool is_added;
	bool is_bound;
	unsigned sent; /* by the creator: devices whose members have their descriptor */
	CUmemGenericAllocationHandle handle;
	struct object *object; /* that is bound */
	CUdeviceptr address;   /* of the team's memory, or 0 */
};

struct actor {
	const struct options *options;
	struct model *model;
	unsigned index;
	unsigned process;
	uint64_t chance;
	CUdevice device;
	CUcontext context;
	CUstream stream;
	CUfunction fill;
	CUfunction add;
	CUfunction compare;
	CUfunction reduce;
	CUdeviceptr scratch; /* a block, for counts and sums */
	uint32_t *buffer;    /* as large as the largest object */
	struct hold holds[HOLDS_MAX];
	struct span spans[SPANS_MAX];
	struct native natives[NATIVES_MAX];
	struct seat seat;
};

/* share_random_model.c */
uint32_t draw(struct actor *actor, uint32_t below);
void model_make(struct model *model, unsigned actors);
void model_lock(pthread_mutex_t *mutex);
void model_unlock(pthread_mutex_t *mutex);
/* A free object, locked and of no kind yet; NULL: all are in use. */
struct object *model_object_new(struct actor *actor);
unsigned model_index(const struct actor *actor, const struct object *object);
size_t object_bytes(const struct object *object);
/* One more, or one less, of what keeps it alive; with the last one it is free. Locked. */
void object_keep(struct actor *actor, struct object *object);
void object_let_go(struct actor *actor, struct object *object);
/* Whether so many must not be let go of here: a descriptor is on its way, and the last of the creator's would go. */
bool object_is_awaited(const struct actor *actor, const struct object *object, unsigned count);
uint32_t mix(uint32_t seed, uint32_t index);
uint32_t piece_word(const struct piece *piece, uint32_t index);
/* Ends the test with a line that names the actor. */
NORETURN FORMAT(2, 3) void wrong(const struct actor *actor, const char *format, ...);

/* share_random_contents.c: objects are locked. */
void contents_write(struct actor *actor, struct object *object, CUdeviceptr address);
void contents_begin(struct actor *actor, struct object *object, CUdeviceptr address);
void contents_copy(struct actor *actor, const struct slot *to, const struct slot *from);
void contents_verify(struct actor *actor, struct object *object, CUdeviceptr address);
void piece_write(struct actor *actor, struct piece *piece, CUdeviceptr address);
void piece_verify(struct actor *actor, const struct piece *piece, CUdeviceptr address);
void launch(struct actor *actor, CUfunction kernel, void **parameters);
void finish(struct actor *actor);

/* share_random_handles.c */
struct hold *hold_make(struct actor *actor, enum object_kind kind, unsigned blocks);
struct hold *hold_any(struct actor *actor);
/* Takes the reference, of an object that is locked; false: there is no room. */
bool hold_add(struct actor *actor, struct object *object, CUmemGenericAllocationHandle handle);
void hold_check(struct actor *actor, const struct hold *hold);
/* Gives one reference back; false: it must be kept a while. Takes the object's mutex. */
bool hold_release(struct actor *actor, struct hold *hold);
void handle_create(struct actor *actor);
void handle_release(struct actor *actor);
void handle_send(struct actor *actor);
void handles_check(struct actor *actor);
/* Takes all that has been sent to the actor. */
void mail_take(struct actor *actor);
bool mail_send(struct actor *actor, unsigned to, const struct mail *mail,
	       CUmemGenericAllocationHandle handle);

/* share_random_spans.c */
void span_map(struct actor *actor);
void span_unmap(struct actor *actor);
void span_access(struct actor *actor);
void span_retain(struct actor *actor);
void span_write(struct actor *actor);
void span_copy(struct actor *actor);
void span_verify(struct actor *actor);
void spans_check(struct actor *actor);
void spans_verify(struct actor *actor);
/* Unmaps everything; false: something must be kept a while. */
bool spans_free(struct actor *actor);

/* share_random_team.c */
void team_begin(struct actor *actor);
void team_join(struct actor *actor, int fd);
void team_use(struct actor *actor);
/* What is to be done for the team just now, if anything. */
void team_serve(struct actor *actor);
bool team_is_over(struct actor *actor);

/* share_random_actor.c: until the model says that all end. */
void actor_run(struct actor *actor);

#endif
