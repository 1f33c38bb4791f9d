#!/bin/bash
# Description: a driver call, a pipe or a process that hangs is ended at the timeout, and named.
. "$(dirname "$0")/lib.sh"

# Long enough for a loaded machine to come to the fault; every row waits it out.
timeout_s=$(awk "BEGIN { print (${STASIS_TEST_TIMEOUT_SCALE:-1} > 1) ? 8 : 4 }")s

hung() { # STATUS TEXT
	roundtrip image --bytes 2M --timeout "$timeout_s"
	expect_status "$1"
	expect_error "timed out"
	expect_error "$2"
	process_is_gone "$(value_of workload_pid)" || fail "expected the workload to have been ended"
}

none_left() {
	expect_no_partial
	expect_missing image
	roundtrip image --bytes 2M
	expect_status 0
	rm -rf image
}

export STASIS_SIM_FAULT_PROCESS=stasis
for call in cuInit cuDevicePrimaryCtxRetain; do
	STASIS_SIM_FAULT=$call:1=hang hung 1 "$call"
	none_left
done
STASIS_SIM_FAULT=cuCheckpointProcessLock:1=hang hung 1 "cuCheckpointProcessLock"
none_left
STASIS_SIM_FAULT=cuCheckpointProcessCheckpoint:1=hang hung 1 "cuCheckpointProcessCheckpoint"
none_left
STASIS_SIM_FAULT=cuCheckpointProcessGetState:2=hang hung 1 "cuCheckpointProcessGetState"
none_left
# In the middle of the driver's operation nobody can say what became of the program.
STASIS_SIM_FAULT=cuCheckpointOperationComplete:1=hang hung 4 "cuCheckpointOperationComplete"
rm -rf image*
STASIS_SIM_FAULT=cuCheckpointOperationComplete:2=hang hung 4 "cuCheckpointOperationComplete"
[ -d image ] || fail "expected the image to be kept"
rm -rf image*

# The workload's side: it never answers.
export STASIS_SIM_FAULT_PROCESS=stasis-workload
STASIS_SIM_FAULT=cuInit:1=hang hung 1 "the workload's answer"
none_left
unset STASIS_SIM_FAULT_PROCESS

# Our own side: before the program is touched, while it is suspended, after it runs again.
for phase in prepare fill_workload publish; do
	STASIS_FAULT=roundtrip_$phase=hang hung 1 "phase '$phase'"
	none_left
done
for phase in verify unlock finish; do
	STASIS_FAULT=roundtrip_$phase=hang hung 1 "phase '$phase'"
	run_limited "$stasis" verify image
	expect_status 0
	rm -rf image
done
