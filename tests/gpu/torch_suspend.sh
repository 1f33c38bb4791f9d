#!/bin/bash
# Description: PyTorch trains under 'stasis run' and is suspended and resumed in the middle of it, ten times, others
# overwriting the GPU's memory in between; its weights are those of a run that nobody interrupted, bit by bit.
#
# usage: torch_suspend.sh [OPTIONS of torch_train.py]
set -u
cycles=${STASIS_TEST_CYCLES:-10}
here=$(cd "$(dirname "$0")" && pwd)
stasis=$STASIS_BUILD_DIR/src/cli/stasis
# what its deterministic algorithms ask for
export CUBLAS_WORKSPACE_CONFIG=:4096:8

if ! python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
	echo "no PyTorch that finds a GPU"
	exit 77
fi

runtime=$(mktemp -d /tmp/stasis-t-XXXXXX)
export STASIS_RUNTIME_DIR=$runtime STASIS_MEMORY_DIR=${STASIS_MEMORY_DIR:-$runtime/memory}
program=
trap '[ -z "$program" ] || kill -KILL "$program"; rm -rf "$runtime"' EXIT

fail() {
	printf 'FAILED: %s\n' "$*"
	for file in out err train.out; do
		sed "s/^/$file: /" "$file"
	done
	exit 1
}

lines() {
	wc -l <interrupted
}

wait_for_lines() { # COUNT
	for _ in $(seq 1800); do
		[ "$(lines)" -ge "$1" ] && return 0
		kill -0 "$program" 2>/dev/null || fail "the program ended"
		sleep 0.1
	done
	fail "the program does not go on"
}

: >out
: >err
: >interrupted
"$stasis" run -- python3 "$here/torch_train.py" --lines interrupted "$@" >train.out 2>&1 &
program=$!
wait_for_lines 1
for cycle in $(seq "$cycles"); do
	"$stasis" suspend --json --tree "$program" >out 2>err || fail "suspend in cycle $cycle: status $?"
	cat out >>suspends
	held=$(lines)
	"$STASIS_BUILD_DIR/tests/workloads/take_all" </dev/null >taken || fail "expected the memory to be taken"
	[ "$(lines)" = "$held" ] || fail "the program goes on while it is suspended"
	"$stasis" resume --json --tree "$program" >out 2>err || fail "resume in cycle $cycle: status $?"
	cat out >>resumes
	printf 'cycle=%s steps=%s %s\n' "$cycle" "$(tail -n 1 interrupted | cut -d' ' -f1)" "$(cat taken)"
	wait_for_lines $((held + 2))
done
kill -TERM "$program"
wait "$program" || fail "the program ended with $?"
program=
steps=$(tail -n 1 interrupted | cut -d' ' -f1)
python3 "$here/torch_train.py" --lines undisturbed --steps "$steps" "$@" >train.out 2>&1 || fail "the other run ended with $?"
cmp interrupted undisturbed || fail "expected the weights of the undisturbed run"
printf 'cycles=%s steps=%s lines=%s: identical\n' "$cycles" "$steps" "$(lines)"
[ -z "${STASIS_KEEP_RESULTS:-}" ] || cp suspends resumes "$STASIS_KEEP_RESULTS/"
