#!/bin/bash
# Description: inspect tells every note, every object and every holder, however many there are and also where nothing
# of it can be captured.
. "$(dirname "$0")/lib.sh"

runtime=$(mktemp -d /tmp/stasis-t-XXXXXX)
trap 'rm -rf "$runtime"' EXIT
begin() { # COUNT
	mkfifo input
	"$STASIS_BUILD_DIR/tests/cli/told_group" "$1" <input >told.pids 2>&1 &
	told=$!
	exec {told_input}>input
	rm input
	wait_for grep -qE '^[0-9 ]+$' told.pids
	read -r -a pids <told.pids
}
end() {
	exec {told_input}>&-
	wait "$told" || fail "expected the told group to end well"
}

begin 2
run_limited "$stasis" inspect "${pids[@]}"
expect_status 0
expect_no_error
for line in \
	"process.0.name=told_group" \
	process.0.created=4 process.0.created_bytes=20971520 \
	process.0.shared=2 process.0.shared_bytes=10485760 \
	process.0.private=2 process.0.private_bytes=10485760 \
	process.0.reattached=1 process.0.reattached_bytes=8388608 \
	process.0.ungated.0=cuOne process.0.ungated.1=cuTwo \
	"process.0.unsupported.0=one thing" "process.0.unsupported.1=other things (7)" \
	"process.0.remarks.0=the first remark" "process.0.remarks.1=the second remark" \
	process.0.foreign_imports=5 \
	process.1.imported=1 process.1.private=0 process.1.reattached=0 process.1.foreign_imports=0; do
	expect_line "$line"
done
grep -q "^capturable=no: process ${pids[0]} (told_group): " out || fail "expected the reason"
for line in \
	object.0.bytes=2097152 object.0.carried_by=stasis "object.0.creator_pid=${pids[0]}" \
	"object.0.owner_pid=${pids[0]}" "object.0.holder_pids.0=${pids[0]}" "object.0.holder_pids.1=${pids[1]}" \
	object.1.bytes=4194304 object.1.carried_by=driver "object.1.holder_pids.0=${pids[0]}" \
	object.2.bytes=6291456 object.2.carried_by=driver \
	object.3.bytes=8388608 object.3.carried_by=stasis; do
	expect_line "$line"
done
! grep -q '^object.4' out || fail "expected four objects"
run_limited "$stasis" inspect --json "${pids[@]}"
expect_status 0
python3 - "${pids[@]}" <<'END' || fail "expected lists"
import json, sys
pids = [int(pid) for pid in sys.argv[1:]]
found = json.load(open("out"))
first, second = found["process"]
assert first["ungated"] == ["cuOne", "cuTwo"], first
assert first["unsupported"] == ["one thing", "other things (7)"], first
assert first["remarks"] == ["the first remark", "the second remark"], first
assert "remarks" not in second, second
assert [each["holder_pids"] for each in found["object"]] == [pids, pids[:1], pids[:1], pids[:1]], found
END

# its importer alone: the object is told of, and nobody there has made it
run_limited "$stasis" inspect "${pids[1]}"
expect_status 0
expect_line "object.0.holder_pids.0=${pids[1]}"
! grep -q '^object.0.creator_pid' out || fail "expected no creator"
grep -q '^capturable=no: .* is not among those named' out || fail "expected the creator to be missed"
end

# more holders than a line holds
begin 150
run_limited "$stasis" inspect "${pids[@]}"
expect_status 0
[ "$(grep -c '^object.0.holder_pids' out)" = 150 ] || fail "expected every holder"
for at in 0 127 128 149; do
	expect_line "object.0.holder_pids.$at=${pids[at]}"
done
end
exit 0
