#!/bin/bash
# Description: status says of a program under the interposer in which capture it is, with a driver and without; gc keeps a
# partial whose program is armed though the driver says that it runs.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ring.sh"

ring_start 2
expect_ring_goes_on
target=${pids[0]}

run_limited "$stasis" status "$target"
expect_status 0
expect_no_error
expect_line "pid=$target"
expect_line "state=RUNNING"
grep -qE '^participant=[0-9a-f]{32}$' out || fail "expected the participant"
! grep -qE '^(capture|capture_phase|image)=' out || fail "expected no capture"

# suspended
run_limited "$stasis" suspend --to image "${pids[@]}"
expect_status 0
run_limited "$stasis" status "$target"
expect_status 0
expect_line "state=CHECKPOINTED"
grep -qE '^capture=[0-9a-f]{32}$' out || fail "expected the capture"
expect_line "capture_phase=PREPARE_UNICAST"
expect_line "image=$PWD/image"
STASIS_LIBCUDA=$PWD/none.so run_limited "$stasis" status "$target"
expect_status 0
expect_line "image=$PWD/image"
grep -q "^warning=the driver's state is not known: .*none.so" out || fail "expected why there is no state"
! grep -q '^state=' out || fail "expected no state"
run_limited "$stasis" status --json "$target"
expect_status 0
python3 -c '
import json, os
said = json.load(open("out"))
assert said["status"] == "ok" and said["state"] == ["CHECKPOINTED"], said
assert said["image"] == os.getcwd() + "/image" and said["capture_phase"] == "PREPARE_UNICAST", said
' || fail "expected one JSON object"
run_limited "$stasis" resume image
expect_status 0
run_limited "$stasis" status "$target"
expect_status 0
expect_line "state=RUNNING"
! grep -qE '^(capture|capture_phase|image)=' out || fail "expected no capture any more"

# armed by a suspend that was killed: the driver says that they run, and the partial is all that they have
mkdir partials
STASIS_FAULT=group_prepare_unicast=stop "$stasis" suspend --to partials/image "${pids[@]}" >killed 2>&1 &
suspend=$!
worker_has_stopped() {
	worker=$(pgrep -P $suspend) && grep -q '^State:.T' "/proc/$worker/status" 2>/dev/null
}
wait_for worker_has_stopped
kill -KILL $suspend "$worker"
wait $suspend 2>/dev/null
wait_for process_is_gone "$worker"
run_limited "$stasis" status "$target"
expect_status 0
expect_line "state=RUNNING"
expect_line "image=$PWD/partials/image"
run_limited "$stasis" gc partials
expect_status 0
expect_line "removed=0"
expect_line "partial.0.state=suspended"
grep -q '^warning=.* is kept' out || fail "expected that it is kept to be said"
run_limited "$stasis" recover
expect_status 0
expect_ring_goes_on
run_limited "$stasis" gc partials
expect_status 0
expect_line "partials=0"
ring_end
