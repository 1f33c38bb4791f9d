#ifndef STASIS_WIRE_MESSAGE_H
#define STASIS_WIRE_MESSAGE_H

/*
 * What coordinator, participants and peers say to each other: a header of 64 bytes and a body whose form
 * follows from kind and phase. docs/protocol.md is the truth; this is it in C. Encoding and decoding
 * check the same things. No allocation, libc only: this runs in other people's processes. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"
#include "wire/record.h"

#define STASIS_WIRE_VERSION 1
#define STASIS_WIRE_HEADER_BYTES 64
#define STASIS_WIRE_MESSAGE_BYTES_MAX 16384
#define STASIS_WIRE_DESCRIPTORS_MAX 64
#define STASIS_WIRE_PEERS_MAX 256
#define STASIS_WIRE_PATH_BYTES 4096
#define STASIS_WIRE_BUILD_TEXT_BYTES 65

enum stasis_wire_kind {
	STASIS_WIRE_REQUEST = 1,
	STASIS_WIRE_REPLY = 2,
	STASIS_WIRE_ERROR = 3,   /* answers a request that failed or was refused */
	STASIS_WIRE_UNKNOWN = 4, /* answers a reply asked for again: that request never came */
};

enum stasis_wire_phase {
	STASIS_WIRE_SESSION = 1,
	STASIS_WIRE_PEERS = 2,
	STASIS_WIRE_INSPECT = 3,
	STASIS_WIRE_GATE = 4,
	STASIS_WIRE_SAVE_ALLOCATIONS = 5,
	STASIS_WIRE_ARM = 6,
	STASIS_WIRE_PREPARE_MULTICAST = 7,
	STASIS_WIRE_PREPARE_UNICAST = 8,
	STASIS_WIRE_LOAD_ALLOCATIONS = 9,
	STASIS_WIRE_EXPORT_ALLOCATIONS = 10,
	STASIS_WIRE_RESTORE_UNICAST = 11,
	STASIS_WIRE_RESTORE_MULTICAST_CREATORS = 12,
	STASIS_WIRE_RESTORE_MULTICAST_IMPORTERS = 13,
	STASIS_WIRE_RESTORE_MULTICAST_DEVICES = 14,
	STASIS_WIRE_RESTORE_MULTICAST_BINDINGS = 15,
	STASIS_WIRE_OPEN = 16,
	STASIS_WIRE_FETCH = 17, /* between peers */
};
#define STASIS_WIRE_PHASE_COUNT 18

enum stasis_wire_flag {
	STASIS_WIRE_MORE = 1,  /* another page follows */
	STASIS_WIRE_AGAIN = 2, /* of a request: send the reply again, do not do it again */
};

/* What a session is opened with, at the participant's door. */
struct stasis_wire_session_request {
	uint32_t coordinator_pid;
	uint64_t coordinator_start_ticks;
	struct stasis_id capture; /* all zero but where a suspended participant is to accept it */
	uint32_t
		is_observer; /* 1: asks for nothing but INSPECT, beside whatever session there is */
};

struct stasis_wire_session_reply {
	struct stasis_id participant;
	struct stasis_id incarnation;
	uint32_t pid;          /* in the participant's own namespace */
	uint8_t reached_phase; /* an enum stasis_wire_phase, or 0: none */
	char build[STASIS_WIRE_BUILD_TEXT_BYTES];
};

struct stasis_wire_peer {
	struct stasis_id participant;
	struct stasis_id incarnation;
};

struct stasis_wire_peers {
	uint32_t count;
	struct stasis_wire_peer peers[STASIS_WIRE_PEERS_MAX];
};

/* A page starts at record `first` of generation `generation`; 0 takes whichever is current. */
struct stasis_wire_inspect_request {
	uint64_t generation;
	uint64_t first;
};

/* Records first to first + count of `total`; a generation that changes between pages is another state. */
struct stasis_wire_inspect_page {
	uint64_t generation;
	uint64_t first;
	uint64_t total;
	uint32_t count;
	struct stasis_wire_record records[STASIS_WIRE_RECORDS_MAX];
};

enum stasis_wire_gate_step {
	STASIS_WIRE_GATE_CAPTURES =
		1,                /* hold calls that begin a stream capture, wait for none open */
	STASIS_WIRE_GATE_ALL = 2, /* hold everything, then drain */
};

struct stasis_wire_gate_request {
	uint64_t limit_ns;
	uint32_t step;
};

/* Allocations by identity; item i has descriptor i of the message, or the message has none at all. */
struct stasis_wire_export {
	struct stasis_id object;
	uint64_t bytes;
};

struct stasis_wire_exports {
	uint64_t first; /* the number of the first item among all of them */
	uint32_t count;
	struct stasis_wire_export items[STASIS_WIRE_DESCRIPTORS_MAX];
};

struct stasis_wire_arm_request {
	char journal[STASIS_WIRE_PATH_BYTES];
	char image[STASIS_WIRE_PATH_BYTES];
};

struct stasis_wire_fetch_request {
	struct stasis_id participant; /* whose object it is, and who is thought to listen here */
	struct stasis_id incarnation;
	struct stasis_id object;
};

struct stasis_wire_fetch_reply {
	struct stasis_id object;
	uint64_t bytes;
};

/* What a phase did: bytes and objects given up or rebuilt. */
struct stasis_wire_done {
	uint64_t bytes;
	uint64_t objects;
};

struct stasis_wire_message {
	enum stasis_wire_kind kind;
	enum stasis_wire_phase phase;
	uint32_t flags;
	uint32_t sequence; /* of the request, and of what answers it; grows, from 1 */
	uint32_t descriptor_count;
	struct stasis_id operation;
	union {
		struct stasis_wire_session_request session_request;
		struct stasis_wire_session_reply session_reply;
		struct stasis_wire_peers peers;
		struct stasis_wire_inspect_request inspect_request;
		struct stasis_wire_inspect_page inspect_page;
		struct stasis_wire_gate_request gate_request;
		struct stasis_wire_exports exports;
		struct stasis_wire_arm_request arm_request;
		struct stasis_wire_fetch_request fetch_request;
		struct stasis_wire_fetch_reply fetch_reply;
		struct stasis_wire_done done;
		struct stasis_error error;
	};
};

/* "PREPARE_UNICAST"; NULL for a number that is no phase. */
const char *stasis_wire_phase_name(uint32_t phase);

/*
 * Whether doing a phase twice is as doing it once, because it changes nothing: its reply is not kept,
 * and being asked again means doing it again.
 */
bool stasis_wire_phase_is_repeatable(enum stasis_wire_phase phase);

NODISCARD int stasis_wire_encode(const struct stasis_wire_message *message,
				 uint8_t bytes[STASIS_WIRE_MESSAGE_BYTES_MAX],
				 size_t *ret_byte_count, struct stasis_error *err);

/* On failure *ret_message is undefined. */
NODISCARD int stasis_wire_decode(const uint8_t *bytes, size_t byte_count,
				 struct stasis_wire_message *ret_message, struct stasis_error *err);

#endif
