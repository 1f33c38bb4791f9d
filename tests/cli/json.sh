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
