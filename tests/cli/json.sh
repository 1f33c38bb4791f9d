#!/bin/bash
# Description: --json gives one valid object whatever happens, and errors stand in it too.
. "$(dirname "$0")/lib.sh"
python=$(command -v python3) || {
	echo "needs python3 to read JSON"
	exit 77
}

holds() { # EXPRESSION on the object `o`
	"$python" -c "
import json, sys
o = json.load(open('out'))
assert isinstance(o, dict)
assert $1, o
" || fail "expected: $1"
}

roundtrip image --bytes 5M --json
expect_status 0
expect_no_error
holds "o['roundtrip'] == 'passed' and o['status'] == 'ok' and o['exit_status'] == 0"
holds "o['state'] == ['RUNNING', 'LOCKED', 'CHECKPOINTED', 'LOCKED', 'RUNNING']"
holds "o['extent'][0]['device'] == 0 and o['extent'][0]['bytes'] == o['extent_bytes']"
holds "o['phase'][0] == 'prepare' and o['phase'][-1] == 'finish'"
holds "0 < o['checkpoint_seconds'] < 60 and o['application_bytes'] == 5 << 20"

roundtrip image --bytes 5M --json
expect_status 1
holds "o['status'] == 'refused' and o['exit_status'] == 1 and 'image' in o['error']"

run_limited "$stasis" inspect --json image
expect_status 0
holds "o['gpu'][0]['uuid'].startswith('GPU-') and o['process'][0]['pid'] > 0"
run_limited "$stasis" verify --json image
expect_status 0
holds "o['verify'] == 'passed' and o['extents'] == 1"
run_limited "$stasis" verify --json nowhere
expect_status 5
holds "o['status'] == 'bad_image' and 'nowhere' in o['error']"
run_limited "$stasis" gc --json .
expect_status 0
holds "o['partials'] == 0 and o['removed'] == 0"
run_limited "$stasis" doctor --json
expect_status 0
holds "o['store_native'] == 'yes' and o['gpu'][0]['bytes'] > 0"
run_limited "$stasis" status --json $$
expect_status 1
holds "o['status'] == 'refused' and 'no CUDA state' in o['error']"

# Names that are no UTF-8, or would break a line, stay out of nobody's object and cost no exit status.
odd=$'odd\xff\n"\\name'
for command in inspect verify gc reserve; do
	arguments=()
	[ $command != reserve ] || arguments=(--bytes 1M)
	run_limited "$stasis" $command --json "${arguments[@]}" "./missing-$odd"
	holds "o['error'].count('missing-odd?') == 1 and o['exit_status'] == $status"
	[ "$(wc -l <err)" = 1 ] || fail "expected one line on standard error"
done
roundtrip "$odd" --bytes 1M --json
expect_status 0
expect_no_error
holds "o['roundtrip'] == 'passed'"
for command in inspect verify doctor; do
	arguments=("$odd")
	[ $command != doctor ] || arguments=(--dir "$odd")
	run_limited "$stasis" $command --json "${arguments[@]}"
	expect_status 0
	expect_no_error
	run_limited "$stasis" $command "${arguments[@]}"
	expect_status 0
	! grep -qvE '^[a-z0-9_.]+=' out || fail "expected nothing but key=value lines"
done

# Wrong usage is an answer like any other; what stands behind "--" asks for nothing.
usage() { # ARGUMENT...
	run_limited "$stasis" "$@"
	expect_status 2
	holds "o['status'] == 'usage' and o['exit_status'] == 2 and o['error']"
	[ "$(cat err)" = "stasis: error: $(python3 -c 'import json, sys; print(json.load(sys.stdin)["error"])' <out)" ] ||
		fail "expected the same text on standard error"
}
for command in roundtrip inspect verify gc reserve status bench; do
	usage $command --json
	usage $command --json --frobnicate
	usage $command --frobnicate --json
done
usage doctor x --json
usage status --json junk
usage reserve --json --bytes 1M --remove x
usage frobnicate --json
usage roundtrip --bytes --json
for arguments in "frobnicate" "status junk" "status -- --json"; do
	# shellcheck disable=SC2086
	run_limited "$stasis" $arguments
	expect_status 2
	[ ! -s out ] || fail "expected nothing on standard output"
done
