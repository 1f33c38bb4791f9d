#!/bin/bash
# Description: a program that dies while it is captured or restored is reported lost; no false image is left.
. "$(dirname "$0")/lib.sh"

# Stops the worker where the phase begins, kills the program, lets the worker go on.
workload_killed() { # PHASE STATUS
	local worker
	rm -rf image image.partial-* out err
	STASIS_FAULT="roundtrip_$1=stop" \
		timeout -k 5 60 "$stasis" roundtrip --artifact-dir image --bytes 2M --timeout 20s \
		>out 2>err </dev/null &
	pid=$!
	command_text="the workload killed in phase $1"
	wait_for grep -q "^phase=$1" out
	worker=$(worker_of "$(value_of workload_pid)")
	wait_for is_stopped "$worker"
	kill -KILL "$(value_of workload_pid)"
	kill -CONT "$worker"
	wait "$pid"
	status=$?
	expect_status "$2"
	grep -q '^stasis: error: ' err || fail "expected an error line"
	if [ -e image ]; then
		run_limited "$stasis" verify image
		expect_status 0
	fi
}

worker_of() {
	sed -n 's/^PPid:\t//p' "/proc/$1/status"
}

is_stopped() {
	grep -q '^State:.T' "/proc/$1/status"
}

for phase in open_driver lock checkpoint save complete_checkpoint confirm_checkpointed; do
	workload_killed $phase 4
	expect_missing image
done
for phase in verify restore load unlock compare operate; do
	workload_killed $phase 4
done
rm -rf image image.partial-*
roundtrip image --bytes 2M
expect_status 0
