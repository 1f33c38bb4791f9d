#!/bin/bash
# Description: SIGTERM and SIGINT give a round trip up in good order: the program is brought back first.
. "$(dirname "$0")/lib.sh"

given_up() { # SIGNAL PHASE
	rm -rf image verdict out err
	# Stopped in the phase by a hang of the supervisor's own making would hide the signal; the worker hangs.
	STASIS_WORKLOAD_REPORT=$PWD/verdict STASIS_FAULT="roundtrip_$2=hang" \
		"$stasis" roundtrip --artifact-dir image --bytes 2M --timeout 8s >out 2>err &
	pid=$!
	wait_for grep -q "^phase=$2" out
	kill "-$1" "$pid"
	wait "$pid"
	status=$?
	command_text="SIG$1 in phase $2"
	expect_status 1
	expect_error "phase '$2'"
	[ "$(cat verdict 2>/dev/null)" = passed ] || fail "expected the workload's own verdict: passed"
	expect_no_partial
}

given_up TERM lock
given_up TERM publish
given_up HUP confirm_resumed

# A worker that can answer undoes by itself.
rm -rf image out err
"$stasis" roundtrip --artifact-dir image --bytes 512M --timeout 60s >out 2>err &
pid=$!
wait_for grep -q '^phase=save' out
kill -TERM "$pid"
wait "$pid"
status=$?
command_text="SIGTERM while saving"
# The signal may come too late for such a small memory; then all went well.
[ "$status" = 0 ] || expect_status 1
expect_no_partial

# However long the bytes take on their way to a safe place, a worker that moves them is left to finish.
rm -rf image out err
STASIS_WORKLOAD_REPORT=$PWD/verdict-slow STASIS_SIM_FAULT='cuMemcpyDtoHAsync:*=delay=100' STASIS_SIM_FAULT_PROCESS=stasis \
	"$stasis" roundtrip --artifact-dir image --bytes 128M --workers 2 --timeout 8s >out 2>err &
pid=$!
wait_for grep -q '^phase=save' out
kill -TERM "$pid"
wait "$pid"
status=$?
command_text="SIGTERM while saving slowly"
expect_status 1
[ "$(cat verdict-slow 2>/dev/null)" = passed ] || fail "expected the workload's own verdict: passed"
expect_no_partial
