#!/bin/bash
# Description: doctor works with and without a driver; status tells the driver's state or why there is none.
. "$(dirname "$0")/lib.sh"

run_limited "$stasis" doctor
expect_status 0
expect_no_error
expect_line "store_native=yes"
expect_line "store_custom=yes"
grep -q '^gpu\.0\.name=' out || fail "expected the GPU"
for key in stasis_version kernel_module driver cuda_version criu user cap_sys_ptrace yama_scope \
	memory_available_bytes memory_holds_gpus directory disk_free_bytes disk_holds_gpus; do
	grep -q "^$key=." out || fail "expected $key"
done
[ "$(wc -l <out)" -le 40 ] || fail "expected one screen"

STASIS_SIM_CUDA=13000 run_limited "$stasis" doctor
expect_status 0
grep -q '^store_custom=no: .' out || fail "expected the reason why there is no custom store"

STASIS_LIBCUDA=$PWD/none.so run_limited "$stasis" doctor
expect_status 0
grep -q '^driver=none: .*none\.so' out || fail "expected that the driver could not be loaded"
grep -q '^store_native=no: ' out || fail "expected no store"

run_limited "$stasis" doctor --dir nowhere
expect_status 0
grep -q '^warning=.*nowhere' out || fail "expected a warning for the missing folder"

status_refused() { # PID TEXT
	run_limited "$stasis" status "$1"
	expect_status 1
	expect_error "$2"
}
status_refused 0 "not a process id"
status_refused $$ "no CUDA state"
sleep 1000 &
child=$!
kill "$child"
wait "$child" 2>/dev/null
status_refused "$child" "$child"
STASIS_LIBCUDA=$PWD/none.so run_limited "$stasis" status $$
expect_status 1
expect_error "none.so"
