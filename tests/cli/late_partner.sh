#!/bin/bash
# Description: a suspend that finds GPU work waiting for another program lets the programs get on with it between its
# tries, for more than a call or two, and succeeds.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ring.sh"

mkfifo hold
"$stasis" run -- "$STASIS_BUILD_DIR/tests/workloads/late_partner" <hold >ring.out 2>&1 &
ring_pid=$!
exec 9>hold
wait_for test -s ring.out
read -r -a pids <ring.out
run_limited "$stasis" suspend "${pids[@]}"
expect_status 0
[ "$(value_of gate_tries)" -gt 1 ] || fail "expected the work to be waited for"
run_limited "$stasis" resume "${pids[@]}"
expect_status 0
exec 9>&-
wait $ring_pid || fail "the programs found something wrong: $(cat ring.out)"
ring_pid=
pids=()
