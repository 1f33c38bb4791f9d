/*
 * The multicast team of share_random: of each device one actor, who adds it and binds memory of its own, before or after
 * the others have come; then all write to all and sum up what all have, until the one who made the team ends it. The
 * object's maker holds it longest, since only from there it can be had.
 */
#include <string.h>

#include "check.h"
#include "device.h"
#include "share_random.h"

#define CHANCE_OF_END 200
#define BIND_KINDS 4

typedef CUresult bind_memory(CUmemGenericAllocationHandle, CUdevice, size_t,
			     CUmemGenericAllocationHandle, size_t, size_t, unsigned long long);
typedef CUresult bind_address(CUmemGenericAllocationHandle, CUdevice, size_t, CUdeviceptr, size_t,
			      unsigned long long);

static size_t team_bytes(const struct actor *actor)
{
	return actor->model->team.blocks * BLOCK_BYTES;
}

/* An actor of some process that uses the device. */
static unsigned member_draw(struct actor *actor, unsigned device)
{
	unsigned devices = actor->options->devices;
	unsigned count = (actor->options->processes - device + devices - 1) / devices;
	unsigned process = device + devices * draw(actor, count);

	return process * THREADS + draw(actor, THREADS);
}

void team_begin(struct actor *actor)
{
	struct team *team = &actor->model->team;
	CUmulticastObjectProp prop = {.numDevices = actor->options->devices,
				      .handleTypes = T_FD_TYPE};

	if (!actor->options->has_multicast)
		return;
	model_lock(&team->mutex);
	if (team->state == TEAM_NONE && !actor->seat.is_taken) {
		team->state = TEAM_FORMING;
		team->creator = actor->index;
		team->blocks = 1 + draw(actor, BLOCKS_MAX);
		team->added = team->bound = team->left = 0;
		for (unsigned i = 0; i < actor->options->devices; i++)
			team->members[i] =
				(int)i == actor->device ? actor->index : member_draw(actor, i);
		prop.size = team_bytes(actor);
		T_OK(cuMulticastCreate(&actor->seat.handle, &prop));
		actor->seat.is_taken = true;
	}
	model_unlock(&team->mutex);
}

void team_join(struct actor *actor, int fd)
{
	T_TRUE(!actor->seat.is_taken);
	actor->seat.handle = t_import(fd);
	actor->seat.is_taken = true;
}

/* ---- forming ---- */

/* By its maker; false: a mailbox is full. */
static bool object_send(struct actor *actor)
{
	const struct team *team = &actor->model->team;
	struct mail mail = {.kind = MAIL_TEAM};

	for (; actor->seat.sent < actor->options->devices; actor->seat.sent++) {
		unsigned member = team->members[actor->seat.sent];

		if (member != actor->index && !mail_send(actor, member, &mail, actor->seat.handle))
			return false;
	}
	return true;
}

static void device_add(struct actor *actor)
{
	struct team *team = &actor->model->team;

	T_OK(cuMulticastAddDevice(actor->seat.handle, actor->device));
	actor->seat.is_added = true;
	model_lock(&team->mutex);
	team->added++;
	model_unlock(&team->mutex);
}

/* A mapping that can be bound by its address. Its object is the actor's while it is mapped. */
static const struct slot *slot_find(const struct actor *actor)
{
	for (size_t i = 0; i < SPANS_MAX; i++) {
		const struct span *span = &actor->spans[i];

		for (unsigned j = 0; span->address != 0 && j < span->count; j++) {
			const struct object *object = span->slots[j].object;

			if (object && object->kind == OBJECT_SHARED &&
			    object->creator == actor->process &&
			    object_bytes(object) == team_bytes(actor))
				return &span->slots[j];
		}
	}
	return NULL;
}

static void address_bind(const struct actor *actor, CUdeviceptr address, bind_address *newer)
{
	if (newer)
		T_OK(newer(actor->seat.handle, actor->device, 0, address, team_bytes(actor), 0));
	else
		T_OK(cuMulticastBindAddr(actor->seat.handle, 0, address, team_bytes(actor), 0));
}

static void memory_bind(const struct actor *actor, CUmemGenericAllocationHandle member,
			bind_memory *newer)
{
	if (newer)
		T_OK(newer(actor->seat.handle, actor->device, 0, member, 0, team_bytes(actor), 0));
	else
		T_OK(cuMulticastBindMem(actor->seat.handle, 0, member, 0, team_bytes(actor), 0));
}

/* The binding keeps it from now on. The bind may wait for the others, and nothing is locked meanwhile. */
static void bind(struct actor *actor, struct object *object, CUdeviceptr address,
		 CUmemGenericAllocationHandle member)
{
	bool is_newer = draw(actor, 2) && actor->options->has_newer_binds;
	bind_memory *memory = NULL;
	bind_address *by_address = NULL;

	if (is_newer) {
		*(void **)&memory = t_entry("cuMulticastBindMem", 13010);
		*(void **)&by_address = t_entry("cuMulticastBindAddr", 13010);
	}
	model_lock(&object->mutex);
	object_keep(actor, object);
	model_unlock(&object->mutex);
	if (address != 0)
		address_bind(actor, address, by_address);
	else
		memory_bind(actor, member, memory);
	actor->seat.object = object;
	actor->seat.is_bound = true;
}

static void member_bind(struct actor *actor)
{
	struct team *team = &actor->model->team;
	const struct slot *slot = draw(actor, 2) ? slot_find(actor) : NULL;
	struct hold *hold = slot ? NULL : hold_make(actor, OBJECT_SHARED, team->blocks);

	if (!slot && !hold) {
		handle_release(actor); /* room for the next try */
		return;
	}
	bind(actor, slot ? slot->object : hold->object, slot ? slot->address : 0,
	     slot ? 0 : hold->handle);
	model_lock(&team->mutex);
	team->objects[actor->device] = model_index(actor, actor->seat.object);
	if (++team->bound == actor->options->devices)
		team->state = TEAM_READY;
	model_unlock(&team->mutex);
}

/* ---- ending ---- */

static void address_unmap(struct actor *actor)
{
	T_OK(cuMemUnmap(actor->seat.address, team_bytes(actor)));
	T_OK(cuMemAddressFree(actor->seat.address, team_bytes(actor)));
	actor->seat.address = 0;
}

/* Under the team's mutex. */
static void leave(struct actor *actor, struct team *team)
{
	struct object *object = actor->seat.object;
	bool is_creator = team->creator == actor->index;

	if (is_creator && team->left + 1 < actor->options->devices)
		return;
	model_lock(&object->mutex);
	if (!object_is_awaited(actor, object, 1)) {
		if (actor->seat.address != 0)
			address_unmap(actor);
		T_OK(cuMulticastUnbind(actor->seat.handle, actor->device, 0, team_bytes(actor)));
		T_OK(cuMemRelease(actor->seat.handle));
		object_let_go(actor, object);
		actor->seat = (struct seat){.is_taken = false};
		team->left++;
		if (is_creator)
			team->state = TEAM_NONE;
	}
	model_unlock(&object->mutex);
}

static void state_follow(struct actor *actor)
{
	struct team *team = &actor->model->team;

	model_lock(&team->mutex);
	if (team->state == TEAM_READY && team->creator == actor->index &&
	    (actor->model->is_ending || draw(actor, CHANCE_OF_END) == 0))
		team->state = TEAM_ENDING;
	if (team->state == TEAM_ENDING)
		leave(actor, team);
	model_unlock(&team->mutex);
}

static bool are_all_added(struct actor *actor)
{
	struct team *team = &actor->model->team;
	bool are_added;

	model_lock(&team->mutex);
	are_added = team->added == actor->options->devices;
	model_unlock(&team->mutex);
	return are_added;
}

void team_serve(struct actor *actor)
{
	if (!actor->seat.is_taken)
		return;
	if (actor->model->team.creator == actor->index && !object_send(actor))
		return;
	if (!actor->seat.is_added)
		device_add(actor);
	else if (actor->seat.is_bound)
		state_follow(actor);
	else if (are_all_added(actor) || draw(actor, 2) == 0)
		member_bind(actor);
}

bool team_is_over(struct actor *actor)
{
	struct team *team = &actor->model->team;
	bool is_over;

	model_lock(&team->mutex);
	is_over = team->state == TEAM_NONE;
	model_unlock(&team->mutex);
	return is_over;
}

/* ---- use ---- */

static struct object *member_of(struct actor *actor, unsigned device)
{
	return &actor->model->objects[actor->model->team.objects[device]];
}

/* By their order in the model. */
static void members_lock(struct actor *actor)
{
	for (unsigned index = 0; index < OBJECTS_MAX; index++)
		for (unsigned i = 0; i < actor->options->devices; i++)
			if (actor->model->team.objects[i] == index)
				model_lock(&actor->model->objects[index].mutex);
}

static void members_unlock(struct actor *actor)
{
	for (unsigned i = 0; i < actor->options->devices; i++)
		model_unlock(&member_of(actor, i)->mutex);
}

static void team_map(struct actor *actor)
{
	CUmemAccessDesc access = t_access(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	size_t bytes = team_bytes(actor);

	access.location.id = actor->device;
	actor->seat.address = t_reserve(bytes);
	T_OK(cuMemMap(actor->seat.address, bytes, 0, actor->seat.handle, 0));
	T_OK(cuMemSetAccess(actor->seat.address, bytes, &access, 1));
}

static unsigned piece_draw(struct actor *actor)
{
	return draw(actor, actor->model->team.blocks * (unsigned)PIECES_OF_BLOCK);
}

static void team_write(struct actor *actor)
{
	unsigned index = piece_draw(actor);
	struct piece piece = {.is_known = false};

	piece_write(actor, &piece, actor->seat.address + index * PIECE_BYTES);
	finish(actor);
	for (unsigned i = 0; i < actor->options->devices; i++)
		member_of(actor, i)->pieces[index] = piece;
}

static void sums_check(struct actor *actor, unsigned index)
{
	for (uint32_t i = 0; i < PIECE_WORDS; i++) {
		uint32_t expected = 0;

		for (unsigned j = 0; j < actor->options->devices; j++)
			expected += piece_word(&member_of(actor, j)->pieces[index], i);
		if (actor->buffer[i] != expected)
			wrong(actor,
			      "the team's sum at 0x%llx: piece %u, offset %u: expected 0x%08x, "
			      "found "
			      "0x%08x",
			      actor->seat.address, index, i * 4, expected, actor->buffer[i]);
	}
}

static void team_sum(struct actor *actor)
{
	unsigned index = piece_draw(actor);
	CUdeviceptr from = actor->seat.address + index * PIECE_BYTES;
	uint64_t count = PIECE_WORDS;
	void *parameters[] = {&actor->scratch, &from, &count};

	for (unsigned i = 0; i < actor->options->devices; i++)
		if (!member_of(actor, i)->pieces[index].is_known)
			return;
	T_OK(cuLaunchKernel(actor->reduce, 1, 1, 1, 128, 1, 1, 0, actor->stream, parameters, NULL));
	T_OK(cuMemcpyDtoHAsync_v2(actor->buffer, actor->scratch, PIECE_BYTES, actor->stream));
	finish(actor);
	sums_check(actor, index);
}

void team_use(struct actor *actor)
{
	struct team *team = &actor->model->team;

	model_lock(&team->mutex);
	if (team->state == TEAM_READY && actor->seat.is_bound) {
		members_lock(actor);
		if (actor->seat.address == 0)
			team_map(actor);
		else if (draw(actor, 8) == 0)
			address_unmap(actor);
		else if (draw(actor, 2) == 0)
			team_write(actor);
		else
			team_sum(actor);
		members_unlock(actor);
	}
	model_unlock(&team->mutex);
}
