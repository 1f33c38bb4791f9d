# shellcheck shell=bash
# shellcheck shell=bash
# Helpers of the command line's tests. Sourced; the runner gives each test a folder of its own as the
# present one, and a simulated machine. A check that fails says what it ran and what came of it.
set -u

stasis=$STASIS_BUILD_DIR/src/cli/stasis
roundtrip() { run_limited "$stasis" roundtrip --artifact-dir "$@"; }

# Runs with output in the files `out` and `err`, exit status in $status. Nothing here may hang.
run_limited() {
	command_text="$*"
	timeout -k 5 60 "$@" >out 2>err </dev/null
	status=$?
}

fail() {
	printf 'FAILED: %s\n  command: %s\n  exit status: %s\n' "$1" "${command_text:-}" "${status:-}"
	sed 's/^/  out: /' out 2>/dev/null
	sed 's/^/  err: /' err 2>/dev/null
	exit 1
}

expect_status() {
	[ "$status" = "$1" ] || fail "expected exit status $1"
}

# The whole line stands in the output.
expect_line() {
	grep -qxF -- "$1" out || fail "expected the line '$1'"
}

expect_last_line() {
	[ "$(tail -n 1 out)" = "$1" ] || fail "expected the last line '$1'"
}

# For a person: exactly one line, beginning as all of ours do, with this text in it.
expect_error() {
	[ "$(grep -c '^stasis: error: ' err)" = 1 ] || fail "expected one error line"
	grep -qF -- "$1" err || fail "expected an error that says '$1'"
}

expect_no_error() {
	[ ! -s err ] || fail "expected nothing on standard error"
}

expect_missing() {
	if [ -e "$1" ] || [ -L "$1" ]; then
		fail "expected no '$1'"
	fi
}

expect_no_partial() {
	for path in ./*.partial-*; do
		[ ! -e "$path" ] || fail "expected no partial, found '$path'"
	done
}

value_of() {
	sed -n "s/^$1=//p" out | tail -n 1
}

# Waits for a condition, which is polled: for things that happen in another process.
wait_for() {
	for _ in $(seq 600); do
		if "$@"; then
			return 0
		fi
		sleep 0.05
	done
	fail "waited in vain for: $*"
}

process_is_gone() {
	local state
	state=$(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null)
	[ -z "$state" ] || [ "$state" = Z ]
}

sim_state() {
	"$STASIS_BUILD_DIR/sim/sim-state" "$@"
}
