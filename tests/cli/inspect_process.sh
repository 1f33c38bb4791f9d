#!/bin/bash
# Description: inspect of running programs says what they share and whether they can be captured together, and holds
# nothing of theirs.
. "$(dirname "$0")/lib.sh"

runtime=$(mktemp -d /tmp/stasis-t-XXXXXX)
export STASIS_RUNTIME_DIR=$runtime
trap 'rm -rf "$runtime"' EXIT
if [ "${STASIS_TEST_SANITIZER:-}" = address ]; then
	export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0"
fi

# two processes that share memory, under the interposer
coproc pair { exec "$stasis" run -- "$STASIS_BUILD_DIR/tests/workloads/share_pair" 2>pair.err; }
# shellcheck disable=SC2154
read -r -t 60 creator importer <&"${pair[0]}" || fail "expected two pids"

run_limited "$stasis" inspect "$creator" "$importer"
expect_status 0
expect_no_error
expect_line "process.0.pid=$creator"
expect_line "process.0.created=1"
expect_line "process.0.created_bytes=4194304"
expect_line "process.0.imported=0"
expect_line "process.0.shared_bytes=4194304"
expect_line "process.0.mappings=1"
expect_line "process.0.private=0"
expect_line "process.0.name=share_pair"
expect_line "process.0.gate=open"
expect_line "process.1.pid=$importer"
expect_line "process.1.imported=1"
expect_line "process.1.imported_bytes=4194304"
expect_line "object.0.kind=memory"
expect_line "object.0.bytes=4194304"
expect_line "object.0.creator_pid=$creator"
expect_last_line "capturable=yes"
expect_line "object.0.carried_by=stasis"
[ "$(sed -n 's/^object\.0\.holder_pids\.[01]=//p' out | sort)" = "$(printf '%s\n' "$creator" "$importer" | sort)" ] ||
	fail "expected both among the holders"
expect_line "device.0.uuid=$(value_of object.0.device)"
expect_line "device.0.carried_bytes=4194304"
expect_line "host_carried_bytes=0"
expect_line "carried_bytes=4194304"
[ "$(value_of process.0.build)" = "$(value_of process.1.build)" ] || fail "expected one build"
[ "$(value_of process.0.participant)" != "$(value_of process.1.participant)" ] || fail "expected two participants"

# one of them alone
run_limited "$stasis" inspect "$importer"
expect_status 0
grep -q "^capturable=no: process $importer (share_pair): object .* is not among those named" out || fail "expected the creator to be missed"
expect_line "object.0.holder_pids.0=$importer"

# a process without the interposer, alone and beside them
sleep 60 &
plain=$!
run_limited "$stasis" inspect $plain
expect_status 0
expect_line "process.0.participant=no"
grep -q "^capturable=no: none of the processes runs under" out || fail "expected the reason"
run_limited "$stasis" inspect --json "$creator" $plain "$importer"
expect_status 0
python3 -c '
import json
found = json.load(open("out"))
text = json.dumps(found)
assert "capturable" in text and "\"no\"" in text, text' || fail "expected a JSON object"
kill $plain
wait $plain 2>/dev/null

# processes that cannot be asked
run_limited "$stasis" inspect $plain
expect_status 1
expect_error "$plain"
run_limited "$stasis" inspect "$creator" "$creator"
expect_status 1
expect_error "named twice"
run_limited "$stasis" inspect 0
expect_status 1
expect_error "0"
run_limited "$stasis" inspect "$creator" junk
expect_status 2
expect_error "'junk'"
run_limited "$stasis" inspect 99999999999
expect_status 2
expect_error "out of range"
run_limited "$stasis" inspect --frobnicate "$creator"
expect_status 2
expect_error "unknown option '--frobnicate'"

# a file of that name is an image, or none
mkdir 123
run_limited "$stasis" inspect 123
expect_status 5

# they ran on meanwhile
printf '\n' >&"${pair[1]}"
read -r -t 60 word <&"${pair[0]}"
[ "$word" = verified ] || fail "expected every byte to be right"
input=${pair[1]}
exec {input}>&-
wait "${pair_PID:-}" 2>/dev/null
[ ! -s pair.err ] || fail "expected the programs to end well"
exit 0
