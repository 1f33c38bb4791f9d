/*
 * See id.h.
 */

#include "base/id.h"

#include <string.h>
#include <sys/random.h>

static const char hex_digits[] = "0123456789abcdef";

int stasis_id_random(struct stasis_id *ret_id, struct stasis_error *err)
{
	struct stasis_id id;

	/* Up to 256 bytes come whole and without EINTR once the pool is ready (getrandom(2)). */
	if (getrandom(id.bytes, sizeof(id.bytes), 0) != (ssize_t)sizeof(id.bytes))
		return stasis_fail_errno(err, STASIS_REFUSED, "get 16 random bytes");
	*ret_id = id;
	return 0;
}

bool stasis_id_equal(const struct stasis_id *a, const struct stasis_id *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

static char *hex_write(char *at, const uint8_t *bytes, size_t byte_count)
{
	for (size_t i = 0; i < byte_count; i++) {
		*at++ = hex_digits[bytes[i] >> 4];
		*at++ = hex_digits[bytes[i] & 0xf];
	}
	return at;
}

static bool hex_read(const char **at, uint8_t *bytes, size_t byte_count)
{
	for (size_t i = 0; i < byte_count * 2; i++) {
		const char *digit = **at ? strchr(hex_digits, **at) : NULL;

		if (!digit)
			return false;
		bytes[i / 2] = (uint8_t)(bytes[i / 2] << 4 | (digit - hex_digits));
		(*at)++;
	}
	return true;
}

const char *stasis_id_format(const struct stasis_id *id, char text[STASIS_ID_TEXT_BYTES])
{
	*hex_write(text, id->bytes, sizeof(id->bytes)) = '\0';
	return text;
}

bool stasis_id_parse(const char *text, struct stasis_id *ret_id)
{
	struct stasis_id id = {{0}};

	if (!hex_read(&text, id.bytes, sizeof(id.bytes)) || *text)
		return false;
	*ret_id = id;
	return true;
}

/* The byte counts of a UUID's five groups. */
static const size_t uuid_groups[] = {4, 2, 2, 2, 6};

const char *stasis_uuid_format(const struct stasis_id *uuid, char text[STASIS_UUID_TEXT_BYTES])
{
	const uint8_t *bytes = uuid->bytes;
	char *at = text;

	memcpy(at, "GPU", 3);
	at += 3;
	for (size_t i = 0; i < ARRAY_COUNT(uuid_groups); i++) {
		*at++ = '-';
		at = hex_write(at, bytes, uuid_groups[i]);
		bytes += uuid_groups[i];
	}
	*at = '\0';
	return text;
}

bool stasis_uuid_parse(const char *text, struct stasis_id *ret_uuid)
{
	struct stasis_id uuid = {{0}};
	uint8_t *bytes = uuid.bytes;

	if (strncmp(text, "GPU", 3) != 0)
		return false;
	text += 3;
	for (size_t i = 0; i < ARRAY_COUNT(uuid_groups); i++) {
		if (*text != '-')
			return false;
		text++;
		if (!hex_read(&text, bytes, uuid_groups[i]))
			return false;
		bytes += uuid_groups[i];
	}
	if (*text)
		return false;
	*ret_uuid = uuid;
	return true;
}
