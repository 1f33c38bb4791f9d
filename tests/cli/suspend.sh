#!/bin/bash
# Description: programs that share GPU memory are suspended while they run and resumed; in between the GPUs are empty, and
# others may overwrite all of their memory. What cannot be suspended is refused in one line, and runs on.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ring.sh"

ring_start 2
expect_ring_goes_on

# in memory, and all the GPUs' memory taken and overwritten meanwhile
run_limited "$stasis" suspend "${pids[@]}"
expect_status 0
expect_no_error
expect_line "suspended=2"
expect_line "shared_bytes=12582912"
expect_ring_stands
[ "$(device_bytes_used)" = 0 ] || fail "expected nothing on the GPUs, found $(device_bytes_used) bytes"
image=$(value_of image)
[ -d "$image" ] || fail "expected the image in memory"
[ "$(stat -c %a "$STASIS_MEMORY_DIR")" = 700 ] || fail "expected the folder to be ours alone"
mkfifo hold
"$STASIS_BUILD_DIR/tests/workloads/take_all" <hold >taken &
taker=$!
exec 9>hold
wait_for grep -q 'device 1' taken
run_limited "$stasis" resume "${pids[@]}"
expect_status 3
expect_error "GPU"
expect_ring_stands
exec 9>&-
wait $taker || fail "expected the memory to be taken"
run_limited "$stasis" resume "${pids[0]}"
expect_status 0
expect_last_line "resumed=2"
expect_ring_goes_on
expect_no_trace

# to a directory, by a path from elsewhere, told as JSON
run_limited "$stasis" suspend --json --to image "${pids[@]}"
expect_status 0
python3 - "${pids[@]}" <<'EOF' || fail "expected one JSON object that says so"
import json
import os
import sys
said = json.load(open("out"))
assert said["status"] == "ok" and said["suspended"] == 2, said
assert said["image"] == os.path.join(os.getcwd(), "image"), said
assert said["phase"][-1] == "commit" and said["state"] == ["CHECKPOINTED"] * 2, said
kept = json.load(open("image/shared.json"))
assert {member["pid"] for member in kept["members"]} == {int(pid) for pid in sys.argv[1:]}, kept
EOF
run_limited "$stasis" verify image
expect_status 0
run_limited "$stasis" suspend "${pids[@]}"
expect_status 1
expect_error "is suspended, in capture"
(cd / && exec timeout 60 "$stasis" resume "$OLDPWD/image" >/dev/null) || fail "expected to resume from elsewhere"
expect_ring_goes_on
[ -d image ] || fail "expected the image to stay"
run_limited "$stasis" resume image
expect_status 1
expect_error "no capture that could be resumed"
expect_ring_goes_on

# what is wrong is said, and the programs go on
run_limited "$stasis" suspend
expect_status 2
expect_error "PID... is missing"
run_limited "$stasis" suspend "${pids[0]}" "${pids[0]}"
expect_status 2
expect_error "named twice"
run_limited "$stasis" suspend "${pids[0]}"
expect_status 1
expect_error "(share_ring)"
run_limited "$stasis" suspend "${pids[@]}" $$
expect_status 1
expect_error "$$"
run_limited "$stasis" suspend --to image "${pids[@]}"
expect_status 1
expect_error "image"
run_limited "$stasis" suspend --to missing/image "${pids[@]}"
expect_status 1
expect_error "missing"
run_limited "$stasis" suspend --to $'im\nage' "${pids[@]}"
expect_status 2
expect_error "control character"
kill -STOP "${pids[1]}"
run_limited "$stasis" suspend "${pids[@]}"
kill -CONT "${pids[1]}"
expect_status 1
expect_error "process ${pids[1]} is stopped"
run_limited "$stasis" suspend --assume-memory 1M "${pids[@]}"
expect_status 1
expect_error "--assume-memory"
run_limited "$stasis" suspend --gate-timeout 0s "${pids[@]}"
expect_status 2
expect_ring_goes_on
expect_no_partial
expect_no_trace
ring_end
