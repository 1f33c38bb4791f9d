#!/bin/bash
# The long run: whole fault tables and cycles instead of samples, the cycles of groups under sanitizers, too, and every
# switch that breaks a behaviour of the simulated driver, each of which must make its conformance test fail.
# usage: soak.sh BUILD-FOLDER
. "$(dirname "$0")/common.sh"

build=$1
status=0

note "== the whole tests, with whole tables"
STASIS_TEST_WHOLE=1 STASIS_TEST_FRACTION=1 STASIS_TEST_TIMEOUT_SCALE=60 \
	"$ROOT/tests/run" --build-dir "$build" --exclude-suite gpu || status=1

# sanitized SANITIZERS FOLDER TESTS [COMMAND...]: in a build of its own, started by the command
sanitized() {
	local sanitizers=$1 folder=$2 tests=$3
	shift 3
	note "== groups under $sanitizers"
	CC=gcc "$ROOT/tools/build.sh" --quiet "$ROOT/$folder" -Db_sanitize="$sanitizers" || return 1
	STASIS_TEST_WHOLE=1 STASIS_TEST_TIMEOUT_SCALE=120 STASIS_TEST_SANITIZER=${sanitizers%%,*} \
		ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1 \
		UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
		TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:atexit_sleep_ms=20 \
		"$@" "$ROOT/tests/run" --build-dir "$ROOT/$folder" --test "$tests"
}

sanitized address,undefined build-asan 'group/cycles_*' || status=1

note "== every switch that breaks the simulated driver"
if [ -x "$ROOT/tests/conformance/soak" ]; then
	"$ROOT/tests/conformance/soak" "$build" || status=1
else
	die "tests/conformance/soak is not there: the switches were not tried"
fi
exit $status
