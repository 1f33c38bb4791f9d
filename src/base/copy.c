/*
 * See copy.h.
 */

#include "base/copy.h"

#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static bool is_always_supported(void)
{
	return true;
}

static void copy_plain(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
}

#if defined(__x86_64__)

#define LINE_BYTES 64
#define BLOCK_BYTES 256 /* what one turn of a loop moves */
#define AHEAD_BYTES                                                                                \
	2048 /* how far ahead the source is asked for: the processor stops at each page */
#define PAGE_BYTES 4096
#define PAGES 4          /* read by turns, so that more of them are on their way at once */
#define SMALL_BYTES 1024 /* below, nothing is gained */

/* Moves `bytes`, a multiple of BLOCK_BYTES, to where a line begins. */
typedef void lines_function(uint8_t *to, const uint8_t *from, size_t bytes);

__attribute__((target("avx2"))) static void lines_stream_avx2(uint8_t *to, const uint8_t *from,
							      size_t bytes)
{
	for (size_t at = 0; at < bytes; at += LINE_BYTES) {
		__m256i low = _mm256_loadu_si256((const void *)(from + at));
		__m256i high = _mm256_loadu_si256((const void *)(from + at + 32));

		_mm_prefetch((const void *)(from + at + AHEAD_BYTES), _MM_HINT_T0);
		_mm256_stream_si256((void *)(to + at), low);
		_mm256_stream_si256((void *)(to + at + 32), high);
	}
}

__attribute__((target("avx512f"))) static void lines_stream_avx512(uint8_t *to, const uint8_t *from,
								   size_t bytes)
{
	for (size_t at = 0; at < bytes; at += BLOCK_BYTES) {
		for (size_t line = at; line < at + BLOCK_BYTES; line += LINE_BYTES)
			_mm_prefetch((const void *)(from + line + AHEAD_BYTES), _MM_HINT_T0);
		for (size_t line = at; line < at + BLOCK_BYTES; line += LINE_BYTES)
			_mm512_stream_si512((void *)(to + line), _mm512_loadu_si512(from + line));
	}
}

__attribute__((target("avx512f"))) static void lines_store_avx512(uint8_t *to, const uint8_t *from,
								  size_t bytes)
{
	for (size_t at = 0; at < bytes; at += BLOCK_BYTES) {
		for (size_t line = at; line < at + BLOCK_BYTES; line += LINE_BYTES)
			_mm_prefetch((const void *)(from + line + AHEAD_BYTES), _MM_HINT_T0);
		for (size_t line = at; line < at + BLOCK_BYTES; line += LINE_BYTES)
			_mm512_store_si512((void *)(to + line), _mm512_loadu_si512(from + line));
	}
}

__attribute__((target("avx512f"))) static void pages_stream_avx512(uint8_t *to, const uint8_t *from,
								   size_t bytes)
{
	size_t whole = bytes / (PAGES * PAGE_BYTES) * PAGES * PAGE_BYTES;

	for (size_t at = 0; at < whole; at += PAGES * PAGE_BYTES) {
		for (size_t i = 0; i < PAGES * PAGE_BYTES; i += LINE_BYTES) {
			/* The pages of a group by turns, line after line. */
			size_t place = at + i / LINE_BYTES % PAGES * PAGE_BYTES +
				       i / LINE_BYTES / PAGES * LINE_BYTES;

			_mm512_stream_si512((void *)(to + place), _mm512_loadu_si512(from + place));
		}
	}
	lines_stream_avx512(to + whole, from + whole, bytes - whole);
}

static void copy_by(lines_function *lines, void *to, const void *from, size_t bytes)
{
	size_t head = -(uintptr_t)to % LINE_BYTES;
	size_t body = bytes < SMALL_BYTES ? 0 : (bytes - head) / BLOCK_BYTES * BLOCK_BYTES;

	if (body == 0) {
		memcpy(to, from, bytes);
		return;
	}
	memcpy(to, from, head);
	lines((uint8_t *)to + head, (const uint8_t *)from + head, body);
	/* What was streamed is ordered with what follows only by this. */
	_mm_sfence();
	memcpy((uint8_t *)to + head + body, (const uint8_t *)from + head + body,
	       bytes - head - body);
}

static void copy_stream_avx2(void *to, const void *from, size_t bytes)
{
	copy_by(lines_stream_avx2, to, from, bytes);
}

static void copy_stream_avx512(void *to, const void *from, size_t bytes)
{
	copy_by(lines_stream_avx512, to, from, bytes);
}

static void copy_pages_avx512(void *to, const void *from, size_t bytes)
{
	copy_by(pages_stream_avx512, to, from, bytes);
}

static void copy_store_avx512(void *to, const void *from, size_t bytes)
{
	copy_by(lines_store_avx512, to, from, bytes);
}

static void copy_string(void *to, const void *from, size_t bytes)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}

static bool has_avx512(void)
{
	return __builtin_cpu_supports("avx512f");
}

#endif

static const struct stasis_copy_kind kinds[] = {
	{"memcpy", is_always_supported, copy_plain},
#if defined(__x86_64__)
	{"movsb", is_always_supported, copy_string},
	{"stream-avx2", has_avx2, copy_stream_avx2},
	{"stream-avx512", has_avx512, copy_stream_avx512},
	{"pages-avx512", has_avx512, copy_pages_avx512},
	{"store-avx512", has_avx512, copy_store_avx512},
#endif
};

const struct stasis_copy_kind *stasis_copy_kinds(size_t *ret_count)
{
	*ret_count = ARRAY_COUNT(kinds);
	return kinds;
}

const struct stasis_copy_kind *stasis_copy_kind_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	}
	return NULL;
}
