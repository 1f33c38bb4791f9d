#ifndef STASIS_WIRE_CODEC_H
#define STASIS_WIRE_CODEC_H

/*
 * Fields in a row of bytes, little-endian, described once for both directions: the same function writes a
 * structure and reads it, so that the two cannot differ. The first fault sticks, and every later step does
 * nothing; what a check refuses is refused in both directions, so that nothing is sent that the other side
 * would not take. No allocation; one codec belongs to one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"

struct stasis_wire_codec {
	const uint8_t *from; /* NULL: writing */
	uint8_t *to;         /* NULL: reading */
	size_t byte_count;   /* of the bytes at `from`, or the room at `to` */
	size_t at;
	const char *fault; /* the first one; NULL: none */
};

struct stasis_wire_codec stasis_wire_reader(const void *bytes, size_t byte_count);
struct stasis_wire_codec stasis_wire_writer(void *bytes, size_t byte_count);

static inline bool stasis_wire_is_reading(const struct stasis_wire_codec *codec)
{
	return codec->from != NULL;
}

/* A value that was read and cannot be had is 0. */
void stasis_wire_u8(struct stasis_wire_codec *codec, uint8_t *value);
void stasis_wire_u16(struct stasis_wire_codec *codec, uint16_t *value);
void stasis_wire_u32(struct stasis_wire_codec *codec, uint32_t *value);
void stasis_wire_i32(struct stasis_wire_codec *codec, int32_t *value);
void stasis_wire_u64(struct stasis_wire_codec *codec, uint64_t *value);
void stasis_wire_id(struct stasis_wire_codec *codec, struct stasis_id *id);

/* A length of 32 bits and as many bytes: a text without control characters that fits `text` with its end. */
void stasis_wire_text(struct stasis_wire_codec *codec, char *text, size_t text_bytes);

/* Reserved bytes: written as 0, refused when they are not. _until goes on to that offset. */
void stasis_wire_zero(struct stasis_wire_codec *codec, size_t byte_count);
void stasis_wire_zero_until(struct stasis_wire_codec *codec, size_t offset);

/* `fault` is a text that lives for ever and says what is wrong. */
void stasis_wire_check(struct stasis_wire_codec *codec, bool is_right, const char *fault);

/* -1 where there was a fault, or where not all that was to be read has been. */
NODISCARD int stasis_wire_end(const struct stasis_wire_codec *codec, const char *what,
			      struct stasis_error *err);

/* FNV-1a, 64 bits: finds damage in what lies in a file. */
uint64_t stasis_wire_sum(const uint8_t *bytes, size_t byte_count);

#endif
