#!/bin/bash
# Description: stasis bench transfer measures what it is asked for, leaves no file, and ends when told to.
. "$(dirname "$0")/lib.sh"

if [ "$(stat -f -c %T /dev/shm)" != tmpfs ]; then
	echo "/dev/shm is no tmpfs"
	exit 77
fi
mkdir disk
files=$(mktemp -d -p /dev/shm) || fail "expected room in /dev/shm"
trap 'rm -rf "$files"' EXIT
bench() { run_limited "$stasis" bench transfer --tmpfs "$files" "$@"; }

# the defaults, one line a row, with a limit beside each
bench --bytes 24M --disk disk --quick --runs 1
expect_status 0
expect_no_error
expect_last_line bench=done
for row in save/tmpfs load/tmpfs save/tmpfs/zeros=100 load/tmpfs/zeros=100 save/memory load/memory save/disk load/disk; do
	[ "$(grep -c "^$row " out)" = 1 ] || fail "expected one row '$row'"
done
[ "$(grep -c '^[a-z]*/' out)" = 8 ] || fail "expected eight rows"
[ -z "$(ls -A "$files")$(ls -A disk)" ] || fail "expected no file left"

# the same as one object, with only the rows that were named
bench --bytes 1M --rows 'load/tmpfs,save/*/chunk=1M' --runs 3 --json
expect_status 0
python3 - <<'END' || fail "expected three rows with rates and ratios"
import json
report = json.load(open("out"))
rows = {row["name"]: row for row in report["row"]}
assert sorted(rows) == ["load/tmpfs", "save/memory/chunk=1M", "save/tmpfs/chunk=1M"], rows.keys()
for row in rows.values():
    assert row["runs"] == 3 and len(row["samples"].split()) == 3, row
    assert row["bytes"] == 1 << 20 and row["gbps"] > 0 and row["limit_gbps"] > 0, row
    # all three are rounded to thousandths, which is much of a slow row
    slack = 0.0006 * (1 + row["ratio"] + row["limit_gbps"])
    assert abs(row["ratio"] * row["limit_gbps"] - row["gbps"]) < slack, row
assert report["link_save_gbps"] > 0 and report["exit_status"] == 0
END

python3 "$STASIS_SOURCE_DIR/bench/plot" out rows.svg || fail "expected a drawing"
python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("rows.svg")' || fail "expected the drawing to be XML"

# odd sizes, forced stores, and less than a chunk
bench --bytes 1001 --rows 'load/*' --runs 1
expect_status 0

# what cannot be done is refused
bench --rows nothing/like/that
expect_status 2
expect_error "no row matches"
bench --bytes 1M --runs 101
expect_status 2
expect_error "between 1 and 100"
run_limited "$stasis" bench speed
expect_status 2
expect_error "'speed' is not known"
run_limited "$stasis" bench transfer --tmpfs ./missing --bytes 1M
expect_status 1
expect_error "'./missing': No such file"
run_limited "$stasis" bench transfer --tmpfs /proc --bytes 1M
expect_status 1
expect_error "'/proc' is not on a tmpfs"
bench --bytes 1M --device 7
expect_status 1
expect_error "device 7 is not there"


# an end is given at once, and leaves nothing
"$stasis" bench transfer --tmpfs "$files" --bytes 256M --runs 100 >out 2>err </dev/null &
pid=$!
# a whole row of so many runs can take a loaded machine longer than anybody waits
wait_for grep -q '^link_load_gbps=' out
kill -TERM $pid
wait $pid
status=$?
expect_status 1
expect_error cancelled
[ -z "$(ls -A "$files")" ] || fail "expected no file left"
