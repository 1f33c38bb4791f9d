#!/bin/bash
# Description: an image that is damaged is refused, and the programs sleep on, intact; repaired, it brings them back. Those
# whose companion has ended can go on without it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ring.sh"

ring_start 2
expect_ring_goes_on
run_limited "$stasis" suspend --to image "${pids[@]}"
expect_status 0

expect_refused() {
	expect_status "$1"
	expect_error "$2"
	expect_ring_stands
}

# missing, cut, changed: before anything is touched
mv image/shared.json kept
run_limited "$stasis" resume image
expect_refused 5 "shared.json"
head -c 100 kept >image/shared.json
chmod 600 image/shared.json
run_limited "$stasis" resume "${pids[@]}"
expect_refused 5 "shared.json"
sed 's/"version": 1/"version": 2/' kept >image/shared.json
run_limited "$stasis" resume image
expect_refused 5 "shared.json"
mv kept image/shared.json

# a byte of the contents: found while loading, and the programs are put to sleep again
stripe=$(find image/gpu -name '*-shared.0' | head -n 1)
cp "$stripe" kept
printf 'damage' | dd of="$stripe" bs=1 seek=8192 conv=notrunc status=none
for when in before loading; do
	run_limited "$stasis" resume --verify $when image
	expect_refused 5 "${stripe#image/}"
done
cp kept "$stripe"

run_limited "$stasis" resume "${pids[0]}" $$
expect_refused 3 "$$"
run_limited "$stasis" resume nowhere
expect_refused 5 "nowhere"
run_limited "$stasis" resume --json image
expect_status 0
expect_ring_goes_on
ring_end

# not suspended
ring_start 1
run_limited "$stasis" resume "${pids[0]}"
expect_status 1
expect_error "${pids[0]}"
expect_ring_goes_on
ring_end
