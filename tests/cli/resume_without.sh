#!/bin/bash
# Description: a program that ended while suspended is named, and the others are resumed without it where that is asked
# for; an image brings back its own programs only.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ring.sh"

# an image of a group that has ended
ring_start 2
expect_ring_goes_on
run_limited "$stasis" suspend --to other "${pids[@]}"
expect_status 0
other=("${pids[@]}")
run_limited "$stasis" resume other
expect_status 0
ring_end
run_limited "$stasis" resume other
expect_status 3
expect_error "process ${other[0]} "
run_limited "$stasis" resume --without-missing other
expect_status 1
expect_error "have ended"

coproc pair { exec "$stasis" run -- "$STASIS_BUILD_DIR/tests/workloads/share_pair" 2>pair.err; }
# shellcheck disable=SC2154
read -r -t 60 creator importer <&"${pair[0]}" || fail "expected two pids"
run_limited "$stasis" suspend --to image "$creator" "$importer"
expect_status 0
run_limited "$stasis" resume "$creator" "${other[0]}"
expect_status 3
expect_error "process ${other[0]} is not of the image"
kill -KILL "$importer"
wait_for process_is_gone "$importer"
run_limited "$stasis" resume image
expect_status 3
expect_error "process $importer ("
expect_error "--without-missing"
run_limited "$stasis" status "$creator"
expect_line "state=CHECKPOINTED"
run_limited "$stasis" resume --without-missing image
expect_status 0
expect_last_line "resumed=1"
run_limited "$stasis" status "$creator"
expect_line "state=RUNNING"
input=${pair[1]}
exec {input}>&-
kill "${pair_PID:-}" "$creator" 2>/dev/null
exit 0
