/*
 * See field_kinds.h.
 */

#include "image/field_kinds.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/id.h"

/* The largest whole number up to which all programs that read JSON agree. */
#define NUMBER_MAX (UINT64_C(1) << 53)
#define HEX_TEXT_BYTES 19
#define KNOWN_NAMES_BYTES 160

static int refuse(const struct stasis_image_field_input *input, const char *wanted)
{
	return stasis_fail(input->err, STASIS_BAD_IMAGE, "%s: field '%s' must be %s", input->where,
			   input->field->name, wanted);
}

/* ---- texts ---- */

static int decode_text(const struct stasis_image_field_input *input)
{
	const char *text = json_string_value(input->value);
	size_t bytes = text ? strlen(text) : 0;

	/* An embedded NUL cannot come: the parser refuses it. */
	if (!text || bytes < input->field->min || bytes > input->field->max)
		return stasis_fail(
			input->err, STASIS_BAD_IMAGE,
			"%s: field '%s' must be text of %" PRIu64 " to %" PRIu64 " bytes",
			input->where, input->field->name, input->field->min, input->field->max);
	for (size_t i = 0; i < bytes; i++) {
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return refuse(input, "text without control characters");
	}
	memcpy(input->at, text, bytes + 1);
	return 0;
}

static json_t *encode_text(const struct stasis_image_field *field, const void *at)
{
	(void)field;
	return stasis_image_text_encode(at);
}

static int decode_text_or_null(const struct stasis_image_field_input *input)
{
	if (json_is_null(input->value)) {
		*(char *)input->at = '\0';
		return 0;
	}
	return decode_text(input);
}

static json_t *encode_text_or_null(const struct stasis_image_field *field, const void *at)
{
	return *(const char *)at ? encode_text(field, at) : json_null();
}

/* ---- numbers ---- */

static int number_read(const struct stasis_image_field_input *input, int64_t min, int64_t max,
		       int64_t *ret_value)
{
	json_int_t value = json_integer_value(input->value);

	if (!json_is_integer(input->value) || value < min || value > max)
		return stasis_fail(input->err, STASIS_BAD_IMAGE,
				   "%s: field '%s' must be a whole number from %" PRId64
				   " to %" PRId64,
				   input->where, input->field->name, min, max);
	*ret_value = value;
	return 0;
}

/* Within the bounds of the table, which are those of the field's type or closer. */
static int bounded_read(const struct stasis_image_field_input *input, int64_t *ret_value)
{
	return number_read(input, (int64_t)input->field->min, (int64_t)input->field->max,
			   ret_value);
}

static int decode_u8(const struct stasis_image_field_input *input)
{
	int64_t value = 0;

	if (bounded_read(input, &value) != 0)
		return -1;
	*(uint8_t *)input->at = (uint8_t)value;
	return 0;
}

static json_t *encode_u8(const struct stasis_image_field *field, const void *at)
{
	(void)field;
	return json_integer(*(const uint8_t *)at);
}

static int decode_u16(const struct stasis_image_field_input *input)
{
	int64_t value = 0;

	if (bounded_read(input, &value) != 0)
		return -1;
	*(uint16_t *)input->at = (uint16_t)value;
	return 0;
}

static json_t *encode_u16(const struct stasis_image_field *field, const void *at)
{
	(void)field;
	return json_integer(*(const uint16_t *)at);
}

static int decode_u32(const struct stasis_image_field_input *input)
{
	int64_t value = 0;

	if (bounded_read(input, &value) != 0)
		return -1;
	*(uint32_t *)input->at = (uint32_t)value;
	return 0;
}

static json_t *encode_u32(const struct stasis_image_field *field, const void *at)
{
	(void)field;
	return json_integer(*(const uint32_t *)at);
}

static int decode_s32(const struct stasis_image_field_input *input)
{
	int64_t value = 0;

	if (bounded_read(input, &value) != 0)
		return -1;
	*(int32_t *)input->at = (int32_t)value;
	return 0;
}

static json_t *encode_s32(const struct stasis_image_field *field, const void *at)
{
	(void)field;
	return json_integer(*(const int32_t *)at);
}

static int decode_signed(const struct stasis_image_field_input *input)
{
	int64_t value = 0;

	if (number_read(input, INT32_MIN, INT32_MAX, &value) != 0)
		return -1;
	*(int32_t *)input->at = (int32_t)value;
	return 0;
}

static int decode_u64(const struct stasis_image_field_input *input)
{
	int64_t value = 0;

	if (bounded_read(input, &value) != 0)
		return -1;
	*(uint64_t *)input->at = (uint64_t)value;
	return 0;
}

static json_t *encode_u64(const struct stasis_image_field *field, const void *at)
{
	(void)field;
	return json_integer((json_int_t) * (const uint64_t *)at);
}

/* ---- 64 bits, all of which may be needed ---- */

static const char *hex_format(uint64_t value, char text[HEX_TEXT_BYTES])
{
	(void)snprintf(text, HEX_TEXT_BYTES, "0x%" PRIx64, value);
	return text;
}

/* Only as hex_format() writes it: lower case, and no more digits than needed. */
static bool hex_parse(const char *text, uint64_t *ret_value)
{
	static const char digits[] = "0123456789abcdef";
	char again[HEX_TEXT_BYTES];
	uint64_t value = 0;

	if (!text || strncmp(text, "0x", 2) != 0 || strlen(text) >= sizeof(again))
		return false;
	for (const char *at = text + 2; *at; at++) {
		const char *digit = strchr(digits, *at);

		if (!digit)
			return false;
		value = value << 4 | (uint64_t)(digit - digits);
	}
	if (strcmp(hex_format(value, again), text) != 0)
		return false;
	*ret_value = value;
	return true;
}

static int decode_address(const struct stasis_image_field_input *input)
{
	if (!hex_parse(json_string_value(input->value), input->at))
		return refuse(input, "text such as '0x7f0000200000'");
	return 0;
}

static json_t *encode_address(const struct stasis_image_field *field, const void *at)
{
	char text[HEX_TEXT_BYTES];

	(void)field;
	return json_string(hex_format(*(const uint64_t *)at, text));
}

static int decode_wide(const struct stasis_image_field_input *input)
{
	uint64_t large = 0;
	int64_t value = 0;

	if (json_is_string(input->value)) {
		if (!hex_parse(json_string_value(input->value), &large) || large <= NUMBER_MAX)
			return refuse(input,
				      "a number, or above 2^53 text such as '0x20000000000001'");
		*(uint64_t *)input->at = large;
		return 0;
	}
	if (number_read(input, 0, (int64_t)NUMBER_MAX, &value) != 0)
		return -1;
	*(uint64_t *)input->at = (uint64_t)value;
	return 0;
}

static json_t *encode_wide(const struct stasis_image_field *field, const void *at)
{
	uint64_t value = *(const uint64_t *)at;

	return value > NUMBER_MAX ? encode_address(field, at) : json_integer((json_int_t)value);
}

/* ---- names and bits ---- */

static int name_refuse(const struct stasis_image_field_input *input)
{
	const struct stasis_image_field *field = input->field;
	char known[KNOWN_NAMES_BYTES] = "one of";
	size_t length = strlen(known);

	for (uint64_t i = field->min; i <= field->max && length < sizeof(known); i++)
		length += (size_t)snprintf(known + length, sizeof(known) - length, " '%s'",
					   field->names[i]);
	return refuse(input, known);
}

static int decode_name(const struct stasis_image_field_input *input)
{
	const struct stasis_image_field *field = input->field;
	const char *text = json_string_value(input->value);

	for (uint64_t i = field->min; text && i <= field->max; i++) {
		if (strcmp(text, field->names[i]) == 0) {
			*(uint32_t *)input->at = (uint32_t)i;
			return 0;
		}
	}
	return name_refuse(input);
}

static json_t *encode_name(const struct stasis_image_field *field, const void *at)
{
	return json_string(field->names[*(const uint32_t *)at]);
}

static int decode_bit(const struct stasis_image_field_input *input)
{
	uint32_t bit = (uint32_t)input->field->max;
	uint32_t *flags = input->at;

	if (!json_is_boolean(input->value))
		return refuse(input, "true or false");
	*flags = json_is_true(input->value) ? *flags | bit : *flags & ~bit;
	return 0;
}

static json_t *encode_bit(const struct stasis_image_field *field, const void *at)
{
	return json_boolean((*(const uint32_t *)at & field->max) != 0);
}

/* ---- ids and digests ---- */

static bool is_none(const struct stasis_id *id)
{
	static const struct stasis_id none;

	return stasis_id_equal(id, &none);
}

static int decode_id(const struct stasis_image_field_input *input)
{
	const char *text = json_string_value(input->value);

	if (!text || !stasis_id_parse(text, input->at))
		return refuse(input, "32 lower-case hexadecimal digits");
	return 0;
}

static json_t *encode_id(const struct stasis_image_field *field, const void *at)
{
	char text[STASIS_ID_TEXT_BYTES];

	(void)field;
	return json_string(stasis_id_format(at, text));
}

static int decode_uuid(const struct stasis_image_field_input *input)
{
	const char *text = json_string_value(input->value);

	if (!text || !stasis_uuid_parse(text, input->at))
		return refuse(input, "a GPU's UUID, 'GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx'");
	return 0;
}

static json_t *encode_uuid(const struct stasis_image_field *field, const void *at)
{
	char text[STASIS_UUID_TEXT_BYTES];

	(void)field;
	return json_string(stasis_uuid_format(at, text));
}

/* All zero is written as null and in no other way. */
static int or_null(const struct stasis_image_field_input *input,
		   int (*decode)(const struct stasis_image_field_input *input))
{
	if (json_is_null(input->value)) {
		memset(input->at, 0, sizeof(struct stasis_id));
		return 0;
	}
	if (decode(input) != 0)
		return -1;
	return is_none(input->at) ? refuse(input, "null, or not all zeros") : 0;
}

static int decode_id_or_null(const struct stasis_image_field_input *input)
{
	return or_null(input, decode_id);
}

static json_t *encode_id_or_null(const struct stasis_image_field *field, const void *at)
{
	return is_none(at) ? json_null() : encode_id(field, at);
}

static int decode_uuid_or_null(const struct stasis_image_field_input *input)
{
	return or_null(input, decode_uuid);
}

static json_t *encode_uuid_or_null(const struct stasis_image_field *field, const void *at)
{
	return is_none(at) ? json_null() : encode_uuid(field, at);
}

static int decode_digest(const struct stasis_image_field_input *input)
{
	const char *text = json_string_value(input->value);

	if (!text || !stasis_digest_parse(text, input->at))
		return refuse(input, "32 lower-case hexadecimal digits");
	return 0;
}

static json_t *encode_digest(const struct stasis_image_field *field, const void *at)
{
	char text[STASIS_DIGEST_TEXT_BYTES];

	(void)field;
	return json_string(stasis_digest_format(at, text));
}

/* ---- what the caller reads and writes ---- */

static int decode_other(const struct stasis_image_field_input *input)
{
	(void)input;
	return 0;
}

static json_t *encode_other(const struct stasis_image_field *field, const void *at)
{
	(void)field;
	(void)at;
	return json_null();
}

static const struct stasis_image_field_codec codecs[] = {
	[STASIS_IMAGE_FIELD_TEXT] = {decode_text, encode_text},
	[STASIS_IMAGE_FIELD_TEXT_OR_NULL] = {decode_text_or_null, encode_text_or_null},
	[STASIS_IMAGE_FIELD_U8] = {decode_u8, encode_u8},
	[STASIS_IMAGE_FIELD_U16] = {decode_u16, encode_u16},
	[STASIS_IMAGE_FIELD_U32] = {decode_u32, encode_u32},
	[STASIS_IMAGE_FIELD_S32] = {decode_s32, encode_s32},
	[STASIS_IMAGE_FIELD_SIGNED] = {decode_signed, encode_s32},
	[STASIS_IMAGE_FIELD_U64] = {decode_u64, encode_u64},
	[STASIS_IMAGE_FIELD_WIDE] = {decode_wide, encode_wide},
	[STASIS_IMAGE_FIELD_ADDRESS] = {decode_address, encode_address},
	[STASIS_IMAGE_FIELD_NAME] = {decode_name, encode_name},
	[STASIS_IMAGE_FIELD_BIT] = {decode_bit, encode_bit},
	[STASIS_IMAGE_FIELD_ID] = {decode_id, encode_id},
	[STASIS_IMAGE_FIELD_ID_OR_NULL] = {decode_id_or_null, encode_id_or_null},
	[STASIS_IMAGE_FIELD_UUID] = {decode_uuid, encode_uuid},
	[STASIS_IMAGE_FIELD_UUID_OR_NULL] = {decode_uuid_or_null, encode_uuid_or_null},
	[STASIS_IMAGE_FIELD_DIGEST] = {decode_digest, encode_digest},
	[STASIS_IMAGE_FIELD_OTHER] = {decode_other, encode_other},
	[STASIS_IMAGE_FIELD_OPTIONAL] = {decode_other, encode_other},
};

const struct stasis_image_field_codec *stasis_image_field_codec(enum stasis_image_field_kind kind)
{
	return &codecs[kind];
}
