/*
 * A coordinator that holds a session with a running participant: `hold_session PID session|arm|open [CAPTURE]`. It goes
 * as far as it is told, prints its operation, waits for the end of its input, and goes without another word. CAPTURE is
 * the operation that a participant is armed for, which `open` lets run on.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/number.h"
#include "check.h"
#include "group/participant.h"

#define ANSWER_NS (30 * STASIS_NS_PER_S)

static struct stasis_wire_message request;
static struct stasis_wire_message reply;

static void ask(struct stasis_participant *participant, enum stasis_wire_phase phase)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	request.kind = STASIS_WIRE_REQUEST;
	request.phase = phase;
	request.operation = participant->operation;
	request.sequence = ++participant->sequence;
	if (stasis_wire_call(participant->socket_fd, &request, NULL, &reply, NULL,
			     stasis_deadline_after_ns(ANSWER_NS), &err) != 0)
		t_fail("%s: %s", stasis_wire_phase_name((uint32_t)phase), err.text);
	memset(&request, 0, sizeof(request));
}

static void gate(struct stasis_participant *participant, enum stasis_wire_gate_step step)
{
	request.gate_request.limit_ns = 20 * STASIS_NS_PER_S;
	request.gate_request.step = (uint32_t)step;
	ask(participant, STASIS_WIRE_GATE);
}

static void arm(struct stasis_participant *participant)
{
	gate(participant, STASIS_WIRE_GATE_CAPTURES);
	gate(participant, STASIS_WIRE_GATE_ALL);
	(void)snprintf(request.arm_request.journal, sizeof(request.arm_request.journal),
		       "/images/one/journal");
	(void)snprintf(request.arm_request.image, sizeof(request.arm_request.image), "/images/one");
	ask(participant, STASIS_WIRE_ARM);
}

int main(int argument_count, char **arguments)
{
	CLEANUP(participant) struct stasis_participant participant = STASIS_PARTICIPANT_EMPTY;
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_id operation;
	struct stasis_id capture;
	char text[STASIS_ID_TEXT_BYTES];
	bool is_participant = false;
	uint64_t pid = 0;

	T_TRUE(argument_count == 3 || argument_count == 4);
	T_TRUE(stasis_parse_u64("pid", arguments[1], &pid, &err) == 0);
	T_TRUE(argument_count == 3 || stasis_id_parse(arguments[3], &capture));
	T_TRUE(stasis_id_random(&operation, &err) == 0);
	if (stasis_participant_open((pid_t)pid, &operation, argument_count == 4 ? &capture : NULL,
				    stasis_deadline_after_ns(ANSWER_NS), &is_participant,
				    &participant, &err) != 0)
		t_fail("%s", err.text);
	T_TRUE(is_participant);
	if (strcmp(arguments[2], "arm") == 0)
		arm(&participant);
	if (strcmp(arguments[2], "open") == 0)
		ask(&participant, STASIS_WIRE_OPEN);
	(void)printf("%s\n", stasis_id_format(&operation, text));
	(void)fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
