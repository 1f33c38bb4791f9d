#!/bin/bash
# Description: suspend --tree takes every process of a tree that uses CUDA, those that begin to while it is at work as
# well, and lets the others run on; resume --tree finds them again from the head of the tree.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ring.sh"

# The shell at the head starts one ring at once and another when it is told to; neither it nor `sleep` uses CUDA.
cat >head.sh <<'EOF'
"$1" --processes 2 --devices 2 --bytes 4M --status status --ready ready >ring.out 2>&1 &
sleep 1000 &
echo $! >sleeper_pid
while [ ! -e go ]; do sleep 0.05; done
"$1" --processes 1 --devices 1 --bytes 4M --status status2 --ready ready2 >ring2.out 2>&1 &
wait
EOF
"$stasis" run -- bash head.sh "$STASIS_BUILD_DIR/tests/workloads/share_ring" &
ring_pid=$!
wait_for test -s ready
mapfile -t pids <ready
sleeper=$(cat sleeper_pid)
trap 'kill -KILL "$sleeper" $(cat ready ready2 2>/dev/null); ring_clean' EXIT
expect_ring_goes_on

# alone the head has nothing to take away, and nothing says so but the advice
run_limited "$stasis" suspend "$ring_pid"
expect_status 1
expect_error "--tree"
run_limited "$stasis" suspend --tree "$sleeper"
expect_status 1
expect_error "none of the 1 processes of the tree of process $sleeper uses CUDA"
run_limited "$stasis" suspend --tree 999999999
expect_status 1
expect_error "process 999999999 is not there"
run_limited "$stasis" resume --tree "$ring_pid"
expect_status 1
expect_error "of the tree of process $ring_pid is in a capture"

# all of it
run_limited "$stasis" suspend --tree "$ring_pid"
expect_status 0
expect_no_error
expect_line "suspended=2"
for pid in "${pids[@]}"; do
	expect_line "suspended_pid=$pid"
done
for pid in "$ring_pid" "$sleeper"; do
	expect_line "without_cuda_pid=$pid"
done
expect_ring_stands
[ "$(device_bytes_used)" = 0 ] || fail "expected nothing on the GPUs"
run_limited "$stasis" suspend --tree "$ring_pid"
expect_status 1
expect_error "uses CUDA and runs"
run_limited "$stasis" resume --tree "$ring_pid"
expect_status 0
expect_last_line "resumed=2"
expect_ring_goes_on
expect_no_trace

# one more of them begins to use CUDA after the tree was looked at, and before the gates are shut
STASIS_FAULT_ONCE=$PWD/once STASIS_FAULT=group_gate:1=stop run_limited "$stasis" suspend --tree "$ring_pid" &
suspend=$!
# called by wait_for
# shellcheck disable=SC2317
worker_stands_still() {
	worker=$(pgrep -f "stasis suspend --tree $ring_pid" | while read -r pid; do
		grep -q '^State:.T' "/proc/$pid/status" 2>/dev/null && echo "$pid"
	done)
	[ -n "$worker" ]
}
wait_for worker_stands_still
touch go
wait_for test -s ready2
kill -CONT "$worker"
wait $suspend
grep -qx "suspended=3" out || fail "expected the third process, too"
mapfile -t -O 2 pids <ready2
for pid in "${pids[@]}"; do
	expect_line "suspended_pid=$pid"
done
expect_ring_stands
run_limited "$stasis" resume --tree "$ring_pid"
expect_status 0
expect_last_line "resumed=3"
expect_ring_goes_on

# one that was suspended before stays so, and is told of; then they are in two images
run_limited "$stasis" suspend "${pids[2]}"
expect_status 0
run_limited "$stasis" suspend --tree "$ring_pid"
expect_status 0
expect_line "suspended=2"
expect_line "left_suspended_pid=${pids[2]}"
run_limited "$stasis" resume --tree "$ring_pid"
expect_status 1
expect_error "were suspended apart"
run_limited "$stasis" resume "${pids[0]}"
expect_status 0
run_limited "$stasis" resume "${pids[2]}"
expect_status 0
expect_ring_goes_on
expect_no_trace
kill -TERM "$(awk '{ print $4 }' "/proc/${pids[0]}/stat")"
kill -TERM "$(awk '{ print $4 }' "/proc/${pids[2]}/stat")"
kill "$sleeper"
wait "$ring_pid" || fail "expected the head to end in good order"
grep -q '^share_ring=passed' ring.out || fail "expected the first ring to have found nothing wrong"
grep -q '^share_ring=passed' ring2.out || fail "expected the second ring to have found nothing wrong"
ring_pid=
exit 0
