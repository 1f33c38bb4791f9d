# shellcheck shell=bash
# A ring of programs that share GPU memory and never pause, under 'stasis run', on a machine of its own. Sourced after
# lib.sh. What the programs find wrong they say, and end.

runtime=$(mktemp -d /tmp/stasis-t-XXXXXX)
export STASIS_RUNTIME_DIR=$runtime STASIS_MEMORY_DIR=$runtime/memory
# no CustomStorage: the driver's own store
export STASIS_SIM_CUDA=${STASIS_SIM_CUDA:-13000} STASIS_SIM_DEVICES=2 STASIS_SIM_MEMORY=1G
if [ "${STASIS_TEST_SANITIZER:-}" = address ]; then
	export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0"
fi
: "${stasis:=}"
ring_pid=
pids=()

ring_clean() {
	[ -z "$ring_pid" ] || kill -KILL "$ring_pid" "${pids[@]}" 2>/dev/null
	rm -rf "$runtime"
}
trap ring_clean EXIT

# $1 processes; what follows goes to the workload
ring_start() {
	local processes=$1
	shift
	rm -f status ready
	"$stasis" run -- "$STASIS_BUILD_DIR/tests/workloads/share_ring" --processes "$processes" --devices 2 \
		--bytes 4M --status status --ready ready "$@" >ring.out 2>&1 &
	ring_pid=$!
	wait_for test -e ready
	mapfile -t pids <ready
}

ring_rounds() {
	awk '{ sum += $2 } END { print sum + 0 }' status
}

ring_has_gone_on() {
	[ "$(ring_rounds)" -gt "$rounds_before" ]
}

# The programs make progress from now on.
expect_ring_goes_on() {
	rounds_before=$(ring_rounds)
	wait_for ring_has_gone_on
}

status_is_renewed() {
	[ status -nt mark ]
}

# What stands in the file was so after this call began: the second time that it is made anew.
ring_look() {
	for _ in first second; do
		touch mark
		wait_for status_is_renewed
	done
}

# That nothing happens is seen twice: whoever writes the status is none of the programs, and goes on.
expect_ring_stands() {
	local before
	ring_look
	before=$(ring_rounds)
	ring_look
	[ "$(ring_rounds)" = "$before" ] || fail "expected the programs to wait"
}

# They have found every byte, handle and address as it should be.
ring_end() {
	kill -TERM "$ring_pid"
	wait "$ring_pid" || { cat ring.out; fail "the programs found something wrong"; }
	ring_pid=
	pids=()
}

# Of all GPUs together, by the simulated machine's own account.
device_bytes_used() {
	sim_state --machine | awk -F '[= ]' '{ used += $3 - $5 } END { printf "%.0f\n", used }'
}

expect_no_trace() {
	for path in "$STASIS_MEMORY_DIR"/* "$runtime"/capture-*; do
		[ ! -e "$path" ] || fail "expected no '$path'"
	done
}
