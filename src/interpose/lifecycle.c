/*
 * See lifecycle.h.
 */

#include "interpose/lifecycle.h"

#define AT(name) (1u << STASIS_STANDING_##name)
#define ANYWHERE ((1u << STASIS_STANDING_COUNT) - 1)
#define MULTICAST_PARTLY_UP (AT(MULTICAST_CREATED) | AT(MULTICAST_IMPORTED) | AT(MULTICAST_JOINED))
#define STAY STASIS_STANDING_COUNT
#define TO(name) STASIS_STANDING_##name

/* What is attached, not created: nothing that is up already is in its way. */
#define WITH_DESCRIPTORS 1

struct move {
	uint8_t phase;
	uint8_t variant;     /* of GATE its step, of LOAD_ALLOCATIONS WITH_DESCRIPTORS; else 0 */
	uint32_t from;       /* where it is legal */
	uint32_t after_done; /* an enum stasis_standing, or STAY */
	uint32_t after_failed;
};

/* clang-format off */
static const struct move moves[] = {
	{STASIS_WIRE_PEERS, 0, ANYWHERE, STAY, STAY},
	{STASIS_WIRE_INSPECT, 0, ANYWHERE, STAY, STAY},
	{STASIS_WIRE_GATE, STASIS_WIRE_GATE_CAPTURES, AT(RUNNING) | AT(CAPTURES_HELD),
	 TO(CAPTURES_HELD), TO(CAPTURES_HELD)},
	{STASIS_WIRE_GATE, STASIS_WIRE_GATE_ALL, AT(CAPTURES_HELD), TO(GATED), TO(CAPTURES_HELD)},
	{STASIS_WIRE_SAVE_ALLOCATIONS, 0, AT(GATED) | AT(ARMED), STAY, STAY},
	{STASIS_WIRE_ARM, 0, AT(GATED), TO(ARMED), STAY},
	{STASIS_WIRE_PREPARE_MULTICAST, 0, AT(ARMED) | AT(UNICAST_UP) | MULTICAST_PARTLY_UP,
	 TO(UNICAST_UP), TO(UNICAST_UP)},
	{STASIS_WIRE_PREPARE_UNICAST, 0, AT(UNICAST_UP) | AT(LOADED) | AT(DOWN), TO(DOWN), TO(DOWN)},
	{STASIS_WIRE_LOAD_ALLOCATIONS, 0, AT(DOWN), TO(LOADED), STAY},
	{STASIS_WIRE_LOAD_ALLOCATIONS, WITH_DESCRIPTORS, AT(DOWN) | AT(LOADED), TO(LOADED), STAY},
	{STASIS_WIRE_EXPORT_ALLOCATIONS, 0, AT(LOADED), STAY, STAY},
	{STASIS_WIRE_RESTORE_UNICAST, 0, AT(LOADED), TO(UNICAST_UP), STAY},
	{STASIS_WIRE_RESTORE_MULTICAST_CREATORS, 0, AT(UNICAST_UP), TO(MULTICAST_CREATED), STAY},
	{STASIS_WIRE_RESTORE_MULTICAST_IMPORTERS, 0, AT(MULTICAST_CREATED), TO(MULTICAST_IMPORTED),
	 STAY},
	{STASIS_WIRE_RESTORE_MULTICAST_DEVICES, 0, AT(MULTICAST_IMPORTED), TO(MULTICAST_JOINED), STAY},
	{STASIS_WIRE_RESTORE_MULTICAST_BINDINGS, 0, AT(MULTICAST_JOINED), TO(ARMED), STAY},
	{STASIS_WIRE_OPEN, 0, AT(RUNNING) | AT(CAPTURES_HELD) | AT(GATED) | AT(ARMED), TO(RUNNING),
	 STAY},
};

static const struct {
	const char *name;
	uint8_t phase;
} standings[STASIS_STANDING_COUNT] = {
	[STASIS_STANDING_RUNNING] = {"running", 0},
	[STASIS_STANDING_CAPTURES_HELD] = {"holding stream captures back", 0},
	[STASIS_STANDING_GATED] = {"held at the gate", STASIS_WIRE_GATE},
	[STASIS_STANDING_ARMED] = {"armed", STASIS_WIRE_ARM},
	[STASIS_STANDING_UNICAST_UP] = {"without multicast", STASIS_WIRE_PREPARE_MULTICAST},
	[STASIS_STANDING_DOWN] = {"suspended", STASIS_WIRE_PREPARE_UNICAST},
	[STASIS_STANDING_LOADED] = {"loaded", STASIS_WIRE_LOAD_ALLOCATIONS},
	[STASIS_STANDING_MULTICAST_CREATED] = {"rebuilding multicast (created)",
					       STASIS_WIRE_RESTORE_MULTICAST_CREATORS},
	[STASIS_STANDING_MULTICAST_IMPORTED] = {"rebuilding multicast (imported)",
						STASIS_WIRE_RESTORE_MULTICAST_IMPORTERS},
	[STASIS_STANDING_MULTICAST_JOINED] = {"rebuilding multicast (joined)",
					      STASIS_WIRE_RESTORE_MULTICAST_DEVICES},
};
/* clang-format on */

static uint32_t variant_of(const struct stasis_wire_message *request)
{
	if (request->phase == STASIS_WIRE_GATE)
		return request->gate_request.step;
	return request->phase == STASIS_WIRE_LOAD_ALLOCATIONS && request->descriptor_count > 0
		       ? WITH_DESCRIPTORS
		       : 0;
}

static const struct move *move_find(const struct stasis_wire_message *request)
{
	uint32_t variant = variant_of(request);

	for (size_t i = 0; i < ARRAY_COUNT(moves); i++) {
		if (moves[i].phase == request->phase && moves[i].variant == variant)
			return &moves[i];
	}
	return NULL;
}

int stasis_lifecycle_check(enum stasis_standing standing, const struct stasis_wire_message *request,
			   struct stasis_error *err)
{
	const struct move *move = move_find(request);
	const char *phase = stasis_wire_phase_name((uint32_t)request->phase);

	if (!move)
		return stasis_fail(err, STASIS_REFUSED, "%s is no phase of a session", phase);
	if ((move->from & (1u << standing)) == 0)
		return stasis_fail(err, STASIS_REFUSED,
				   "%s refused: this participant is %s; nothing was done", phase,
				   standings[standing].name);
	return 0;
}

/* Of several pages only the last completes the phase. */
static bool has_more(const struct stasis_wire_message *request)
{
	return request->phase == STASIS_WIRE_LOAD_ALLOCATIONS &&
	       (request->flags & STASIS_WIRE_MORE) != 0;
}

enum stasis_standing stasis_lifecycle_after(enum stasis_standing standing,
					    const struct stasis_wire_message *request, bool is_done)
{
	const struct move *move = move_find(request);
	uint32_t after;

	if (!move || (is_done && has_more(request)))
		return standing;
	after = is_done ? move->after_done : move->after_failed;
	return after == STAY ? standing : (enum stasis_standing)after;
}

bool stasis_lifecycle_is_armed(enum stasis_standing standing)
{
	return standing >= STASIS_STANDING_ARMED;
}

uint8_t stasis_lifecycle_phase(enum stasis_standing standing)
{
	return standings[standing].phase;
}

const char *stasis_lifecycle_name(enum stasis_standing standing)
{
	return standings[standing].name;
}
