/* See assemble.h. */

#include "group/assemble.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "group/ask.h"

/* What one participant is to load. */
struct load {
	struct stasis_wire_export *items;
	int *fds;
	size_t count;
};

static void cleanup_load(struct load *load)
{
	free(load->items);
	free(load->fds);
}

static int load_begin(struct load *load, size_t room, struct stasis_error *err)
{
	load->items = calloc(room + 1, sizeof(load->items[0]));
	load->fds = calloc(room + 1, sizeof(load->fds[0]));
	if (load->items && load->fds)
		return 0;
	return stasis_fail_code(err, STASIS_REFUSED, ENOMEM, "list what a process loads");
}

struct attachment {
	const struct stasis_kept *kept;
	uint64_t limit_ns;
	bool is_first; /* nothing was loaded yet: those without memory are asked, too */
};

static int attached_load(struct stasis_group *group, size_t index, void *argument,
			 struct stasis_error *err)
{
	const struct attachment *attachment = argument;
	struct stasis_group_process *process = &group->processes[index];
	const struct stasis_topology *topology = &group->topology;
	CLEANUP(load) struct load load = {.count = 0};

	if (load_begin(&load, topology->object_count, err) != 0)
		return -1;
	for (uint32_t i = 0; i < topology->object_count; i++) {
		const struct stasis_group_object *object = &topology->objects[i];
		const struct stasis_kept_item *item =
			stasis_kept_find(attachment->kept, &object->id);

		if (!item || !stasis_group_is_holder(process, object))
			continue;
		load.items[load.count].object = item->object;
		load.items[load.count].bytes = item->bytes;
		load.fds[load.count++] = item->fd;
	}
	if (load.count == 0 && !attachment->is_first)
		return 0;
	return stasis_ask_load(&process->participant, load.items, load.fds, load.count,
			       attachment->limit_ns, err);
}

int stasis_assemble_attached(struct stasis_group *group, const struct stasis_kept *kept,
			     bool is_first, uint64_t limit_ns, struct stasis_error *err)
{
	struct attachment attachment = {.kept = kept, .limit_ns = limit_ns, .is_first = is_first};

	if (stasis_group_each_participant(group, attached_load, &attachment, err) != 0)
		return -1;
	return stasis_group_ask(group, STASIS_WIRE_RESTORE_UNICAST, limit_ns, err);
}

struct ownership {
	const struct stasis_layout *layout;
	uint64_t limit_ns;
};

static int owned_load(struct stasis_group *group, size_t index, void *argument,
		      struct stasis_error *err)
{
	const struct ownership *ownership = argument;
	const struct stasis_layout *layout = ownership->layout;
	struct stasis_group_process *process = &group->processes[index];
	CLEANUP(load) struct load load = {.count = 0};

	if (load_begin(&load, layout->item_count, err) != 0)
		return -1;
	for (size_t i = 0; i < layout->item_count; i++) {
		const struct stasis_group_object *object = layout->items[i].object;

		if (stasis_group_owner(group, object) != process)
			continue;
		load.items[load.count].object = object->id;
		load.items[load.count++].bytes = object->bytes;
	}
	return stasis_ask_load(&process->participant, load.items, NULL, load.count,
			       ownership->limit_ns, err);
}

int stasis_assemble_owned(struct stasis_group *group, const struct stasis_layout *layout,
			  uint64_t limit_ns, struct stasis_error *err)
{
	struct ownership ownership = {.layout = layout, .limit_ns = limit_ns};

	return stasis_group_each_participant(group, owned_load, &ownership, err);
}

int stasis_assemble_multicast(struct stasis_group *group, uint64_t limit_ns,
			      struct stasis_error *err)
{
	static const enum stasis_wire_phase phases[] = {
		STASIS_WIRE_RESTORE_MULTICAST_CREATORS,
		STASIS_WIRE_RESTORE_MULTICAST_IMPORTERS,
		STASIS_WIRE_RESTORE_MULTICAST_DEVICES,
		STASIS_WIRE_RESTORE_MULTICAST_BINDINGS,
	};

	for (size_t i = 0; i < ARRAY_COUNT(phases); i++) {
		if (stasis_group_ask(group, phases[i], limit_ns, err) != 0)
			return -1;
	}
	return 0;
}
