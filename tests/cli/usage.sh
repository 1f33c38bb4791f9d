#!/bin/bash
# Description: wrong usage is refused by name with exit status 2, and nothing is made.
. "$(dirname "$0")/lib.sh"

refused() { # TEXT ARGUMENT...
	local text=$1
	shift
	run_limited "$stasis" "$@"
	expect_status 2
	[ ! -s out ] || fail "expected nothing on standard output"
	expect_error "$text"
	expect_missing x
	expect_no_partial
}

run_limited "$stasis"
expect_status 2
grep -q '^usage: ' err || fail "expected the usage"

refused "unknown command 'frobnicate'" frobnicate
refused "unknown command '--frobnicate'" --frobnicate

refused "--artifact-dir DIR is missing" roundtrip
refused "unknown option '--frobnicate'" roundtrip --artifact-dir x --frobnicate
refused "unknown option '--byte'" roundtrip --artifact-dir x --byte 5
refused "unknown option '-x'" roundtrip --artifact-dir x -x
refused "unexpected argument 'y'" roundtrip --artifact-dir x y
refused "unexpected argument '--json'" roundtrip --artifact-dir x -- --json
refused "--artifact-dir: the value DIR is missing" roundtrip --artifact-dir
refused "--artifact-dir: the value is empty" roundtrip --artifact-dir=
refused "--bytes: the value N is missing" roundtrip --artifact-dir x --bytes
refused "--bytes: the value N is missing" roundtrip --artifact-dir x --bytes --verbose
for value in 0 0M -1 +1 junk 12x 1.5M 1KK "" " 1" "1 " 0x10 18446744073709551616 99999999999999999G; do
	refused "--bytes" roundtrip --artifact-dir x "--bytes=$value"
	grep -qF -- "'$value'" err || fail "expected the bad value '$value' to be named"
done
for value in 0 0s -1s junk 5h "" 18446744073709551615m; do
	refused "--timeout" roundtrip --artifact-dir x "--timeout=$value"
done
for value in -1 junk "" 2147483648 99999999999999999999; do
	refused "--device" roundtrip --artifact-dir x "--device=$value"
done
refused "--store: 'owned' is none of custom|native" roundtrip --artifact-dir x --store owned
refused "--verify: 'later' is none of before|loading|off" roundtrip --artifact-dir x --verify later
refused "--json takes no value" roundtrip --artifact-dir x --json=yes
refused "exclude each other" roundtrip --artifact-dir x --truncate-before-restore --corrupt-before-restore
refused "native store has no files" roundtrip --artifact-dir x --store native --corrupt-before-restore
refused "native store has no files" roundtrip --artifact-dir x --store native --truncate-before-restore
refused "corruption needs at least" roundtrip --artifact-dir x --bytes 31 --corrupt-before-restore
# A bad option after good ones changes none of them: nothing ran.
refused "--bytes" roundtrip --artifact-dir x --store native --bytes 0

for command in inspect verify gc status; do
	refused "is missing" "$command"
	refused "one too many" "$command" a b
	refused "unknown option" "$command" --frobnicate 1
	refused "is empty" "$command" ""
done
for value in junk -5 1x 2147483648 99999999999999999999; do
	refused "PID" status -- "$value"
done
refused "unexpected argument" doctor x
refused "--dir: the value DIR is missing" doctor --dir

for command in roundtrip inspect verify gc status doctor; do
	run_limited "$stasis" "$command" --help
	expect_status 0
	grep -q "^usage: stasis $command" out || fail "expected the usage of $command"
	expect_no_error
done
for command in roundtrip reserve bench; do
	run_limited "$stasis" "$command" --help
	grep -q -- '^  --bytes N .*with K, M, G, T\b' out || fail "expected every unit that --bytes takes"
done
refused "--bytes" reserve --bytes 1P x
run_limited "$stasis" reserve --bytes 1T --remove x
expect_error "exclude each other"
run_limited "$stasis" --help
expect_status 0
run_limited "$stasis" --version
expect_status 0
grep -qE '^stasis [0-9]+\.[0-9]+\.[0-9]+$' out || fail "expected the version"
