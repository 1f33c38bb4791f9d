#ifndef STASIS_WIRE_RECORD_H
#define STASIS_WIRE_RECORD_H

/*
 * What a participant says of itself when it is inspected: a row of records of 128 bytes each, in any
 * order (a record may name an object that comes later). Here only what can be said of one record alone is
 * checked; that they fit together is the coordinator's to find out. Any thread.
 */

#include <stdint.h>

#include "base/id.h"
#include "wire/codec.h"

#define STASIS_WIRE_RECORD_BYTES 128
#define STASIS_WIRE_RECORDS_MAX 127
#define STASIS_WIRE_NOTE_TEXT_BYTES 96

enum stasis_wire_record_type {
	STASIS_WIRE_ALLOCATION = 1,
	STASIS_WIRE_HANDLE = 2,
	STASIS_WIRE_MAPPING = 3,
	STASIS_WIRE_ACCESS = 4,
	STASIS_WIRE_MULTICAST = 5,
	STASIS_WIRE_TEAM_DEVICE = 6,
	STASIS_WIRE_BINDING = 7,
	STASIS_WIRE_NOTE = 8,
};
#define STASIS_WIRE_RECORD_TYPE_COUNT 9

enum stasis_wire_role {
	STASIS_WIRE_CREATOR = 1,
	STASIS_WIRE_IMPORTER = 2,
};

enum stasis_wire_allocation_flag {
	STASIS_WIRE_IS_SHARED = 1,     /* was exported, imported or bound to multicast */
	STASIS_WIRE_HAS_CONTENT = 2,   /* its bytes are ours to save, here */
	STASIS_WIRE_IS_REATTACHED = 4, /* an import to the driver: cannot be exported again */
	STASIS_WIRE_ALLOCATION_FLAGS = 7,
};

/* Properties are those of the driver's structures, as the application asked for them. */
struct stasis_wire_allocation {
	struct stasis_id object;
	struct stasis_id creator; /* the participant */
	struct stasis_id device;  /* its UUID; all zero for host memory */
	uint64_t bytes;
	uint32_t role;
	uint32_t flags;
	uint32_t location_type;
	int32_t location_id;
	uint32_t handle_types;
	uint8_t compression;
	uint8_t gpu_direct_rdma;
	uint16_t usage;
};

/* A virtual handle that the application holds, `count` times. */
struct stasis_wire_handle {
	struct stasis_id object;
	uint64_t handle;
	uint64_t count;
};

/* Of an allocation or of a multicast object. */
struct stasis_wire_mapping {
	struct stasis_id object;
	uint64_t address;
	uint64_t bytes;
	uint64_t offset;
	uint64_t handle; /* what retaining the address answers */
	uint64_t flags;
};

/* A right of the mapping that starts at `address`. */
struct stasis_wire_access {
	uint64_t address;
	uint32_t location_type;
	int32_t location_id;
	uint32_t rights;
};

struct stasis_wire_multicast {
	struct stasis_id object;
	struct stasis_id creator;
	uint64_t bytes; /* as asked for; the driver rounds up */
	uint64_t flags;
	uint32_t device_count; /* of the whole team */
	uint32_t handle_types;
	uint32_t role;
};

/* A device that this participant added. Ordinals are the process's own. */
struct stasis_wire_team_device {
	struct stasis_id object;
	struct stasis_id device;
	int32_t ordinal;
};

enum stasis_wire_binding_kind {
	STASIS_WIRE_BIND_MEMORY = 1,
	STASIS_WIRE_BIND_ADDRESS = 2,
};

struct stasis_wire_binding {
	struct stasis_id object;
	struct stasis_id member; /* all zero: memory that only the driver knows, by its address */
	uint64_t address;        /* of BIND_ADDRESS, else 0 */
	uint64_t member_offset;
	uint64_t offset; /* in the multicast object */
	uint64_t bytes;
	uint64_t flags;
	int32_t ordinal;
	uint32_t kind;
	uint32_t call_version; /* 1 or 2: which of the driver's calls it was */
};

enum stasis_wire_note_kind {
	STASIS_WIRE_NOTE_UNKNOWN_FUNCTION = 1, /* passed through without a gate */
	STASIS_WIRE_NOTE_FOREIGN_IMPORT = 2,   /* `count` of them live */
	STASIS_WIRE_NOTE_UNSUPPORTED = 3,      /* what the text names cannot be captured */
	STASIS_WIRE_NOTE_REMARK = 4,           /* hinders nothing */
};

struct stasis_wire_note {
	uint32_t kind;
	uint64_t count;
	char text[STASIS_WIRE_NOTE_TEXT_BYTES];
};

struct stasis_wire_record {
	enum stasis_wire_record_type type;
	union {
		struct stasis_wire_allocation allocation;
		struct stasis_wire_handle handle;
		struct stasis_wire_mapping mapping;
		struct stasis_wire_access access;
		struct stasis_wire_multicast multicast;
		struct stasis_wire_team_device team_device;
		struct stasis_wire_binding binding;
		struct stasis_wire_note note;
	};
};

void stasis_wire_record(struct stasis_wire_codec *codec, struct stasis_wire_record *record);

#endif
