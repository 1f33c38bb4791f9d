/*
 * Description: the interposer's notes hold each name once, cut long ones, and count what does not fit.
 */

#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "interpose/notes.h"

static void each_name_once(void **state)
{
	char name[64];

	(void)state;
	assert_false(stasis_notes_get(0, name));
	stasis_notes_add("cuOne");
	stasis_notes_add("cuTwo");
	stasis_notes_add("cuOne");
	stasis_notes_add(NULL);
	assert_int_equal(stasis_notes_count(), 2);
	assert_true(stasis_notes_get(1, name));
	assert_string_equal(name, "cuTwo");
	assert_false(stasis_notes_get(2, name));
}

static void long_names_are_cut(void **state)
{
	char long_name[200];
	char name[64];
	uint32_t count = stasis_notes_count();

	(void)state;
	memset(long_name, 'x', sizeof(long_name));
	long_name[sizeof(long_name) - 1] = '\0';
	stasis_notes_add(long_name);
	stasis_notes_add(long_name);
	assert_int_equal(stasis_notes_count(), count + 1);
	assert_true(stasis_notes_get(count, name));
	assert_int_equal(strlen(name), 63);
}

static void what_does_not_fit_is_counted(void **state)
{
	char name[64];

	(void)state;
	for (int i = 0; i < 2 * STASIS_NOTES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "cuNumber%d", i);
		stasis_notes_add(name);
	}
	assert_int_equal(stasis_notes_count(), STASIS_NOTES_MAX);
	assert_true(stasis_notes_lost() >= STASIS_NOTES_MAX);
	assert_true(stasis_notes_get(STASIS_NOTES_MAX - 1, name));
	assert_false(stasis_notes_get(STASIS_NOTES_MAX, name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_name_once),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(what_does_not_fit_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
