#!/bin/bash
# Description: output that cannot be written is a failure, a reader that went away is none.
. "$(dirname "$0")/lib.sh"

"$stasis" doctor | head -n 1 >out
statuses=("${PIPESTATUS[@]}")
[ "${statuses[0]}" = 0 ] || fail "expected doctor to end well when its reader went away"

# The reader of a round trip goes away at its first line: the round trip goes on to its end.
timeout 60 "$stasis" roundtrip --artifact-dir image --bytes 2M | head -n 1 >out
statuses=("${PIPESTATUS[@]}")
[ "${statuses[0]}" = 0 ] || fail "expected the round trip to go on, got ${statuses[0]}"
run_limited "$stasis" verify image
expect_status 0

if [ -c /dev/full ]; then
	"$stasis" doctor >/dev/full 2>err
	status=$?
	expect_status 1
	expect_error "standard output could not be written"
	"$stasis" doctor --json >/dev/full 2>err
	status=$?
	expect_status 1
fi

# No progress line in a pipe.
roundtrip image2 --bytes 64M
expect_status 0
expect_no_error
! grep -q "$(printf '\r')" out || fail "expected no progress line"
