#!/bin/bash
# Description: programs that share GPU memory and never pause are suspended and resumed again and again, and find every
# byte, handle and address as they left it; between the two the GPU's memory is free, and others overwrite all of it.
#
# usage: suspend_cycles.sh PROCESSES BYTES CYCLES
set -u
processes=$1
bytes=$2
cycles=$3
stasis=$STASIS_BUILD_DIR/src/cli/stasis
ring=$STASIS_BUILD_DIR/tests/workloads/share_ring

runtime=$(mktemp -d /tmp/stasis-t-XXXXXX)
export STASIS_RUNTIME_DIR=$runtime STASIS_MEMORY_DIR=${STASIS_MEMORY_DIR:-$runtime/memory}
trap 'kill "$program" 2>/dev/null; rm -rf "$runtime"' EXIT

fail()
{
	printf 'FAILED: %s\n' "$*"
	for file in out err ring.out; do
		sed "s/^/$file: /" "$file"
	done
	exit 1
}

rounds()
{
	awk '{ sum += $2 } END { print sum + 0 }' status
}

# Progress is seen, not waited for by the clock: the file is looked at until it says more.
goes_on()
{
	local before=$1
	for _ in $(seq 600); do
		[ "$(rounds)" -gt "$before" ] && return 0
		sleep 0.1
	done
	return 1
}

free_bytes()
{
	"$STASIS_BUILD_DIR/tests/workloads/take_all" "$@" </dev/null >taken || fail "expected the memory to be taken"
	awk '{ sum += $4 } END { printf "%.0f\n", sum }' taken
}

"$stasis" run -- "$ring" --processes "$processes" --bytes "$bytes" --status status --ready ready >ring.out 2>&1 &
program=$!
for _ in $(seq 1200); do
	[ -e ready ] && break
	kill -0 "$program" 2>/dev/null || fail "the programs ended"
	sleep 0.1
done
mapfile -t pids <ready
: >out
: >err
for cycle in $(seq "$cycles"); do
	free_before=$(free_bytes --look) || exit 1
	"$stasis" suspend --json "${pids[@]}" >out 2>err || fail "suspend in cycle $cycle: status $?"
	cat out >>suspends
	# nothing can be waited for where nothing is to happen
	held=$(rounds)
	sleep 0.3
	[ "$(rounds)" = "$held" ] || fail "the programs go on while they are suspended"
	free_between=$(free_bytes) || exit 1
	shared=$(sed -n 's/.*"shared_bytes": \([0-9]*\).*/\1/p' suspends | tail -n 1)
	[ $((free_between - free_before)) -ge "$shared" ] ||
		fail "expected $shared bytes to be free again, found $((free_between - free_before))"
	printf 'cycle=%s freed_bytes=%s shared_bytes=%s\n' "$cycle" $((free_between - free_before)) "$shared"
	"$stasis" resume --json "${pids[@]}" >out 2>err || fail "resume in cycle $cycle: status $?"
	cat out >>resumes
	goes_on "$held" || fail "the programs do not go on after cycle $cycle"
done
kill -TERM "$program"
wait "$program" || fail "the programs found something wrong: status $?"
tail -n 1 ring.out
printf 'cycles=%s processes=%s\n' "$cycles" "$processes"
[ -z "${STASIS_KEEP_RESULTS:-}" ] || cp suspends resumes "$STASIS_KEEP_RESULTS/"
