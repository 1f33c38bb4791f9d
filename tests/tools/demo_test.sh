#!/bin/bash
# Description: the demo tells all three acts, each line with where it happened, cleans up after itself, and
# fails, keeping its log, where stasis does not say what the demo is about to claim.
set -u
demo=$STASIS_SOURCE_DIR/tools/demo.sh

fail() {
	echo "FAILED: $1"
	cat out
	exit 1
}

BYTES=4M "$demo" "$STASIS_BUILD_DIR" >out 2>&1 || fail "the demo failed"
[ "$(grep -cE '^[1-3]  ' out)" = 3 ] || fail "expected three acts"
grep -q 'All three held' out || fail "expected the closing words"
grep -qE '(ok|✓) simulated +found by digests.*chunk [0-9]+ and offset' out || fail "expected file, chunk and offset"
grep -qE '(ok|✓) +(a|its) ' out && fail "a line does not say where it happened"
[ -z "$(find "$TMPDIR" -maxdepth 1 -name 'stasis-demo.*')" ] || fail "the images were left behind"

mkdir -p build/src/cli build/sim
cat >build/src/cli/stasis <<'FAKE'
#!/bin/sh
echo driver=simulated
echo store=custom
echo application_bytes=4096
echo application_bytes_verified=4095
echo post_restore_operation=passed
echo roundtrip=passed
FAKE
chmod +x build/src/cli/stasis
if BYTES=4M "$demo" build >out 2>&1; then
	fail "the demo believed a program that verified too few bytes"
fi
grep -q 'application_bytes_verified' out || fail "expected what was missing"
