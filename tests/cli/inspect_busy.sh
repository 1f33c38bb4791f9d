#!/bin/bash
# Description: inspect says of processes that another coordinator speaks to, or left armed, how far their operation is
# and why they cannot be asked; and of processes that may not be traced, that they may not.
. "$(dirname "$0")/lib.sh"

runtime=$(mktemp -d /tmp/stasis-t-XXXXXX)
export STASIS_RUNTIME_DIR=$runtime
trap 'rm -rf "$runtime"' EXIT
if [ "${STASIS_TEST_SANITIZER:-}" = address ]; then
	export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0"
fi
hold="$STASIS_BUILD_DIR/tests/cli/hold_session"

coproc pair { exec "$stasis" run -- "$STASIS_BUILD_DIR/tests/workloads/share_pair" 2>pair.err; }
# shellcheck disable=SC2154
read -r -t 60 creator importer <&"${pair[0]}" || fail "expected two pids"

# $operation is held until release
held() { # WORD [CAPTURE]
	mkfifo input
	"$hold" "$creator" "$@" <input >held 2>&1 &
	holder=$!
	exec {held_input}>input
	rm input
	wait_for grep -qE '^[0-9a-f]{32}$' held
	operation=$(cat held)
}
release() {
	exec {held_input}>&-
	wait "$holder" || fail "expected the holder of the session to end well: $(cat held)"
}

# another coordinator's session: nothing of it is disturbed
held session
run_limited "$stasis" inspect "$importer" "$creator"
expect_status 1
expect_error "process $creator: busy: coordinator pid $holder, operation $operation"
expect_line "process.0.gate=open"
expect_line "process.1.pid=$creator"
expect_line "process.1.name=share_pair"
expect_line "process.1.operation=$operation"
expect_line "process.1.phase=none"
! grep -q '^process.1.gate=' out || fail "expected nothing of what only the process could say"
run_limited "$stasis" inspect --json "$creator"
expect_status 1
python3 -c '
import json, sys
found = json.load(open("out"))
assert found["exit_status"] == 1 and "busy" in found["error"], found
assert found["process"][0]["operation"] == sys.argv[1], found' "$operation" || fail "expected a JSON object"
release

# armed, while its coordinator is there and after that has gone
held arm
armed=$operation
run_limited "$stasis" inspect "$creator"
expect_status 1
expect_error "busy: coordinator pid $holder"
expect_line "process.0.phase=ARM"
release
run_limited "$stasis" inspect "$creator"
expect_status 1
expect_error "process $creator: this participant is armed, in capture $armed"
expect_line "process.0.operation=$armed"
expect_line "process.0.phase=ARM"
expect_line "process.0.image=/images/one"
expect_line "process.0.journal=/images/one/journal"

# and it can be asked again once it is let go
held open "$armed"
release
run_limited "$stasis" inspect "$creator" "$importer"
expect_status 0
expect_line "process.0.reached_phase=none"
expect_line "process.0.gate=open"
! grep -q '^process.0.\(operation\|phase\|image\|journal\)=' out || fail "expected no operation"
expect_last_line "capturable=yes"

# not ours to trace
if [ "$(id -u)" = 0 ]; then
	stranger=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	if "${stranger[@]}" "$stasis" --version >stranger.out 2>&1; then
		run_limited "${stranger[@]}" "$stasis" inspect "$creator"
		expect_status 1
		expect_error "process $creator: "
		expect_error "ptrace"
	fi
else
	run_limited "$stasis" inspect 1
	expect_status 1
	expect_error "process 1: "
	expect_error "ptrace"
fi

printf '\n' >&"${pair[1]}"
read -r -t 60 word <&"${pair[0]}"
[ "$word" = verified ] || fail "expected every byte to be right"
input=${pair[1]}
exec {input}>&-
wait "${pair_PID:-}" 2>/dev/null
[ ! -s pair.err ] || fail "expected the programs to end well"
exit 0
