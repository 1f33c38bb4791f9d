#!/bin/bash
# Description: what the machine or a program's surroundings make impossible is refused before anything is touched, in one
# line that names process, thing, reason and remedy: compute mode, MIG, MPS, a lock of somebody else, too few descriptors,
# too small a disk. The programs run on.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ring.sh"

expect_refused() { # TEXT...
	expect_status 1
	for text; do
		expect_error "$text"
	done
	grep -q '^phase=gate$' out && fail "expected no gate to be closed"
	expect_ring_goes_on
	expect_no_partial
	expect_no_trace
}

mkdir mps
export CUDA_MPS_PIPE_DIRECTORY=$PWD/mps
ring_start 2
expect_ring_goes_on

# the GPUs' own modes
STASIS_SIM_COMPUTE_MODE=3 run_limited "$stasis" suspend "${pids[@]}"
expect_refused "GPU 0 (Simulated GPU) is in compute mode 'exclusive process'" "nvidia-smi -i 0000:10:00.0 -c DEFAULT"
STASIS_SIM_COMPUTE_MODE=2 run_limited "$stasis" suspend "${pids[@]}"
expect_refused "compute mode 'prohibited'"
STASIS_SIM_MIG=1 run_limited "$stasis" suspend "${pids[@]}"
expect_refused "GPU 0 (Simulated GPU, 0000:10:00.0) is a MIG instance"

# somebody else has locked one of them
mkfifo input
"$STASIS_BUILD_DIR/tests/cli/hold_locked" "${pids[1]}" <input >held 2>&1 &
holder=$!
exec {held_input}>input
wait_for grep -q '^locked$' held
run_limited "$stasis" suspend "${pids[@]}"
expect_status 1
expect_error "process ${pids[1]} (share_ring) is LOCKED already"
exec {held_input}>&-
wait $holder || fail "expected the holder to unlock it"
expect_refused "give it back first"

# descriptors: ours by the hard limit alone, those of the programs by their own
(ulimit -Sn 48 && run_limited "$stasis" suspend "${pids[@]}" && expect_status 0) || exit 1
run_limited "$stasis" resume "${pids[0]}"
expect_status 0
expect_ring_goes_on
(ulimit -n 90 && run_limited "$stasis" suspend "${pids[@]}" && echo "$status" >limited) || exit 1
status=$(cat limited)
expect_refused "shared allocations of process ${pids[0]} (share_ring)" "hard limit is 90; 'ulimit -Hn"
limit=$(prlimit --pid "${pids[1]}" --nofile --output SOFT --noheadings | tr -d ' ')
prlimit --pid "${pids[1]}" --nofile=40:
run_limited "$stasis" suspend "${pids[@]}"
expect_refused "process ${pids[1]} (share_ring) has " "its limit is 40; 'prlimit --pid ${pids[1]} --nofile="
prlimit --pid "${pids[1]}" --nofile="$limit:"

# a disk that is too small, in a mount namespace of its own
mkdir disk
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	# shellcheck disable=SC2016
	run_limited unshare -m bash -c 'mount -t tmpfs -o size=1M,mode=700 none disk && exec "$@"' - \
		"$stasis" suspend --to disk/image "${pids[@]}"
	expect_refused "the file system of '$PWD/disk/image' has" "--to"
fi

run_limited "$stasis" suspend "${pids[@]}"
expect_status 0
run_limited "$stasis" resume "${pids[0]}"
expect_status 0
expect_ring_goes_on
ring_end

# a daemon of MPS makes clients of those that are started with it, and of nobody else
cp "$(command -v sleep)" nvidia-cuda-mps-control
./nvidia-cuda-mps-control 600 &
daemon=$!
wait_for grep -qx nvidia-cuda-mps "/proc/$daemon/comm"
ring_start 2
expect_ring_goes_on
run_limited "$stasis" suspend "${pids[@]}"
expect_refused "process ${pids[0]} (share_ring) uses the GPU through the MPS daemon, process $daemon, at '$PWD/mps'"
ring_end
export CUDA_MPS_PIPE_DIRECTORY=$PWD/other
ring_start 2
expect_ring_goes_on
run_limited "$stasis" suspend "${pids[@]}"
expect_status 0
run_limited "$stasis" resume "${pids[0]}"
expect_status 0
expect_ring_goes_on
ring_end
kill $daemon
wait $daemon 2>/dev/null
exit 0
