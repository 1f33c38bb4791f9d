#!/bin/bash
# Description: moving 100 GiB of (simulated, sparse) device memory takes no more memory than moving 1 GiB does.
. "$(dirname "$0")/lib.sh"

if [ "${STASIS_TEST_WHOLE:-0}" != 1 ]; then
	echo "moves 100 GiB; part of the long run"
	exit 77
fi
export STASIS_SIM_MEMORY=200G
files=$(mktemp -d -p /dev/shm) || fail "expected room in /dev/shm"
trap 'rm -rf "$files"' EXIT

# prints the most memory that the program has had, in KiB
peak_of() {
	python3 - "$@" <<'END'
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=open("out", "w"), stderr=open("err", "w"), timeout=3000)
if done.returncode != 0:
    sys.exit(done.returncode)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
END
}

for bytes in 1G 100G; do
	command_text="bench transfer of $bytes"
	peak=$(peak_of "$stasis" bench transfer --tmpfs "$files" --bytes $bytes --runs 1 --rows '*/tmpfs/zeros=100')
	status=$?
	expect_status 0
	[ "$(grep -c '/tmpfs/zeros=100' out)" = 2 ] || fail "expected two rows"
	echo "$bytes: $peak KiB"
	if [ $bytes = 1G ]; then
		small=$peak
	fi
done
# what a plan needs beside the ring is its chunk table: 25,600 chunks of some tens of bytes
[ $((peak - small)) -lt 16384 ] || fail "expected less than 16 MiB more for 100 GiB than for 1 GiB"
[ -z "$(ls -A "$files")" ] || fail "expected no file left"
