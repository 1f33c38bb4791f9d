/*
 * See message.h.
 *
 *      0  "STWM"    4  version    6  kind    7  phase    8  bytes of the message   12  sequence
 *     16  operation                                     32  descriptors           36  flags
 *     40  zero                                          64  body
 */

#include "wire/message.h"

#include "base/number.h"
#include "wire/codec.h"

#define MAGIC 0x4d575453u /* the bytes "STWM" */
#define FLAGS_KNOWN ((uint32_t)(STASIS_WIRE_MORE | STASIS_WIRE_AGAIN))

typedef void body_function(struct stasis_wire_codec *codec, struct stasis_wire_message *message);

/* What a message of one kind and phase holds, and how many descriptors it may carry. */
struct body {
	body_function *function;
	uint32_t descriptors_max;
	bool is_paged;
};

struct phase {
	const char *name;
	bool is_repeatable;
	struct body request;
	struct body reply;
};

static void nothing(struct stasis_wire_codec *codec, struct stasis_wire_message *message)
{
	(void)codec;
	(void)message;
}

static void session_request(struct stasis_wire_codec *codec, struct stasis_wire_message *message)
{
	struct stasis_wire_session_request *request = &message->session_request;

	stasis_wire_u32(codec, &request->coordinator_pid);
	stasis_wire_u32(codec, &request->is_observer);
	stasis_wire_u64(codec, &request->coordinator_start_ticks);
	stasis_wire_id(codec, &request->capture);
	stasis_wire_check(codec,
			  request->coordinator_pid > 0 && request->coordinator_pid <= INT32_MAX,
			  "the coordinator has no pid");
	stasis_wire_check(codec, request->is_observer <= 1, "unknown kind of session");
	stasis_wire_check(codec, message->descriptor_count == 1,
			  "a session is opened with exactly one descriptor");
}

static void session_reply(struct stasis_wire_codec *codec, struct stasis_wire_message *message)
{
	struct stasis_wire_session_reply *reply = &message->session_reply;

	stasis_wire_id(codec, &reply->participant);
	stasis_wire_id(codec, &reply->incarnation);
	stasis_wire_u32(codec, &reply->pid);
	stasis_wire_u8(codec, &reply->reached_phase);
	stasis_wire_zero(codec, 3);
	stasis_wire_text(codec, reply->build, sizeof(reply->build));
	stasis_wire_check(codec, reply->pid > 0 && reply->pid <= INT32_MAX,
			  "the participant has no pid");
	stasis_wire_check(codec, reply->reached_phase < STASIS_WIRE_PHASE_COUNT,
			  "the participant is in no phase that is known");
}

static void peers(struct stasis_wire_codec *codec, struct stasis_wire_message *message)
{
	stasis_wire_u32(codec, &message->peers.count);
	stasis_wire_zero(codec, 4);
	stasis_wire_check(codec, message->peers.count <= STASIS_WIRE_PEERS_MAX,
			  "too many peers in one message");
	for (uint32_t i = 0; i < message->peers.count && !codec->fault; i++) {
		stasis_wire_id(codec, &message->peers.peers[i].participant);
		stasis_wire_id(codec, &message->peers.peers[i].incarnation);
	}
}

static void inspect_request(struct stasis_wire_codec *codec, struct stasis_wire_message *message)
{
	stasis_wire_u64(codec, &message->inspect_request.generation);
	stasis_wire_u64(codec, &message->inspect_request.first);
}

static void inspect_page(struct stasis_wire_codec *codec, struct stasis_wire_message *message)
{
	struct stasis_wire_inspect_page *page = &message->inspect_page;
	uint64_t end = 0;

	stasis_wire_u64(codec, &page->generation);
	stasis_wire_u64(codec, &page->first);
	stasis_wire_u64(codec, &page->total);
	stasis_wire_u32(codec, &page->count);
	stasis_wire_zero(codec, 4);
	stasis_wire_check(codec, page->count <= STASIS_WIRE_RECORDS_MAX,
			  "too many records in one page");
	stasis_wire_check(codec,
			  stasis_add_u64(page->first, page->count, &end) && end <= page->total,
			  "a page goes beyond the last record");
	stasis_wire_check(codec, ((message->flags & STASIS_WIRE_MORE) != 0) == (end < page->total),
			  "a page says the wrong thing about being the last");
	stasis_wire_check(codec, page->count > 0 || end == page->total,
			  "a page is empty and not the last");
	for (uint32_t i = 0; i < page->count && !codec->fault; i++)
		stasis_wire_record(codec, &page->records[i]);
}

static void gate_request(struct stasis_wire_codec *codec, struct stasis_wire_message *message)
{
	struct stasis_wire_gate_request *request = &message->gate_request;

	stasis_wire_u64(codec, &request->limit_ns);
	stasis_wire_u32(codec, &request->step);
	stasis_wire_zero(codec, 4);
	stasis_wire_check(codec, request->limit_ns > 0, "a gate is given no time to close");
	stasis_wire_check(codec,
			  request->step == STASIS_WIRE_GATE_CAPTURES ||
				  request->step == STASIS_WIRE_GATE_ALL,
			  "a gate closes in two steps, and this is neither");
}

static void exports(struct stasis_wire_codec *codec, struct stasis_wire_message *message)
{
	struct stasis_wire_exports *body = &message->exports;
	uint64_t end = 0;

	stasis_wire_u64(codec, &body->first);
	stasis_wire_u32(codec, &body->count);
	stasis_wire_zero(codec, 4);
	stasis_wire_check(codec, body->count <= STASIS_WIRE_DESCRIPTORS_MAX,
			  "too many allocations in one message");
	stasis_wire_check(codec, stasis_add_u64(body->first, body->count, &end),
			  "allocations are numbered past the last number");
	stasis_wire_check(
		codec, message->descriptor_count == 0 || message->descriptor_count == body->count,
		"not every allocation has its descriptor");
	for (uint32_t i = 0; i < body->count && !codec->fault; i++) {
		stasis_wire_id(codec, &body->items[i].object);
		stasis_wire_u64(codec, &body->items[i].bytes);
		stasis_wire_check(codec, body->items[i].bytes > 0, "an allocation has no bytes");
	}
}

/* A reply without its descriptors would be no use to anybody. */
static void exports_with_descriptors(struct stasis_wire_codec *codec,
				     struct stasis_wire_message *message)
{
	exports(codec, message);
	stasis_wire_check(codec, message->descriptor_count == message->exports.count,
			  "not every allocation has its descriptor");
}

static void exports_request(struct stasis_wire_codec *codec, struct stasis_wire_message *message)
{
	stasis_wire_u64(codec, &message->exports.first);
}

static void arm_request(struct stasis_wire_codec *codec, struct stasis_wire_message *message)
{
	struct stasis_wire_arm_request *request = &message->arm_request;

	stasis_wire_text(codec, request->journal, sizeof(request->journal));
	stasis_wire_text(codec, request->image, sizeof(request->image));
	stasis_wire_check(codec, request->journal[0] == '/', "the journal's path is not absolute");
	stasis_wire_check(codec, request->image[0] == '/', "the image's path is not absolute");
}

static void fetch_request(struct stasis_wire_codec *codec, struct stasis_wire_message *message)
{
	stasis_wire_id(codec, &message->fetch_request.participant);
	stasis_wire_id(codec, &message->fetch_request.incarnation);
	stasis_wire_id(codec, &message->fetch_request.object);
}

static void fetch_reply(struct stasis_wire_codec *codec, struct stasis_wire_message *message)
{
	stasis_wire_id(codec, &message->fetch_reply.object);
	stasis_wire_u64(codec, &message->fetch_reply.bytes);
	stasis_wire_check(codec, message->descriptor_count == 1,
			  "what was fetched has not exactly one descriptor");
	stasis_wire_check(codec, message->fetch_reply.bytes > 0, "what was fetched has no bytes");
}

static void done(struct stasis_wire_codec *codec, struct stasis_wire_message *message)
{
	stasis_wire_u64(codec, &message->done.bytes);
	stasis_wire_u64(codec, &message->done.objects);
}

static bool is_failure(uint32_t status)
{
	return (status >= STASIS_REFUSED && status <= STASIS_BAD_IMAGE) ||
	       status == STASIS_INTERNAL;
}

/* Texts of errors come from anywhere; a control character must not make one undeliverable. */
static void error_make_plain(struct stasis_error *err)
{
	err->text[sizeof(err->text) - 1] = '\0';
	for (char *at = err->text; *at; at++) {
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = '?';
	}
}

static void error(struct stasis_wire_codec *codec, struct stasis_wire_message *message)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	uint32_t status;

	if (!stasis_wire_is_reading(codec)) {
		err = message->error;
		error_make_plain(&err);
	}
	status = (uint32_t)err.status;
	stasis_wire_u32(codec, &status);
	stasis_wire_i32(codec, &err.os_errno);
	stasis_wire_i32(codec, &err.cuda_result);
	stasis_wire_check(codec, is_failure(status), "an error has no status that is known");
	stasis_wire_text(codec, err.text, sizeof(err.text));
	stasis_wire_check(codec, err.text[0] != '\0', "an error says nothing");
	if (codec->fault || !stasis_wire_is_reading(codec))
		return;
	err.status = (enum stasis_status)status;
	message->error = err;
}

static const struct body error_body = {error, 0, false};
static const struct body unknown_body = {nothing, 0, false};

/* clang-format off */
static const struct phase phases[STASIS_WIRE_PHASE_COUNT] = {
	[STASIS_WIRE_SESSION] = {"SESSION", true,
		{session_request, 1, false}, {session_reply, 0, false}},
	[STASIS_WIRE_PEERS] = {"PEERS", true, {peers, 0, true}, {done, 0, false}},
	[STASIS_WIRE_INSPECT] = {"INSPECT", true,
		{inspect_request, 0, false}, {inspect_page, 0, true}},
	[STASIS_WIRE_GATE] = {"GATE", false, {gate_request, 0, false}, {done, 0, false}},
	[STASIS_WIRE_SAVE_ALLOCATIONS] = {"SAVE_ALLOCATIONS", true, {exports_request, 0, false},
		{exports_with_descriptors, STASIS_WIRE_DESCRIPTORS_MAX, true}},
	[STASIS_WIRE_ARM] = {"ARM", false, {arm_request, 0, false}, {done, 0, false}},
	[STASIS_WIRE_PREPARE_MULTICAST] = {"PREPARE_MULTICAST", false,
		{nothing, 0, false}, {done, 0, false}},
	[STASIS_WIRE_PREPARE_UNICAST] = {"PREPARE_UNICAST", false,
		{nothing, 0, false}, {done, 0, false}},
	[STASIS_WIRE_LOAD_ALLOCATIONS] = {"LOAD_ALLOCATIONS", false,
		{exports, STASIS_WIRE_DESCRIPTORS_MAX, true}, {done, 0, false}},
	[STASIS_WIRE_EXPORT_ALLOCATIONS] = {"EXPORT_ALLOCATIONS", true, {exports_request, 0, false},
		{exports_with_descriptors, STASIS_WIRE_DESCRIPTORS_MAX, true}},
	[STASIS_WIRE_RESTORE_UNICAST] = {"RESTORE_UNICAST", false,
		{nothing, 0, false}, {done, 0, false}},
	[STASIS_WIRE_RESTORE_MULTICAST_CREATORS] = {"RESTORE_MULTICAST_CREATORS", false,
		{nothing, 0, false}, {done, 0, false}},
	[STASIS_WIRE_RESTORE_MULTICAST_IMPORTERS] = {"RESTORE_MULTICAST_IMPORTERS", false,
		{nothing, 0, false}, {done, 0, false}},
	[STASIS_WIRE_RESTORE_MULTICAST_DEVICES] = {"RESTORE_MULTICAST_DEVICES", false,
		{nothing, 0, false}, {done, 0, false}},
	[STASIS_WIRE_RESTORE_MULTICAST_BINDINGS] = {"RESTORE_MULTICAST_BINDINGS", false,
		{nothing, 0, false}, {done, 0, false}},
	[STASIS_WIRE_OPEN] = {"OPEN", false, {nothing, 0, false}, {done, 0, false}},
	[STASIS_WIRE_FETCH] = {"FETCH", true, {fetch_request, 0, false}, {fetch_reply, 1, false}},
};
/* clang-format on */

_Static_assert(STASIS_WIRE_HEADER_BYTES + 32 + STASIS_WIRE_RECORDS_MAX * STASIS_WIRE_RECORD_BYTES <=
		       STASIS_WIRE_MESSAGE_BYTES_MAX,
	       "a full page of records fits a message");
_Static_assert(STASIS_WIRE_HEADER_BYTES + 8 + STASIS_WIRE_PEERS_MAX * 32 <=
		       STASIS_WIRE_MESSAGE_BYTES_MAX,
	       "a full table of peers fits a message");
_Static_assert(STASIS_WIRE_HEADER_BYTES + 2 * (4 + STASIS_WIRE_PATH_BYTES) <=
		       STASIS_WIRE_MESSAGE_BYTES_MAX,
	       "two paths fit a message");

const char *stasis_wire_phase_name(uint32_t phase)
{
	return phase < STASIS_WIRE_PHASE_COUNT ? phases[phase].name : NULL;
}

bool stasis_wire_phase_is_repeatable(enum stasis_wire_phase phase)
{
	return phases[phase].is_repeatable;
}

static const struct body *body_of(uint32_t kind, uint32_t phase)
{
	switch (kind) {
	case STASIS_WIRE_REQUEST:
		return &phases[phase].request;
	case STASIS_WIRE_REPLY:
		return &phases[phase].reply;
	case STASIS_WIRE_ERROR:
		return &error_body;
	case STASIS_WIRE_UNKNOWN:
		return &unknown_body;
	default:
		return NULL;
	}
}

static void check_flags(struct stasis_wire_codec *codec, const struct stasis_wire_message *message,
			const struct body *body)
{
	stasis_wire_check(codec, (message->flags & ~FLAGS_KNOWN) == 0,
			  "it has flags that are not known");
	stasis_wire_check(codec, body->is_paged || (message->flags & STASIS_WIRE_MORE) == 0,
			  "more pages are promised of what has none");
	stasis_wire_check(codec,
			  message->kind == STASIS_WIRE_REQUEST ||
				  (message->flags & STASIS_WIRE_AGAIN) == 0,
			  "only a request can ask again");
	stasis_wire_check(codec, message->descriptor_count <= body->descriptors_max,
			  "it carries descriptors that it must not");
	stasis_wire_check(codec, message->sequence > 0, "it has no sequence number");
}

/* Magic and version come first, so that a stranger and another version are told apart from damage. */
static void preamble(struct stasis_wire_codec *codec)
{
	uint32_t magic = MAGIC;
	uint16_t version = STASIS_WIRE_VERSION;

	stasis_wire_u32(codec, &magic);
	stasis_wire_check(codec, magic == MAGIC, "it is not a message of stasis");
	stasis_wire_u16(codec, &version);
	stasis_wire_check(codec, version == STASIS_WIRE_VERSION,
			  "it is of another version of the protocol; run one version of stasis");
}

/* NULL where no body can follow. Writing, the length is filled in at the end. */
static const struct body *header(struct stasis_wire_codec *codec,
				 struct stasis_wire_message *message)
{
	uint8_t kind = (uint8_t)message->kind;
	uint8_t phase = (uint8_t)message->phase;
	uint32_t length = (uint32_t)codec->byte_count;
	const struct body *body;

	preamble(codec);
	stasis_wire_u8(codec, &kind);
	stasis_wire_u8(codec, &phase);
	stasis_wire_u32(codec, &length);
	stasis_wire_u32(codec, &message->sequence);
	stasis_wire_id(codec, &message->operation);
	stasis_wire_u32(codec, &message->descriptor_count);
	stasis_wire_u32(codec, &message->flags);
	stasis_wire_zero_until(codec, STASIS_WIRE_HEADER_BYTES);
	stasis_wire_check(codec, length == codec->byte_count, "it is not as long as it says");
	stasis_wire_check(codec, stasis_wire_phase_name(phase) != NULL,
			  "it is of no phase that is known");
	if (codec->fault)
		return NULL;
	body = body_of(kind, phase);
	stasis_wire_check(codec, body != NULL, "it is of no kind that is known");
	if (!body)
		return NULL;
	if (stasis_wire_is_reading(codec)) {
		message->kind = (enum stasis_wire_kind)kind;
		message->phase = (enum stasis_wire_phase)phase;
	}
	check_flags(codec, message, body);
	return codec->fault ? NULL : body;
}

int stasis_wire_decode(const uint8_t *bytes, size_t byte_count,
		       struct stasis_wire_message *ret_message, struct stasis_error *err)
{
	struct stasis_wire_codec codec = stasis_wire_reader(bytes, byte_count);
	const struct body *body;

	if (byte_count > STASIS_WIRE_MESSAGE_BYTES_MAX)
		return stasis_fail(err, STASIS_REFUSED,
				   "message refused: %zu bytes; at most %d are allowed", byte_count,
				   STASIS_WIRE_MESSAGE_BYTES_MAX);
	body = header(&codec, ret_message);
	if (body)
		body->function(&codec, ret_message);
	return stasis_wire_end(&codec, "message", err);
}

int stasis_wire_encode(const struct stasis_wire_message *message,
		       uint8_t bytes[STASIS_WIRE_MESSAGE_BYTES_MAX], size_t *ret_byte_count,
		       struct stasis_error *err)
{
	struct stasis_wire_codec codec = stasis_wire_writer(bytes, STASIS_WIRE_MESSAGE_BYTES_MAX);
	struct stasis_wire_codec length_codec = stasis_wire_writer(bytes + 8, 4);
	/* A codec that writes only reads the message; a copy would cost 16 KiB of stack. */
	struct stasis_wire_message *source = (struct stasis_wire_message *)(uintptr_t)message;
	uint32_t length;
	const struct body *body;

	body = header(&codec, source);
	if (body)
		body->function(&codec, source);
	if (stasis_wire_end(&codec, "message of our own", err) != 0)
		return -1;
	length = (uint32_t)codec.at;
	stasis_wire_u32(&length_codec, &length);
	*ret_byte_count = codec.at;
	return 0;
}
