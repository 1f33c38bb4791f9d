/*
 * Description: identities and UUIDs survive being written and read, and nothing but their exact form
 * is read.
 */

#include "unit.h"

#include "base/id.h"

static const char uuid_text[] = "GPU-00112233-4455-6677-8899-aabbccddeeff";
static const char id_text[] = "00112233445566778899aabbccddeeff";

static void random_ids_differ(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_id a;
	struct stasis_id b;

	(void)state;
	assert_done(stasis_id_random(&a, &err), &err);
	assert_done(stasis_id_random(&b, &err), &err);
	assert_true(stasis_id_equal(&a, &a));
	assert_false(stasis_id_equal(&a, &b));
}

static void texts_survive(void **state)
{
	char text[STASIS_UUID_TEXT_BYTES];
	struct stasis_id id;
	struct stasis_id uuid;

	(void)state;
	assert_true(stasis_id_parse(id_text, &id));
	assert_string_equal(stasis_id_format(&id, text), id_text);
	assert_true(stasis_uuid_parse(uuid_text, &uuid));
	assert_string_equal(stasis_uuid_format(&uuid, text), uuid_text);
	assert_true(stasis_id_equal(&id, &uuid));
	assert_int_equal(id.bytes[0], 0x00);
	assert_int_equal(id.bytes[15], 0xff);
}

static void other_texts_are_refused(void **state)
{
	static const char *const bad_ids[] = {
		"",
		"00112233445566778899aabbccddeef",
		"00112233445566778899aabbccddeeff0",
		"00112233445566778899AABBCCDDEEFF",
		"0x112233445566778899aabbccddeeff",
		"g0112233445566778899aabbccddeeff",
	};
	static const char *const bad_uuids[] = {
		"",
		"GPU-",
		"00112233-4455-6677-8899-aabbccddeeff",
		"MIG-00112233-4455-6677-8899-aabbccddeeff",
		"GPU-00112233-4455-6677-8899-aabbccddeef",
		"GPU-00112233-4455-6677-8899-aabbccddeeff0",
		"GPU-00112233445566778899aabbccddeeff",
		"GPU_00112233-4455-6677-8899-aabbccddeeff",
		"GPU-0011223-34455-6677-8899-aabbccddeeff",
	};
	struct stasis_id id = {{0x7e}};

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(bad_ids); i++)
		assert_false(stasis_id_parse(bad_ids[i], &id));
	for (size_t i = 0; i < ARRAY_COUNT(bad_uuids); i++)
		assert_false(stasis_uuid_parse(bad_uuids[i], &id));
	assert_int_equal(id.bytes[0], 0x7e);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_ids_differ),
		cmocka_unit_test(texts_survive),
		cmocka_unit_test(other_texts_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
