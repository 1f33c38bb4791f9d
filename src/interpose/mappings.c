/*
 * See registry.h: all mappings in a tree by address. A treap: a search tree by address and a heap by a random
 * priority, which keeps it flat.
 */

#include "interpose/registry.h"

#include <stdlib.h>
#include <string.h>

static struct stasis_mapping *root GUARDED_BY(stasis_registry.mutex);

struct stasis_mapping *stasis_mapping_new(void)
{
	return calloc(1, sizeof(struct stasis_mapping));
}

void stasis_mapping_free(struct stasis_mapping *mapping)
{
	if (!mapping)
		return;
	free(mapping->access);
	free(mapping);
}

/* A mixing function: addresses are anything but random. */
static uint32_t priority_of(uint64_t address)
{
	address = (address ^ address >> 31) * UINT64_C(0x9e3779b97f4a7c15);
	address = (address ^ address >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
	return (uint32_t)(address >> 32);
}

/* Two of one address are there for a moment when threads of the application race. */
static bool is_before(const struct stasis_mapping *a, const struct stasis_mapping *b)
{
	return a->address < b->address || (a->address == b->address && (uintptr_t)a < (uintptr_t)b);
}

/* Everything before `key` to the left, the rest to the right. */
static void tree_split(struct stasis_mapping *tree, const struct stasis_mapping *key,
		       struct stasis_mapping **ret_left, struct stasis_mapping **ret_right)
{
	while (tree) {
		if (is_before(tree, key)) {
			*ret_left = tree;
			ret_left = &tree->right;
			tree = tree->right;
		} else {
			*ret_right = tree;
			ret_right = &tree->left;
			tree = tree->left;
		}
	}
	*ret_left = NULL;
	*ret_right = NULL;
}

static struct stasis_mapping *tree_join(struct stasis_mapping *left, struct stasis_mapping *right)
{
	struct stasis_mapping *result = NULL;
	struct stasis_mapping **link = &result;

	while (left && right) {
		if (left->priority > right->priority) {
			*link = left;
			link = &left->right;
			left = left->right;
		} else {
			*link = right;
			link = &right->left;
			right = right->left;
		}
	}
	*link = left ? left : right;
	return result;
}

void stasis_mapping_add(struct stasis_mapping *mapping)
{
	struct stasis_mapping **link = &root;

	mapping->priority = priority_of(mapping->address);
	while (*link && (*link)->priority >= mapping->priority)
		link = is_before(*link, mapping) ? &(*link)->right : &(*link)->left;
	tree_split(*link, mapping, &mapping->left, &mapping->right);
	*link = mapping;
	mapping->next = mapping->object->mappings;
	mapping->link = &mapping->object->mappings;
	if (mapping->next)
		mapping->next->link = &mapping->next;
	mapping->object->mappings = mapping;
	mapping->object->mapping_count++;
	mapping->handle->mapping_count++;
	stasis_registry.generation++;
}

void stasis_mapping_remove(struct stasis_mapping *mapping)
{
	struct stasis_mapping **link = &root;

	while (*link != mapping)
		link = is_before(*link, mapping) ? &(*link)->right : &(*link)->left;
	*link = tree_join(mapping->left, mapping->right);
	*mapping->link = mapping->next;
	if (mapping->next)
		mapping->next->link = mapping->link;
	mapping->object->mapping_count--;
	mapping->handle->mapping_count--;
	stasis_registry.generation++;
}

struct stasis_mapping *stasis_mapping_from(uint64_t address)
{
	struct stasis_mapping *found = NULL;

	for (struct stasis_mapping *at = root; at;) {
		if (at->address >= address) {
			found = at;
			at = at->left;
		} else {
			at = at->right;
		}
	}
	return found;
}

struct stasis_mapping *stasis_mapping_at(uint64_t address)
{
	struct stasis_mapping *found = NULL;

	for (struct stasis_mapping *at = root; at;) {
		if (at->address <= address) {
			found = at;
			at = at->right;
		} else {
			at = at->left;
		}
	}
	return found && address - found->address < found->bytes ? found : NULL;
}

static bool is_same_location(const CUmemLocation *a, const CUmemLocation *b)
{
	return a->type == b->type && a->id == b->id;
}

static bool access_append(struct stasis_mapping *mapping, const CUmemAccessDesc *access)
{
	if (mapping->access_count == mapping->access_room) {
		uint32_t room = mapping->access_room ? mapping->access_room * 2 : 4;
		struct stasis_access *more =
			realloc(mapping->access, room * sizeof(mapping->access[0]));

		if (!more)
			return false;
		mapping->access = more;
		mapping->access_room = room;
	}
	mapping->access[mapping->access_count++] = (struct stasis_access){
		.location = access->location, .rights = (uint32_t)access->flags};
	return true;
}

bool stasis_mapping_grant(struct stasis_mapping *mapping, const CUmemAccessDesc *access)
{
	uint32_t i = 0;

	while (i < mapping->access_count &&
	       !is_same_location(&mapping->access[i].location, &access->location))
		i++;
	if (access->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) {
		if (i < mapping->access_count)
			mapping->access[i] = mapping->access[--mapping->access_count];
		return true;
	}
	if (i == mapping->access_count)
		return access_append(mapping, access);
	mapping->access[i].rights = (uint32_t)access->flags;
	return true;
}

void stasis_mappings_forget(void) NO_THREAD_SAFETY_ANALYSIS
{
	root = NULL;
}
