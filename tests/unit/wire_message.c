/*
 * Description: messages keep every field, are of fixed form byte by byte, and what could not be read by the
 * other side cannot be sent.
 */

#include "unit.h"

#include "wire/message.h"

static struct stasis_wire_message message;
static struct stasis_wire_message copy;
static uint8_t bytes[STASIS_WIRE_MESSAGE_BYTES_MAX];

static void message_begin(enum stasis_wire_kind kind, enum stasis_wire_phase phase)
{
	memset(&message, 0, sizeof(message));
	message.kind = kind;
	message.phase = phase;
	message.sequence = 7;
	memset(message.operation.bytes, 0xab, sizeof(message.operation.bytes));
}

static size_t pass(void)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	size_t byte_count = 0;

	assert_done(stasis_wire_encode(&message, bytes, &byte_count, &err), &err);
	assert_done(stasis_wire_decode(bytes, byte_count, &copy, &err), &err);
	assert_int_equal(copy.kind, message.kind);
	assert_int_equal(copy.phase, message.phase);
	assert_int_equal(copy.sequence, message.sequence);
	assert_true(stasis_id_equal(&copy.operation, &message.operation));
	return byte_count;
}

static void refused(const char *text)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	size_t byte_count = 0;

	assert_refused(stasis_wire_encode(&message, bytes, &byte_count, &err), &err, STASIS_REFUSED,
		       text);
}

static void header_has_its_form(void **state)
{
	static const uint8_t head[] = {'S', 'T', 'W', 'M', 1, 0, 1, 16, 64, 0, 0, 0, 7, 0, 0, 0};

	(void)state;
	message_begin(STASIS_WIRE_REQUEST, STASIS_WIRE_OPEN);
	assert_int_equal(pass(), STASIS_WIRE_HEADER_BYTES);
	assert_memory_equal(bytes, head, sizeof(head));
	assert_int_equal(bytes[16], 0xab);
	assert_int_equal(bytes[31], 0xab);
	for (size_t i = 32; i < STASIS_WIRE_HEADER_BYTES; i++)
		assert_int_equal(bytes[i], 0);
}

static void errors_keep_their_cause(void **state)
{
	(void)state;
	message_begin(STASIS_WIRE_ERROR, STASIS_WIRE_GATE);
	message.error.status = STASIS_LOST;
	message.error.os_errno = -5;
	message.error.cuda_result = 999;
	(void)snprintf(message.error.text, sizeof(message.error.text), "two\nlines");
	(void)pass();
	assert_int_equal(copy.error.status, STASIS_LOST);
	assert_int_equal(copy.error.os_errno, -5);
	assert_int_equal(copy.error.cuda_result, 999);
	assert_string_equal(copy.error.text, "two?lines");
	/* The longest text there can be, without its end. */
	memset(message.error.text, 'x', sizeof(message.error.text));
	(void)pass();
	assert_int_equal(strlen(copy.error.text), STASIS_ERROR_TEXT_BYTES - 1);
	message.error.status = STASIS_OK;
	refused("no status");
	message.error.status = STASIS_LOST;
	message.error.text[0] = '\0';
	refused("says nothing");
}

static void full_messages_fit(void **state)
{
	struct stasis_wire_inspect_page *page = &message.inspect_page;
	size_t longest;

	(void)state;
	message_begin(STASIS_WIRE_REPLY, STASIS_WIRE_INSPECT);
	page->count = STASIS_WIRE_RECORDS_MAX;
	page->total = page->count;
	for (uint32_t i = 0; i < page->count; i++) {
		page->records[i].type = STASIS_WIRE_NOTE;
		page->records[i].note.kind = STASIS_WIRE_NOTE_REMARK;
		page->records[i].note.count = UINT64_MAX - i;
		memset(page->records[i].note.text, 'n', STASIS_WIRE_NOTE_TEXT_BYTES - 1);
	}
	longest = pass();
	assert_true(longest <= STASIS_WIRE_MESSAGE_BYTES_MAX);
	assert_int_equal(longest, STASIS_WIRE_HEADER_BYTES + 32 + 127 * 128);
	assert_int_equal(copy.inspect_page.records[126].note.count, UINT64_MAX - 126);
	page->count++;
	page->total++;
	refused("too many records");

	message_begin(STASIS_WIRE_REQUEST, STASIS_WIRE_PEERS);
	message.peers.count = STASIS_WIRE_PEERS_MAX;
	memset(message.peers.peers, 0x5a, sizeof(message.peers.peers));
	(void)pass();
	assert_memory_equal(copy.peers.peers, message.peers.peers, sizeof(message.peers.peers));
	message.peers.count++;
	refused("too many peers");

	message_begin(STASIS_WIRE_REQUEST, STASIS_WIRE_ARM);
	memset(message.arm_request.journal, '/', STASIS_WIRE_PATH_BYTES - 1);
	memset(message.arm_request.image, '/', STASIS_WIRE_PATH_BYTES - 1);
	(void)pass();
	message.arm_request.image[STASIS_WIRE_PATH_BYTES - 1] = '/';
	refused("too long");
}

static void pages_say_where_they_are(void **state)
{
	struct stasis_wire_inspect_page *page = &message.inspect_page;

	(void)state;
	message_begin(STASIS_WIRE_REPLY, STASIS_WIRE_INSPECT);
	page->total = 5;
	page->count = 1;
	page->records[0].type = STASIS_WIRE_ACCESS;
	page->records[0].access.address = 4096;
	refused("being the last");
	message.flags = STASIS_WIRE_MORE;
	(void)pass();
	page->first = 4;
	refused("being the last");
	page->first = 5;
	refused("beyond the last");
	page->first = UINT64_MAX;
	refused("beyond the last");
	page->first = 2;
	page->count = 0;
	refused("empty and not the last");
}

static void descriptors_are_counted(void **state)
{
	(void)state;
	message_begin(STASIS_WIRE_REPLY, STASIS_WIRE_SAVE_ALLOCATIONS);
	message.exports.count = 2;
	message.exports.items[0].bytes = 1;
	message.exports.items[1].bytes = 1;
	refused("not every allocation");
	message.descriptor_count = 2;
	(void)pass();
	message.descriptor_count = STASIS_WIRE_DESCRIPTORS_MAX + 1;
	refused("must not");
	message_begin(STASIS_WIRE_REPLY, STASIS_WIRE_FETCH);
	message.fetch_reply.bytes = 1;
	refused("exactly one");
	message_begin(STASIS_WIRE_REQUEST, STASIS_WIRE_SESSION);
	message.session_request.coordinator_pid = 1;
	refused("exactly one");
	message_begin(STASIS_WIRE_ERROR, STASIS_WIRE_FETCH);
	message.descriptor_count = 1;
	refused("must not");
}

static void sizes_are_bounded(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	assert_refused(stasis_wire_decode(bytes, STASIS_WIRE_MESSAGE_BYTES_MAX + 1, &copy, &err),
		       &err, STASIS_REFUSED, "at most 16384");
	assert_null(stasis_wire_phase_name(0));
	assert_null(stasis_wire_phase_name(STASIS_WIRE_PHASE_COUNT));
	assert_null(stasis_wire_phase_name(UINT32_MAX));
	message_begin(STASIS_WIRE_REQUEST, (enum stasis_wire_phase)0);
	refused("no phase");
	message_begin((enum stasis_wire_kind)7, STASIS_WIRE_OPEN);
	refused("no kind");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(header_has_its_form),
		cmocka_unit_test(errors_keep_their_cause),
		cmocka_unit_test(full_messages_fit),
		cmocka_unit_test(pages_say_where_they_are),
		cmocka_unit_test(descriptors_are_counted),
		cmocka_unit_test(sizes_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
