#!/bin/bash
# Description: programs that share GPU memory and form a multicast team, and never pause, are suspended and resumed again
# and again, and find every byte, sum, handle and address as they left it.
#
# usage: multicast_cycles.sh PROCESSES DEVICES CYCLES [VERSION]
. "$(dirname "$0")/lib.sh"
STASIS_SIM_CUDA=${4:-13040}
. "$(dirname "$0")/ring.sh"
export STASIS_SIM_DEVICES=$2

ring_start "$1" --devices "$2" --bytes 2M --multicast
for cycle in $(seq "$3"); do
	run_limited "$stasis" suspend "${pids[@]}"
	expect_status 0
	expect_line "suspended=$1"
	grep -q '^phase=prepare_multicast ' out || fail "expected multicast to be taken apart in cycle $cycle"
	expect_ring_stands
	run_limited "$stasis" resume "${pids[@]}"
	expect_status 0
	expect_line "resumed=$1"
	expect_ring_goes_on
done
ring_end
grep -q "^share_ring=passed processes=$1 " ring.out || fail "expected the programs to have passed"
expect_no_trace
