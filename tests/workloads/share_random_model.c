/*
 * The model of share_random: memory of all its processes, which says what there is and what must stand in it. Nothing
 * here knows the driver.
 */
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "check.h"
#include "share_random.h"

/* splitmix64; below 2^32 the bias does not matter. */
uint32_t draw(struct actor *actor, uint32_t below)
{
	uint64_t z = actor->chance += 0x9e3779b97f4a7c15U;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
	return (uint32_t)((z ^ (z >> 31)) % below);
}

static void mutex_make(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t shared;

	T_EQ(pthread_mutexattr_init(&shared), 0);
	T_EQ(pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED), 0);
	T_EQ(pthread_mutex_init(mutex, &shared), 0);
	T_EQ(pthread_mutexattr_destroy(&shared), 0);
}

void model_make(struct model *model, unsigned actors)
{
	for (size_t i = 0; i < OBJECTS_MAX; i++)
		mutex_make(&model->objects[i].mutex);
	mutex_make(&model->team.mutex);
	for (unsigned i = 0; i < actors; i++)
		T_SYS(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, model->mailboxes[i]));
}

void model_lock(pthread_mutex_t *mutex)
{
	T_EQ(pthread_mutex_lock(mutex), 0);
}

void model_unlock(pthread_mutex_t *mutex)
{
	T_EQ(pthread_mutex_unlock(mutex), 0);
}

struct object *model_object_new(struct actor *actor)
{
	for (size_t i = 0; i < OBJECTS_MAX; i++) {
		struct object *object = &actor->model->objects[i];

		if (pthread_mutex_trylock(&object->mutex) != 0)
			continue;
		if (object->kind == OBJECT_NONE)
			return object;
		model_unlock(&object->mutex);
	}
	return NULL;
}

unsigned model_index(const struct actor *actor, const struct object *object)
{
	return (unsigned)(object - actor->model->objects);
}

size_t object_bytes(const struct object *object)
{
	return object->blocks * BLOCK_BYTES;
}

void object_keep(struct actor *actor, struct object *object)
{
	object->keeps[actor->process]++;
}

void object_let_go(struct actor *actor, struct object *object)
{
	T_TRUE(object->keeps[actor->process] > 0);
	object->keeps[actor->process]--;
	for (size_t i = 0; i < PROCESSES_MAX; i++)
		if (object->keeps[i] > 0)
			return;
	T_EQ(object->flights, 0);
	object->kind = OBJECT_NONE;
}

bool object_is_awaited(const struct actor *actor, const struct object *object, unsigned count)
{
	return object->flights > 0 && object->creator == actor->process &&
	       object->keeps[actor->process] <= count;
}

uint32_t mix(uint32_t seed, uint32_t index)
{
	uint32_t word = seed * 2654435761U + index * 2246822519U;

	word ^= word >> 15;
	word *= 3266489917U;
	return word ^ (word >> 13);
}

uint32_t piece_word(const struct piece *piece, uint32_t index)
{
	return piece->factor * mix(piece->seed, index) + piece->added;
}

void wrong(const struct actor *actor, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	t_fail("share_random: process %d (%u), thread %u, round %llu: %s", (int)getpid(),
	       actor->process, actor->index % THREADS,
	       (unsigned long long)actor->model->rounds[actor->index], text);
}
