/*
 * See codec.h.
 */

#include "wire/codec.h"

#include <string.h>

struct stasis_wire_codec stasis_wire_reader(const void *bytes, size_t byte_count)
{
	return (struct stasis_wire_codec){.from = bytes, .byte_count = byte_count};
}

struct stasis_wire_codec stasis_wire_writer(void *bytes, size_t byte_count)
{
	return (struct stasis_wire_codec){.to = bytes, .byte_count = byte_count};
}

void stasis_wire_check(struct stasis_wire_codec *codec, bool is_right, const char *fault)
{
	if (!is_right && !codec->fault)
		codec->fault = fault;
}

static bool has_room(struct stasis_wire_codec *codec, size_t byte_count)
{
	stasis_wire_check(codec, byte_count <= codec->byte_count - codec->at,
			  stasis_wire_is_reading(codec) ? "it ends in the middle of a field"
							: "it does not fit");
	return !codec->fault;
}

/* The low `byte_count` bytes of a number. */
static void number(struct stasis_wire_codec *codec, uint64_t *value, size_t byte_count)
{
	uint64_t result = 0;

	if (!has_room(codec, byte_count)) {
		if (stasis_wire_is_reading(codec))
			*value = 0;
		return;
	}
	for (size_t i = 0; i < byte_count; i++) {
		if (stasis_wire_is_reading(codec))
			result |= (uint64_t)codec->from[codec->at + i] << 8 * i;
		else
			codec->to[codec->at + i] = (uint8_t)(*value >> 8 * i);
	}
	codec->at += byte_count;
	if (stasis_wire_is_reading(codec))
		*value = result;
}

void stasis_wire_u8(struct stasis_wire_codec *codec, uint8_t *value)
{
	uint64_t wide = *value;

	number(codec, &wide, sizeof(*value));
	if (stasis_wire_is_reading(codec))
		*value = (uint8_t)wide;
}

void stasis_wire_u16(struct stasis_wire_codec *codec, uint16_t *value)
{
	uint64_t wide = *value;

	number(codec, &wide, sizeof(*value));
	if (stasis_wire_is_reading(codec))
		*value = (uint16_t)wide;
}

void stasis_wire_u32(struct stasis_wire_codec *codec, uint32_t *value)
{
	uint64_t wide = *value;

	number(codec, &wide, sizeof(*value));
	if (stasis_wire_is_reading(codec))
		*value = (uint32_t)wide;
}

void stasis_wire_i32(struct stasis_wire_codec *codec, int32_t *value)
{
	uint64_t wide = (uint32_t)*value;

	number(codec, &wide, sizeof(*value));
	if (stasis_wire_is_reading(codec))
		*value = (int32_t)(uint32_t)wide;
}

void stasis_wire_u64(struct stasis_wire_codec *codec, uint64_t *value)
{
	number(codec, value, sizeof(*value));
}

static void raw(struct stasis_wire_codec *codec, void *bytes, size_t byte_count)
{
	if (!has_room(codec, byte_count)) {
		if (stasis_wire_is_reading(codec))
			memset(bytes, 0, byte_count);
		return;
	}
	if (stasis_wire_is_reading(codec))
		memcpy(bytes, codec->from + codec->at, byte_count);
	else
		memcpy(codec->to + codec->at, bytes, byte_count);
	codec->at += byte_count;
}

void stasis_wire_id(struct stasis_wire_codec *codec, struct stasis_id *id)
{
	raw(codec, id->bytes, sizeof(id->bytes));
}

static bool is_plain(const char *text, size_t byte_count)
{
	for (size_t i = 0; i < byte_count; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte < 0x20 || byte == 0x7f)
			return false;
	}
	return true;
}

void stasis_wire_text(struct stasis_wire_codec *codec, char *text, size_t text_bytes)
{
	uint32_t length = 0;

	if (!stasis_wire_is_reading(codec))
		length = (uint32_t)strnlen(text, text_bytes);
	stasis_wire_u32(codec, &length);
	stasis_wire_check(codec, length < text_bytes, "a text is too long");
	if (codec->fault)
		length = 0;
	raw(codec, text, length);
	if (stasis_wire_is_reading(codec))
		text[length] = '\0';
	stasis_wire_check(codec, is_plain(text, length), "a text holds a control character");
}

void stasis_wire_zero(struct stasis_wire_codec *codec, size_t byte_count)
{
	for (size_t i = 0; i < byte_count && !codec->fault; i++) {
		uint8_t byte = 0;

		stasis_wire_u8(codec, &byte);
		stasis_wire_check(codec, byte == 0, "reserved bytes are not zero");
	}
}

void stasis_wire_zero_until(struct stasis_wire_codec *codec, size_t offset)
{
	if (codec->at < offset)
		stasis_wire_zero(codec, offset - codec->at);
}

int stasis_wire_end(const struct stasis_wire_codec *codec, const char *what,
		    struct stasis_error *err)
{
	if (codec->fault)
		return stasis_fail(err, STASIS_REFUSED, "%s refused: %s (at byte %zu)", what,
				   codec->fault, codec->at);
	if (stasis_wire_is_reading(codec) && codec->at != codec->byte_count)
		return stasis_fail(err, STASIS_REFUSED, "%s refused: %zu bytes too many", what,
				   codec->byte_count - codec->at);
	return 0;
}

uint64_t stasis_wire_sum(const uint8_t *bytes, size_t byte_count)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < byte_count; i++)
		sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
	return sum;
}
