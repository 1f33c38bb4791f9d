/*
 * Description: what is legal where: a capture and a rebuild in order, undo from every point of both, and nothing
 * else.
 */

#include "unit.h"

#include <ctype.h>

#include "interpose/lifecycle.h"

/* A way through the phases: a letter each; a capital phase fails. */
static const struct {
	char letter;
	enum stasis_wire_phase phase;
	uint32_t step;
} letters[] = {
	{'c', STASIS_WIRE_GATE, STASIS_WIRE_GATE_CAPTURES},
	{'g', STASIS_WIRE_GATE, STASIS_WIRE_GATE_ALL},
	{'s', STASIS_WIRE_SAVE_ALLOCATIONS, 0},
	{'a', STASIS_WIRE_ARM, 0},
	{'m', STASIS_WIRE_PREPARE_MULTICAST, 0},
	{'u', STASIS_WIRE_PREPARE_UNICAST, 0},
	{'l', STASIS_WIRE_LOAD_ALLOCATIONS, 0},
	{'d', STASIS_WIRE_LOAD_ALLOCATIONS, 0},
	{'e', STASIS_WIRE_EXPORT_ALLOCATIONS, 0},
	{'r', STASIS_WIRE_RESTORE_UNICAST, 0},
	{'w', STASIS_WIRE_RESTORE_MULTICAST_CREATORS, 0},
	{'x', STASIS_WIRE_RESTORE_MULTICAST_IMPORTERS, 0},
	{'y', STASIS_WIRE_RESTORE_MULTICAST_DEVICES, 0},
	{'z', STASIS_WIRE_RESTORE_MULTICAST_BINDINGS, 0},
	{'o', STASIS_WIRE_OPEN, 0},
};

static struct stasis_wire_message request;

static void request_set(size_t index)
{
	memset(&request, 0, sizeof(request));
	request.kind = STASIS_WIRE_REQUEST;
	request.phase = letters[index].phase;
	request.descriptor_count = letters[index].letter == 'd'; /* LOAD that attaches */
	if (request.phase == STASIS_WIRE_GATE)
		request.gate_request.step = letters[index].step;
}

static size_t letter_find(int letter)
{
	size_t index = 0;

	while (letters[index].letter != (letter | 0x20)) /* lower case */
		index++;
	return index;
}

/* Where one stands after that way; each step of it must be legal. */
static enum stasis_standing walk(const char *way)
{
	enum stasis_standing standing = STASIS_STANDING_RUNNING;

	for (const char *at = way; *at; at++) {
		struct stasis_error err = STASIS_ERROR_INIT;
		bool is_failure = isupper(*at) != 0;

		request_set(letter_find(*at));
		if (stasis_lifecycle_check(standing, &request, &err) != 0)
			fail_msg("way '%s' at '%s': %s", way, at, err.text);
		standing = stasis_lifecycle_after(standing, &request, !is_failure);
	}
	return standing;
}

static const struct {
	const char *way;
	enum stasis_standing standing;
	const char *legal; /* besides PEERS and INSPECT */
} ways[] = {
	{"", STASIS_STANDING_RUNNING, "co"},
	{"c", STASIS_STANDING_CAPTURES_HELD, "cgo"},
	{"cg", STASIS_STANDING_GATED, "sao"},
	{"cgsa", STASIS_STANDING_ARMED, "smo"},
	{"cgsam", STASIS_STANDING_UNICAST_UP, "muw"},
	{"cgsamu", STASIS_STANDING_DOWN, "uld"},
	{"cgsamul", STASIS_STANDING_LOADED, "uerd"},
	{"cgsamuld", STASIS_STANDING_LOADED, "uerd"},
	{"cgsamulD", STASIS_STANDING_LOADED, "uerd"},
	{"cgsamuler", STASIS_STANDING_UNICAST_UP, "muw"},
	{"cgsamulerw", STASIS_STANDING_MULTICAST_CREATED, "mx"},
	{"cgsamulerwx", STASIS_STANDING_MULTICAST_IMPORTED, "my"},
	{"cgsamulerwxy", STASIS_STANDING_MULTICAST_JOINED, "mz"},
	{"cgsamulerwxyz", STASIS_STANDING_ARMED, "smo"},
	{"cgsamulerwxyzo", STASIS_STANDING_RUNNING, "co"},
};

static void legal_check(const char *way, enum stasis_standing standing, size_t index, bool is_legal)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	request_set(index);
	if ((stasis_lifecycle_check(standing, &request, &err) == 0) != is_legal)
		fail_msg("after '%s': '%c' is %s", way, letters[index].letter,
			 is_legal ? "refused" : "not refused");
}

static void each_standing_has_its_phases(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		enum stasis_standing standing = walk(ways[i].way);

		assert_int_equal(standing, ways[i].standing);
		for (size_t j = 0; j < sizeof(letters) / sizeof(letters[0]); j++)
			legal_check(ways[i].way, standing, j,
				    strchr(ways[i].legal, letters[j].letter) != NULL);
	}
}

/* Each is undone to RUNNING, but for the last ones, which go back to being suspended. */
static void every_failure_can_be_undone(void **state)
{
	static const char *const undone[] = {
		"Co",
		"cGo",
		"cGocgsao",
		"cgSo",
		"cgsAo",
		"cgsao",
		"cgsaMwxyzo",
		"cgsamwxyzo",
		"cgsamUlrwxyzo",
		"cgsamulrwxyzo",
		"cgsamuLlrwxyzo",
		"cgsamuDdrwxyzo",
		"cgsamulDdrwxyzo",
		"cgsamulRdrwxyzo",
		"cgsamulRrwxyzo",
		"cgsamulRulrwxyzo",
		"cgsamulrWmwxyzo",
		"cgsamulrwXmwxyzo",
		"cgsamulrwxYmwxyzo",
		"cgsamulrwxyZmwxyzo",
	};
	static const char *const suspended[] = {"cgsamuLu", "cgsamulEu", "cgsamulRu", "cgsamulrWmu",
						"cgsamulrwxyzmu"};

	(void)state;
	for (size_t i = 0; i < sizeof(undone) / sizeof(undone[0]); i++)
		assert_int_equal(walk(undone[i]), STASIS_STANDING_RUNNING);
	for (size_t i = 0; i < sizeof(suspended) / sizeof(suspended[0]); i++)
		assert_int_equal(walk(suspended[i]), STASIS_STANDING_DOWN);
}

static void a_page_that_is_not_the_last_completes_nothing(void **state)
{
	(void)state;
	request_set(letter_find('l'));
	request.flags = STASIS_WIRE_MORE;
	assert_int_equal(stasis_lifecycle_after(STASIS_STANDING_DOWN, &request, true),
			 STASIS_STANDING_DOWN);
	request.flags = 0;
	assert_int_equal(stasis_lifecycle_after(STASIS_STANDING_DOWN, &request, true),
			 STASIS_STANDING_LOADED);
}

static void refusals_say_where_one_stands(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	request_set(letter_find('u'));
	assert_refused(stasis_lifecycle_check(STASIS_STANDING_GATED, &request, &err), &err,
		       STASIS_REFUSED,
		       "PREPARE_UNICAST refused: this participant is held at the gate; nothing was "
		       "done");
	err = (struct stasis_error)STASIS_ERROR_INIT;
	request.phase = STASIS_WIRE_FETCH;
	assert_refused(stasis_lifecycle_check(STASIS_STANDING_GATED, &request, &err), &err,
		       STASIS_REFUSED, "FETCH is no phase of a session");
}

static void from_arm_on_the_gate_stays_shut(void **state)
{
	(void)state;
	for (int i = 0; i < STASIS_STANDING_COUNT; i++)
		assert_int_equal(stasis_lifecycle_is_armed((enum stasis_standing)i),
				 i >= STASIS_STANDING_ARMED);
	assert_int_equal(stasis_lifecycle_phase(walk("cgsamu")), STASIS_WIRE_PREPARE_UNICAST);
	assert_int_equal(stasis_lifecycle_phase(walk("cgsamUlrwxyzo")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_standing_has_its_phases),
		cmocka_unit_test(every_failure_can_be_undone),
		cmocka_unit_test(a_page_that_is_not_the_last_completes_nothing),
		cmocka_unit_test(refusals_say_where_one_stands),
		cmocka_unit_test(from_arm_on_the_gate_stays_shut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
