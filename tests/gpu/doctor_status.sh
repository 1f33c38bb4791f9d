#!/bin/bash
# Description: doctor names this machine's driver and GPUs, and status refuses a process without CUDA state.
. "$(dirname "$0")/../cli/lib.sh"

run_limited "$stasis" doctor
expect_status 0
cat out
grep -q '^store_native=yes' out || fail "expected the native store"
grep -qE '^gpu\.0\.uuid=GPU-[0-9a-f-]{36}$' out || fail "expected the first GPU's UUID"

sleep 60 &
run_limited "$stasis" status $!
kill $! 2>/dev/null
expect_status 1
expect_error "$!"
