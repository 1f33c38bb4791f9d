#!/bin/bash
# Description: what hinders a suspend is said in one line (a companion that is missing, one who speaks to a program already,
# a folder that cannot be written, a full disk), and so is a signal; the programs run on each time.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ring.sh"

hold="$STASIS_BUILD_DIR/tests/cli/hold_session"

expect_refused() { # STATUS TEXT
	expect_status "$1"
	expect_error "$2"
	expect_ring_goes_on
	expect_no_partial
	expect_no_trace
}

worker_has_stopped() {
	worker=$(pgrep -P "$suspend") && grep -q '^State:.T' "/proc/$worker/status" 2>/dev/null
}

# a ring of four, all of which is missed when one is
ring_start 4
expect_ring_goes_on
run_limited "$stasis" suspend "${pids[@]:0:3}"
expect_refused 1 "process ${pids[3]} (share_ring) made GPU memory that process "
expect_error "name every process that shares memory with"
run_limited "$stasis" suspend "${pids[@]}"
expect_status 0
expect_line "suspended=4"
expect_ring_stands
[ "$(device_bytes_used)" = 0 ] || fail "expected nothing on the GPUs"
run_limited "$stasis" resume "${pids[2]}"
expect_status 0
expect_last_line "resumed=4"
expect_ring_goes_on
expect_no_trace
ring_end

ring_start 2
expect_ring_goes_on

# who is not there, or cannot be
true &
ended=$!
wait $ended
run_limited "$stasis" suspend "${pids[@]}" $ended
expect_refused 1 "process $ended"
run_limited "$stasis" suspend 0
expect_refused 1 "process id"

# another coordinator
mkfifo input
"$hold" "${pids[0]}" session <input >held 2>&1 &
holder=$!
exec {held_input}>input
wait_for grep -qE '^[0-9a-f]{32}$' held
run_limited "$stasis" suspend "${pids[@]}"
expect_refused 1 "process ${pids[0]}: busy: coordinator pid $holder"
exec {held_input}>&-
wait $holder || fail "expected the holder to end well"

# folders
if [ "$(id -u)" != 0 ]; then
	mkdir -m 500 locked
	run_limited "$stasis" suspend --to locked/image "${pids[@]}"
	expect_refused 1 "locked"
fi
mkdir loose
chmod 755 loose
STASIS_MEMORY_DIR=$PWD/loose run_limited "$stasis" suspend "${pids[@]}"
expect_refused 1 "mode 0700"
STASIS_MEMORY_DIR=loose run_limited "$stasis" suspend "${pids[@]}"
expect_refused 2 "STASIS_MEMORY_DIR is not absolute"
for point in transfer_write:1 image_sums_write; do
	STASIS_FAULT=$point=ENOSPC run_limited "$stasis" suspend --to image "${pids[@]}"
	expect_refused 1 "No space left on device"
	expect_missing image
done

# signals give it up in good order
for signal in INT TERM; do
	for phase in preflight save_allocations; do
		STASIS_FAULT=group_$phase=stop "$stasis" suspend --to image "${pids[@]}" >out 2>err &
		suspend=$!
		wait_for worker_has_stopped
		kill -$signal $suspend
		kill -CONT "$worker"
		wait $suspend
		status=$?
		command_text="suspend, SIG$signal in $phase"
		expect_refused 1 ""
		expect_missing image
	done
done
ring_end

# without the interposer nobody knows what they share
rm -f status ready
"$STASIS_BUILD_DIR/tests/workloads/share_ring" --processes 2 --devices 2 --bytes 4M --status status --ready ready \
	>ring.out 2>&1 &
ring_pid=$!
wait_for test -e ready
mapfile -t pids <ready
run_limited "$stasis" suspend "${pids[@]}"
expect_refused 1 "runs without the interposer"
ring_end
