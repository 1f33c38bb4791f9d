#!/bin/bash
# Description: an artifact directory that cannot be made is refused by name before any process is started.
. "$(dirname "$0")/lib.sh"

refused() { # DIR TEXT
	roundtrip "$1" --bytes 2M
	expect_status 1
	expect_error "$2"
	[ -z "$(value_of workload_pid)" ] || fail "expected no workload"
	expect_no_partial
}

mkdir there
refused there "there"
[ -d there ] || fail "expected the folder to be left alone"
[ -z "$(ls -A there)" ] || fail "expected the folder to be left empty"
refused ./there/ "there"
ln -s nowhere link
refused link "link"
[ -L link ] || fail "expected the link to be left alone"
ln -s there folder-link
refused folder-link "folder-link"
echo text >file
refused file "file"
mkfifo fifo
refused fifo "fifo"
refused missing/x "missing"
expect_missing missing
refused file/x "file"
refused /proc "proc"
refused / "/"
refused . "."
refused .. ".."
refused "$(printf 'n%.0s' $(seq 300))" "long"
deep=$PWD
while [ ${#deep} -lt 5000 ]; do deep=$deep/abcdefghijklmnopqrstuvwxyz; done
refused "$deep" "long"

if [ "$(id -u)" = 0 ]; then
	# Not even root makes a folder there.
	refused /sys/stasis-test "/sys"
else
	mkdir -m 500 closed
	refused closed/x "closed"
fi

# A name that only just fits, and one with odd characters.
roundtrip "odd name %s \$HOME" --bytes 2M
expect_status 0
run_limited "$stasis" verify "odd name %s \$HOME"
expect_status 0
