#!/bin/bash
# Description: while a program is suspended, its image or partial is kept, by gc too, and named.
. "$(dirname "$0")/lib.sh"

# Every read of the image fails: the program cannot be brought back now, and sleeps on.
STASIS_FAULT='transfer_read:*=EIO' roundtrip image --bytes 2M
expect_status 3
expect_error "image"
workload=$(value_of workload_pid)
trap 'kill -KILL "$workload" 2>/dev/null' EXIT
process_is_gone "$workload" && fail "expected the workload to be left alone"
run_limited "$stasis" status "$workload"
expect_status 0
expect_line "state=CHECKPOINTED"
run_limited "$stasis" verify image
expect_status 0
kill -KILL "$workload"
rm -rf image

# Published it was not, and read it cannot be: the partial is the only copy.
STASIS_FAULT='image_rename=EIO,transfer_read:*=EIO' roundtrip image --bytes 2M
expect_status 3
workload=$(value_of workload_pid)
expect_missing image
partial=$(echo image.partial-*)
[ -d "$partial" ] || fail "expected the partial to be kept"
expect_error "$partial"
run_limited "$stasis" gc .
expect_status 0
[ -d "$partial" ] || fail "expected gc to keep the only copy"
expect_line "partial.0.name=$partial"
expect_line "partial.0.state=suspended"
expect_line "partial.0.removed=no"
expect_line "partial.0.pid=$workload"

kill -KILL "$workload"
wait_for process_is_gone "$workload"
run_limited "$stasis" gc .
expect_status 0
expect_missing "$partial"
expect_line "removed=1"
run_limited "$stasis" gc .
expect_status 0
expect_line "partials=0"
