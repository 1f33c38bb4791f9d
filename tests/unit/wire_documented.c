/*
 * Description: messages, tickets and control files that another program wrote from docs/protocol.md are
 * accepted where they are right and refused, each with a line that says why, where they are not; and every
 * kind and phase is among them.
 */

#include "unit.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "wire/control.h"
#include "wire/message.h"
#include "wire/ticket.h"

typedef int decode_function(const uint8_t *bytes, size_t byte_count, struct stasis_error *err);

static bool was_seen[STASIS_WIRE_UNKNOWN + 1][STASIS_WIRE_PHASE_COUNT];

static int message_decode(const uint8_t *bytes, size_t byte_count, struct stasis_error *err)
{
	static struct stasis_wire_message message;
	static uint8_t again[STASIS_WIRE_MESSAGE_BYTES_MAX];
	size_t again_count = 0;

	if (stasis_wire_decode(bytes, byte_count, &message, err) != 0)
		return -1;
	was_seen[message.kind][message.phase] = true;
	assert_done(stasis_wire_encode(&message, again, &again_count, err), err);
	assert_int_equal(again_count, byte_count);
	assert_memory_equal(again, bytes, byte_count);
	return 0;
}

static int ticket_decode(const uint8_t *bytes, size_t byte_count, struct stasis_error *err)
{
	struct stasis_wire_ticket ticket;

	return stasis_wire_ticket_decode(bytes, byte_count, &ticket, err);
}

static int control_decode(const uint8_t *bytes, size_t byte_count, struct stasis_error *err)
{
	static struct stasis_wire_control control;

	return stasis_wire_control_decode(bytes, byte_count, &control, err);
}

static void file_check(int dir_fd, const char *name, decode_function *decode)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	CLEANUP(free) char *bytes = NULL;
	size_t byte_count = 0;
	int result;

	assert_done(
		stasis_file_read(dir_fd, name, 1 << 20, STASIS_REFUSED, &bytes, &byte_count, &err),
		&err);
	result = decode((const uint8_t *)bytes, byte_count, &err);
	if (strncmp(name, "good-", 5) == 0) {
		assert_done(result, &err);
		return;
	}
	if (result == 0)
		print_error("%s was accepted\n", name);
	assert_refused(result, &err, STASIS_REFUSED, " refused: ");
}

static void corpus_check(const char *name, decode_function *decode)
{
	const char *source = secure_getenv("STASIS_SOURCE_DIR");
	CLEANUP(dir) DIR *dir = NULL;
	char path[4096];
	size_t count = 0;

	assert_non_null(source);
	(void)snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/%s", source, name);
	dir = opendir(path);
	assert_non_null(dir);
	for (struct dirent *entry = stasis_dir_next(dir); entry; entry = stasis_dir_next(dir)) {
		/* What a fuzzer found later has other names. */
		if (strncmp(entry->d_name, "good-", 5) != 0 &&
		    strncmp(entry->d_name, "bad-", 4) != 0)
			continue;
		file_check(dirfd(dir), entry->d_name, decode);
		count++;
	}
	assert_true(count > 9);
}

static void messages_are_as_documented(void **state)
{
	(void)state;
	corpus_check("wire_message", message_decode);
	for (uint32_t phase = 1; phase < STASIS_WIRE_PHASE_COUNT; phase++) {
		assert_non_null(stasis_wire_phase_name(phase));
		assert_true(was_seen[STASIS_WIRE_REQUEST][phase]);
		assert_true(was_seen[STASIS_WIRE_REPLY][phase]);
	}
}

static void tickets_are_as_documented(void **state)
{
	(void)state;
	corpus_check("wire_ticket", ticket_decode);
}

static void control_files_are_as_documented(void **state)
{
	(void)state;
	corpus_check("wire_control", control_decode);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_as_documented),
		cmocka_unit_test(tickets_are_as_documented),
		cmocka_unit_test(control_files_are_as_documented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
