#!/bin/bash
# Description: SIGKILL of the worker or the supervisor leaves no false image, and the next run works.
. "$(dirname "$0")/lib.sh"

before="prepare start_workload fill_workload open_driver confirm_running reserve lock checkpoint"
inside="save manifest complete_checkpoint"
suspended="confirm_checkpointed publish"
published="validate verify"
restoring="load complete_restore"
after="confirm_locked unlock confirm_resumed compare operate finish"

# An image that has its name must be whole.
image_is_honest() {
	if [ -e image ]; then
		run_limited "$stasis" verify image
		expect_status 0
	fi
}

next_works() {
	rm -rf image image.partial-*
	roundtrip image --bytes 2M
	expect_status 0
	rm -rf image
}

worker_killed() { # PHASE STATUS
	STASIS_FAULT=roundtrip_$1=kill roundtrip image --bytes 2M --timeout 20s
	expect_status "$2"
	expect_error "phase '$1'"
	process_is_gone "$(value_of workload_pid)" || fail "expected the workload to have been ended"
	image_is_honest
}

for phase in $before $suspended $published $after; do
	worker_killed "$phase" 1
	expect_no_partial
	next_works
done
for phase in $inside; do
	worker_killed "$phase" 4
	next_works
done
for phase in $restoring; do
	worker_killed "$phase" 4
	[ -d image ] || fail "expected the image to be kept"
	next_works
done

# The supervisor: the worker notices, undoes, and the workload ends by itself with its verdict.
export STASIS_WORKLOAD_REPORT=$PWD/verdict
for phase in lock save publish verify load unlock compare; do
	rm -f verdict
	STASIS_FAULT=supervisor_$phase=kill roundtrip image --bytes 2M
	expect_status 137
	wait_for process_is_gone "$(value_of workload_pid)"
	wait_for test -e verdict
	[ "$(cat verdict)" = passed ] || fail "expected the workload's own verdict: passed"
	image_is_honest
	expect_no_partial
	next_works
done
