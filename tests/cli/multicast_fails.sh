#!/bin/bash
# Description: programs with a multicast team run on as before when a suspend fails after their team was taken apart, and
# sleep on when a resume fails while it is put together, and the next resume brings them back.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ring.sh"

mc_start() {
	ring_start 2 --multicast --bytes 2M
	expect_ring_goes_on
}

suspend_well() {
	run_limited "$stasis" suspend "${pids[@]}"
	expect_status 0
	expect_ring_stands
}

resume_well() {
	run_limited "$stasis" resume "${pids[@]}"
	expect_status 0
	expect_ring_goes_on
}

expect_undone() { # TEXT
	expect_status 1
	expect_error "$1"
	expect_error "run as before"
	expect_ring_goes_on
	expect_no_trace
}

expect_asleep() { # TEXT
	expect_status 3
	expect_error "$1"
	expect_ring_stands
}

# the worker fails behind each phase that has taken something apart, and while it puts things together
mc_start
for phase in arm prepare_multicast prepare_unicast lock checkpoint publish; do
	run_limited env "STASIS_FAULT=group_$phase=EIO" "$stasis" suspend "${pids[@]}"
	expect_undone "'$phase'"
done
suspend_well
for phase in restore_unicast restore_multicast compare_topology; do
	run_limited env "STASIS_FAULT=group_$phase=EIO" "$stasis" resume "${pids[@]}"
	expect_asleep "'$phase'"
done
resume_well
suspend_well
resume_well
ring_end

# a driver that does not let go: the first time in each program
export STASIS_SIM_FAULT=cuMulticastUnbind:1=INVALID_VALUE
mc_start
run_limited "$stasis" suspend "${pids[@]}"
expect_undone "PREPARE_MULTICAST: multicast object"
suspend_well
resume_well
unset STASIS_SIM_FAULT
ring_end

# a driver that does not make again what it made: the second time, which not every program comes to at the first resume
for call in cuMulticastCreate:2 cuMulticastAddDevice:2 cuMulticastBindMem:2; do
	export STASIS_SIM_FAULT=$call=OUT_OF_MEMORY
	mc_start
	suspend_well
	run_limited "$stasis" resume "${pids[@]}"
	expect_asleep "OUT_OF_MEMORY"
	run_limited "$stasis" resume "${pids[@]}"
	if [ "$status" != 0 ]; then
		expect_asleep "OUT_OF_MEMORY"
		resume_well
	fi
	expect_ring_goes_on
	unset STASIS_SIM_FAULT
	ring_end
done
