/*
 * Handles of share_random: made, given away as descriptors, taken in, retained, given back in any order.
 *
 * A descriptor on its way keeps no memory alive under an interposer that hands out tickets, and any program that exports
 * keeps what it exports for a while; so the process that made the memory keeps it until the descriptor has come. In the
 * same way nothing is exported that its maker has let go of.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "check.h"
#include "device.h"
#include "share_random.h"

#define MAILS_AT_ONCE 4

static struct hold *hold_free(struct actor *actor)
{
	for (size_t i = 0; i < HOLDS_MAX; i++)
		if (!actor->holds[i].object)
			return &actor->holds[i];
	return NULL;
}

static struct hold *hold_find(struct actor *actor, const struct object *object,
			      CUmemGenericAllocationHandle handle)
{
	for (size_t i = 0; i < HOLDS_MAX; i++)
		if (actor->holds[i].object == object && actor->holds[i].handle == handle)
			return &actor->holds[i];
	return NULL;
}

struct hold *hold_any(struct actor *actor)
{
	unsigned start = draw(actor, HOLDS_MAX);

	for (unsigned i = 0; i < HOLDS_MAX; i++) {
		struct hold *hold = &actor->holds[(start + i) % HOLDS_MAX];

		if (hold->object)
			return hold;
	}
	return NULL;
}

static bool is_full(struct actor *actor)
{
	return hold_free(actor) == NULL;
}

/* What must be so for every handle of such an object; the rest only stays as it was. */
static void prop_check(const struct actor *actor, const struct object *object,
		       const CUmemAllocationProp *prop)
{
	bool is_numa = object->kind == OBJECT_NUMA;
	int type = is_numa ? CU_MEM_LOCATION_TYPE_HOST_NUMA : CU_MEM_LOCATION_TYPE_DEVICE;

	if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || (int)prop->location.type != type ||
	    prop->location.id != (is_numa ? 0 : object->device))
		wrong(actor,
		      "object %u of process %u: its handle tells type %d, location %d of kind %d",
		      model_index(actor, object), object->creator, (int)prop->type,
		      prop->location.id, (int)prop->location.type);
}

bool hold_add(struct actor *actor, struct object *object, CUmemGenericAllocationHandle handle)
{
	struct hold *hold = hold_find(actor, object, handle);

	if (hold) {
		hold->count++;
		return true;
	}
	hold = hold_free(actor);
	if (!hold)
		return false;
	*hold = (struct hold){.object = object, .handle = handle, .count = 1};
	T_OK(cuMemGetAllocationPropertiesFromHandle(&hold->prop, handle));
	prop_check(actor, object, &hold->prop);
	object_keep(actor, object);
	return true;
}

void hold_check(struct actor *actor, const struct hold *hold)
{
	CUmemAllocationProp prop = {0};

	T_OK(cuMemGetAllocationPropertiesFromHandle(&prop, hold->handle));
	prop_check(actor, hold->object, &prop);
	if (prop.requestedHandleTypes != hold->prop.requestedHandleTypes ||
	    prop.allocFlags.usage != hold->prop.allocFlags.usage)
		wrong(actor, "handle 0x%llx: handle types were %u and are %u", hold->handle,
		      (unsigned)hold->prop.requestedHandleTypes,
		      (unsigned)prop.requestedHandleTypes);
}

static CUmemAllocationProp prop_of(const struct actor *actor, enum object_kind kind)
{
	CUmemAllocationProp prop =
		t_prop(kind == OBJECT_PRIVATE ? CU_MEM_HANDLE_TYPE_NONE : T_FD_TYPE);

	prop.location.id = actor->device;
	if (kind == OBJECT_NUMA)
		prop.location = (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_HOST_NUMA};
	return prop;
}

struct hold *hold_make(struct actor *actor, enum object_kind kind, unsigned blocks)
{
	CUmemAllocationProp prop = prop_of(actor, kind);
	CUmemGenericAllocationHandle handle = 0;
	struct hold *hold;
	struct object *object;

	if (is_full(actor))
		return NULL;
	object = model_object_new(actor);
	if (!object)
		return NULL;
	object->kind = kind;
	object->creator = actor->process;
	object->device = actor->device;
	object->blocks = blocks;
	memset(object->pieces, 0, sizeof(object->pieces));
	T_OK(cuMemCreate(&handle, object_bytes(object), &prop, 0));
	T_TRUE(hold_add(actor, object, handle));
	hold = hold_find(actor, object, handle);
	model_unlock(&object->mutex);
	return hold;
}

void handle_create(struct actor *actor)
{
	static const enum object_kind kinds[] = {OBJECT_SHARED, OBJECT_SHARED, OBJECT_SHARED,
						 OBJECT_PRIVATE, OBJECT_NUMA};

	(void)hold_make(actor, kinds[draw(actor, sizeof(kinds) / sizeof(kinds[0]))],
			1 + draw(actor, BLOCKS_MAX));
}

bool hold_release(struct actor *actor, struct hold *hold)
{
	struct object *object = hold->object;
	bool is_last = hold->count == 1;

	model_lock(&object->mutex);
	if (is_last && object_is_awaited(actor, object, 1)) {
		model_unlock(&object->mutex);
		return false;
	}
	T_OK(cuMemRelease(hold->handle));
	hold->count--;
	if (is_last) {
		hold->object = NULL;
		object_let_go(actor, object);
	}
	model_unlock(&object->mutex);
	return true;
}

void handle_release(struct actor *actor)
{
	struct hold *hold = hold_any(actor);

	if (hold)
		(void)hold_release(actor, hold);
}

/* ---- descriptors ---- */

bool mail_send(struct actor *actor, unsigned to, const struct mail *mail,
	       CUmemGenericAllocationHandle handle)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = (void *)(uintptr_t)mail, .iov_len = sizeof(*mail)};
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	int fd = t_export(handle);
	ssize_t sent;

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	sent = sendmsg(actor->model->mailboxes[to][1], &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	T_SYS(close(fd));
	if (sent < 0 && (errno == EAGAIN || errno == ETOOMANYREFS))
		return false;
	T_EQ(sent, sizeof(*mail));
	return true;
}

static bool mail_receive(struct actor *actor, struct mail *ret_mail, int *ret_fd)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec part = {.iov_base = ret_mail, .iov_len = sizeof(*ret_mail)};
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *header;
	ssize_t got = recvmsg(actor->model->mailboxes[actor->index][0], &message,
			      MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	if (got < 0 && errno == EAGAIN)
		return false;
	T_EQ(got, sizeof(*ret_mail));
	header = CMSG_FIRSTHDR(&message);
	T_TRUE(header != NULL);
	T_EQ(header->cmsg_type, SCM_RIGHTS);
	memcpy(ret_fd, CMSG_DATA(header), sizeof(*ret_fd));
	return true;
}

static bool is_exportable(const struct actor *actor, const struct hold *hold)
{
	const struct object *object = hold->object;

	/* a handle that was imported tells no type; it is exported again where the driver does not refuse that */
	return object->kind != OBJECT_PRIVATE && object->keeps[object->creator] > 0 &&
	       (hold->prop.requestedHandleTypes == T_FD_TYPE || actor->options->reexports);
}

void handle_send(struct actor *actor)
{
	struct hold *hold = hold_any(actor);
	unsigned actors = actor->options->processes * THREADS;
	struct mail mail = {.kind = MAIL_OBJECT};

	if (!hold)
		return;
	mail.object = model_index(actor, hold->object);
	model_lock(&hold->object->mutex);
	if (is_exportable(actor, hold) &&
	    mail_send(actor, draw(actor, actors), &mail, hold->handle))
		hold->object->flights++;
	model_unlock(&hold->object->mutex);
}

static void object_take(struct actor *actor, struct object *object, int fd)
{
	CUmemGenericAllocationHandle handle = 0;

	model_lock(&object->mutex);
	T_TRUE(object->flights > 0);
	handle = t_import(fd);
	if (!hold_add(actor, object, handle))
		T_OK(cuMemRelease(handle));
	object->flights--;
	model_unlock(&object->mutex);
}

void mail_take(struct actor *actor)
{
	struct mail mail;
	int fd;

	for (int i = 0; i < MAILS_AT_ONCE && mail_receive(actor, &mail, &fd); i++) {
		if (mail.kind == MAIL_TEAM)
			team_join(actor, fd);
		else
			object_take(actor, &actor->model->objects[mail.object], fd);
		T_SYS(close(fd));
	}
}

void handles_check(struct actor *actor)
{
	for (size_t i = 0; i < HOLDS_MAX; i++)
		if (actor->holds[i].object)
			hold_check(actor, &actor->holds[i]);
}
