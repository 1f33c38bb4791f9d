#!/bin/bash
# Description: share_ring, whose passing is taken for a proof elsewhere, fails and says what is wrong when memory, a
# kernel, a graph, or a call goes wrong, or one of its processes ends; none of them is left over.
. "$(dirname "$0")/../cli/lib.sh"

ring=$STASIS_BUILD_DIR/tests/workloads/share_ring

nothing_left() {
	local pid
	while read -r pid _; do
		process_is_gone "$pid" || fail "expected process $pid to be gone"
	done <status
}

notices() { # TEXT ASSIGNMENT [OPTIONS]
	rm -f status
	# shellcheck disable=SC2086 # options are words
	run_limited env "$2" "$ring" --processes 3 ${3:-} --bytes 2M --rounds 1000000 --status status
	expect_status 1
	grep -qE -- "$1" out || fail "expected a line that says '$1'"
	grep -qE '^share_ring=failed process=[0-9]+ status=1$' out || fail "expected the process that failed"
	if grep -q '^share_ring=passed' out; then fail "expected no success"; fi
	nothing_left
}

notices 'block (big|small|private|native) of [012] at 0x[0-9a-f]+: offset [0-9]+: expected 0x[0-9a-f]+ of .*found 0x' \
	STASIS_SIM_BREAK=host_reaches_device
notices 'graph\): block small of .*expected a count of [0-9]+ at generation [0-9]+, found 0' STASIS_SIM_BREAK=graph_replays
notices 'churner\): memory at .*found [0-9]+ others' STASIS_SIM_BREAK=kernel_parameters_are_copied
notices 'cuMemMap.*expected CUDA_SUCCESS .*, got CUDA_ERROR_OUT_OF_MEMORY' 'STASIS_SIM_FAULT=cuMemMap:8=OUT_OF_MEMORY'
notices 'what the team was sent in block big at .*expected 0x[0-9a-f]+, found 0x' STASIS_SIM_BREAK=multicast_fill_reaches_all \
	'--multicast --devices 3'
notices "the team's sum at 0x[0-9a-f]+: .*expected 0x[0-9a-f]+, found 0x" STASIS_SIM_BREAK=multicast_reduce \
	'--multicast --devices 3'

# a process that is killed while the others run on
"$ring" --processes 3 --bytes 2M --status status --ready ready >out 2>err &
parent=$!
wait_for test -s ready
kill -KILL "$(sed -n 2p ready)"
wait $parent
status=$?
expect_status 1
grep -qxF "share_ring=failed process=$(sed -n 2p ready) signal=9" out || fail "expected the process that was killed"
nothing_left

# asked to end, it ends well; its rounds have grown since it was ready
"$ring" --processes 3 --bytes 2M --status status --ready ready2 >out 2>err &
parent=$!
wait_for test -s ready2
kill -TERM $parent
wait $parent
status=$?
expect_status 0
expect_no_error
grep -qE '^share_ring=passed processes=3 rounds=[1-9][0-9]*$' out || fail "expected the closing line"
[ "$(cut -d' ' -f1 status)" = "$(cat ready2)" ] || fail "expected the same processes in both files"
[ "$(cut -d' ' -f2 status | sort -u | wc -l)" = 1 ] || fail "expected all to have ended in one round"
nothing_left

run_limited "$ring" --rounds 1
expect_status 2
run_limited "$ring" --processes 2 --bytes 1X
expect_status 2
grep -q '^usage: share_ring' err || fail "expected the usage"
exit 0
