#!/bin/bash
# The long run: whole fault tables instead of samples, and every switch that breaks a behaviour of the
# simulated driver, each of which must make its conformance test fail. usage: soak.sh BUILD-FOLDER
. "$(dirname "$0")/common.sh"

build=$1
status=0

note "== the whole tests, with whole tables"
STASIS_TEST_WHOLE=1 STASIS_TEST_FRACTION=1 STASIS_TEST_TIMEOUT_SCALE=60 \
	"$ROOT/tests/run" --build-dir "$build" --exclude-suite gpu || status=1

note "== every switch that breaks the simulated driver"
if [ -x "$ROOT/tests/conformance/soak" ]; then
	"$ROOT/tests/conformance/soak" "$build" || status=1
else
	die "tests/conformance/soak is not there: the switches were not tried"
fi
exit $status
