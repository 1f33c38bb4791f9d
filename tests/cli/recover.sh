#!/bin/bash
# Description: what a suspend or resume that was killed has left is settled by recover: the programs run as before, or
# sleep if all of it had been done.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ring.sh"

ring_start 2
expect_ring_goes_on
run_limited "$stasis" recover
expect_status 0
expect_last_line "journals=0"
run_limited "$stasis" recover "${pids[0]}"
expect_status 1
expect_error "${pids[0]}"

# both processes of ours are killed, in a phase of each kind
for phase in gate arm prepare_unicast lock confirm_checkpointed; do
	STASIS_FAULT=group_$phase=stop run_limited "$stasis" suspend --to "image-$phase" "${pids[@]}" &
	suspend=$!
	wait_for_stopped() {
		worker=$(pgrep -f "stasis suspend --to image-$phase" | while read -r pid; do
			grep -q '^State:.T' "/proc/$pid/status" 2>/dev/null && echo "$pid"
		done)
		[ -n "$worker" ]
	}
	wait_for wait_for_stopped
	mapfile -t ours < <(pgrep -f "src/cli/stasis suspend --to image-$phase")
	kill -KILL "${ours[@]}"
	wait $suspend
	for pid in "${ours[@]}"; do
		wait_for process_is_gone "$pid"
	done
	run_limited "$stasis" recover
	expect_status 0
	expect_ring_goes_on
	# before ARM nobody needs it, and no journal names it
	[ $phase != gate ] || "$stasis" gc . >/dev/null
	expect_no_partial
	expect_no_trace
	expect_missing "image-$phase"
done

# the worker alone: its supervisor has it settled
STASIS_FAULT=group_confirm_checkpointed=kill run_limited "$stasis" suspend "${pids[@]}"
expect_status 1
expect_ring_goes_on
expect_no_trace

# when all is done and only the word of it is missing: nothing is left to settle, and what they are is found out
STASIS_FAULT=group_end=kill run_limited "$stasis" suspend --to image-end "${pids[@]}"
expect_status 3
expect_error "the processes are suspended; 'stasis resume' brings them back"
expect_ring_stands
STASIS_FAULT=group_end=kill run_limited "$stasis" resume image-end
expect_status 1
expect_error "the processes run"
expect_ring_goes_on
expect_no_trace

# a word to the worker that it does not read any more loses nothing of what it has said
STASIS_FAULT=group_end=stop "$stasis" suspend "${pids[@]}" >out 2>err &
suspend=$!
has_stopped_worker() {
	worker=$(pgrep -P $suspend) && grep -q '^State:.T' "/proc/$worker/status"
}
wait_for has_stopped_worker
kill -TERM $suspend
# nobody tells when the supervisor has passed it on
sleep 0.5
kill -STOP $suspend
kill -CONT "$worker"
wait_for process_is_gone "$worker"
kill -CONT $suspend
wait $suspend
status=$?
expect_status 0
expect_last_line "suspended=2"
expect_no_error
run_limited "$stasis" resume "${pids[@]}"
expect_status 0
expect_ring_goes_on

# and a resume
run_limited "$stasis" suspend "${pids[@]}"
expect_status 0
STASIS_FAULT_ONCE=$PWD/once STASIS_FAULT=group_restore_unicast=kill run_limited "$stasis" resume "${pids[@]}"
expect_error "died in phase 'restore_unicast'"
expect_ring_goes_on
ring_end
