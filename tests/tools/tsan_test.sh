#!/bin/bash
# Description: what tests/tsan.supp leaves out is no race and is reported without it, as long as it must be
# there; races of a program are reported in spite of it.
set -u
sources=$STASIS_SOURCE_DIR/tests/tools
supp=$STASIS_SOURCE_DIR/tests/tsan.supp

fail() { # TEXT
	echo "FAILED: $1"
	cat out
	exit 1
}

compile() { # ARGUMENT...
	gcc -std=gnu17 -D_GNU_SOURCE -O1 -g -fsanitize=thread "$@" >out 2>&1
}

# races CASE [TSAN-OPTION]: the output in `out`, the exit status in $status
races() {
	TSAN_OPTIONS="halt_on_error=1:exitcode=66:${2:-}" timeout -k 5 60 \
		setarch "$(uname -m)" -R ./races "$1" ./races_library.so >out 2>&1
	status=$?
}

expect_clean() {
	races "$@"
	[ $status = 0 ] && [ "$(cat out)" = finished ] || fail "$1: expected no report, exit status $status"
}

expect_race() { # TEXT OF THE REPORT, then as races
	local text=$1
	shift
	races "$@"
	[ $status = 66 ] && grep -q 'WARNING: ThreadSanitizer: data race' out || fail "$1: expected a race, exit status $status"
	grep -q "$text" out || fail "$1: expected '$text' in the report"
}

command -v gcc >/dev/null || { echo "needs gcc"; exit 77; }
echo 'int main(void) { return 0; }' >empty.c
compile empty.c -o empty || { echo "needs gcc's ThreadSanitizer"; exit 77; }
setarch "$(uname -m)" -R ./empty || { echo "needs fixed addresses: setarch -R was refused"; exit 77; }
compile -shared -fPIC "$sources/races_library.c" -o races_library.so || fail "the library does not compile"
compile "$sources/races.c" -o races || fail "the program does not compile"

expect_race _dl_deallocate_tls stack-cache
expect_clean stack-cache "suppressions='$supp'"
expect_race block_write heap "suppressions='$supp'"
expect_race 'in word$' word "suppressions='$supp'"
