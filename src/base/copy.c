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
#define BLOCK_BYTES 256  /* what one turn of a loop moves */
#define SMALL_BYTES 1024 /* below, nothing is gained */

/* How far ahead the source is asked for: left alone, the processor stops at the end of each page. */
#define AHEAD_BYTES 2048

/* Moves `bytes`, a multiple of BLOCK_BYTES, to where a line begins. */
typedef void lines_function(uint8_t *to, const uint8_t *from, size_t bytes);

__attribute__((target("avx2"))) static void lines_avx2(uint8_t *to, const uint8_t *from,
						       size_t bytes)
{
	for (size_t at = 0; at < bytes; at += LINE_BYTES) {
		__m256i low = _mm256_loadu_si256((const void *)(from + at));
		__m256i high = _mm256_loadu_si256((const void *)(from + at + LINE_BYTES / 2));

		_mm_prefetch((const void *)(from + at + AHEAD_BYTES), _MM_HINT_T0);
		_mm256_stream_si256((void *)(to + at), low);
		_mm256_stream_si256((void *)(to + at + LINE_BYTES / 2), high);
	}
}

__attribute__((target("avx512f"))) static void lines_avx512(uint8_t *to, const uint8_t *from,
							    size_t bytes)
{
	for (size_t at = 0; at < bytes; at += BLOCK_BYTES) {
		for (size_t line = at; line < at + BLOCK_BYTES; line += LINE_BYTES)
			_mm_prefetch((const void *)(from + line + AHEAD_BYTES), _MM_HINT_T0);
		for (size_t line = at; line < at + BLOCK_BYTES; line += LINE_BYTES)
			_mm512_stream_si512((void *)(to + line), _mm512_loadu_si512(from + line));
	}
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

static void copy_avx2(void *to, const void *from, size_t bytes)
{
	copy_by(lines_avx2, to, from, bytes);
}

static void copy_avx512(void *to, const void *from, size_t bytes)
{
	copy_by(lines_avx512, to, from, bytes);
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
#if defined(__x86_64__)
	{"avx512", has_avx512, copy_avx512},
	{"avx2", has_avx2, copy_avx2},
#endif
	{"plain", is_always_supported, copy_plain},
};

void stasis_copy_streaming(void *to, const void *from, size_t bytes)
{
	const struct stasis_copy_kind *kind = kinds;

	while (!kind->is_supported())
		kind++;
	kind->copy(to, from, bytes);
}

const struct stasis_copy_kind *stasis_copy_kinds(size_t *ret_count)
{
	*ret_count = ARRAY_COUNT(kinds);
	return kinds;
}
