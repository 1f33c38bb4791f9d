/*
 * See identity.h. Whoever comes first makes the participant; what the others wait for is one getrandom. A
 * forked child forgets it before any call of its own goes on.
 */

#include "interpose/identity.h"

#include <elf.h>
#include <link.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "interpose/fork.h"

#define DIGITS_MAX 64u

enum knowledge { UNKNOWN, BEING_MADE, KNOWN };

static struct {
	atomic_int knowledge; /* an enum knowledge, of the identity */
	struct stasis_identity identity;
	atomic_int build_knowledge;
	char build[DIGITS_MAX + 1];
} self;

/* The header of the object that this is linked into. NOLINTNEXTLINE(readability-identifier-naming) */
extern const uint8_t __ehdr_start[] __attribute__((visibility("hidden")));

static void forget(void)
{
	int being_made = BEING_MADE;

	atomic_store(&self.knowledge, UNKNOWN);
	/* By a thread that is not there. */
	(void)atomic_compare_exchange_strong(&self.build_knowledge, &being_made, UNKNOWN);
}

/* True: the caller is to make it. */
static bool is_first(atomic_int *knowledge)
{
	for (;;) {
		int state = UNKNOWN;

		if (atomic_compare_exchange_strong(knowledge, &state, BEING_MADE))
			return true;
		if (state == KNOWN)
			return false;
		(void)sched_yield();
	}
}

const struct stasis_identity *stasis_identity_get(void)
{
	struct stasis_error error = STASIS_ERROR_INIT;
	bool is_made;

	if (atomic_load_explicit(&self.knowledge, memory_order_acquire) == KNOWN ||
	    !is_first(&self.knowledge))
		return &self.identity;
	stasis_fork_forget_add(forget);
	is_made = stasis_id_random(&self.identity.participant, &error) == 0;
	atomic_store_explicit(&self.knowledge, is_made ? KNOWN : UNKNOWN, memory_order_release);
	return is_made ? &self.identity : NULL;
}

static void digits_write(const uint8_t *bytes, size_t byte_count)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < byte_count && 2 * i + 1 < DIGITS_MAX; i++) {
		self.build[2 * i] = digits[bytes[i] >> 4];
		self.build[2 * i + 1] = digits[bytes[i] & 0xf];
	}
}

/* Notes are a header, a name and a description, each filled up to 4 bytes. */
static bool build_read(const uint8_t *notes, size_t byte_count)
{
	size_t at = 0;

	while (at + sizeof(ElfW(Nhdr)) <= byte_count) {
		const ElfW(Nhdr) *note = (const void *)(notes + at);
		size_t name_at = at + sizeof(*note);
		size_t bytes_at = name_at + ((note->n_namesz + 3u) & ~3u);

		if (bytes_at + note->n_descsz > byte_count)
			return false;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    memcmp(notes + name_at, "GNU", 4) == 0 && note->n_descsz > 0) {
			digits_write(notes + bytes_at, note->n_descsz);
			return true;
		}
		at = bytes_at + ((note->n_descsz + 3u) & ~3u);
	}
	return false;
}

static bool build_find(void)
{
	const ElfW(Ehdr) *header = (const void *)__ehdr_start;
	const ElfW(Phdr) *segments = (const void *)(__ehdr_start + header->e_phoff);

	for (size_t i = 0; i < header->e_phnum; i++) {
		if (segments[i].p_type == PT_NOTE &&
		    build_read(__ehdr_start + segments[i].p_vaddr, segments[i].p_memsz))
			return true;
	}
	return false;
}

const char *stasis_identity_build(void)
{
	if (atomic_load_explicit(&self.build_knowledge, memory_order_acquire) == KNOWN ||
	    !is_first(&self.build_knowledge))
		return self.build;
	/* A linker that was told to leave the note out. */
	if (!build_find())
		memcpy(self.build, "unknown", sizeof("unknown"));
	atomic_store_explicit(&self.build_knowledge, KNOWN, memory_order_release);
	return self.build;
}
