#!/bin/bash
# Description: stasis reserve makes room that the next capture takes over; a full disk, a kill and an end that
# is asked for leave nothing that gc does not remove.
. "$(dirname "$0")/lib.sh"

mkdir room
reserve() { run_limited "$stasis" reserve "$@"; }

# taken over by the capture beside it; what it did not need is there again
reserve room --bytes 300M
expect_status 0
expect_line reserve=made
expect_line files=16
run_limited "$stasis" gc room
expect_line reserve=ready
expect_line partials=0
roundtrip room/image --bytes 16M
expect_status 0
expect_line "reserved_bytes=335544320"
expect_last_line roundtrip=passed
run_limited "$stasis" verify room/image
expect_last_line verify=passed
run_limited "$stasis" gc room
expect_line reserve=ready
[ "$(value_of reserve_bytes)" -lt 335544320 ] || fail "expected the reserve to have become smaller"

# for several GPUs: as many files for each as serve its part
reserve room --remove
reserve room --bytes 300M --gpus 3
expect_status 0
expect_line files=18
reserve room --remove
reserve room --bytes 1M --gpus 65
expect_status 2
expect_error "at most 64 GPUs"
reserve room --bytes 300M

# a second one is refused, and it can be given back
reserve room --bytes 1M
expect_status 1
expect_error already
reserve room --remove
expect_status 0
expect_line reserve=removed
reserve room --remove
expect_status 0
expect_line reserve=none

# a capture that fails gives its stripes back
reserve room --bytes 128M
reserved=$(value_of bytes)
STASIS_FAULT='transfer_write:1=ENOSPC' roundtrip room/failed --bytes 1M
expect_status 1
run_limited "$stasis" gc room
expect_line "reserve_bytes=$reserved"
reserve room --remove

# one that cannot be used is named, and the capture does without it
reserve room --bytes 1M --json
expect_status 0
chmod 755 room/.stasis-reserve
roundtrip room/second --bytes 1M
expect_status 0
grep -q "^warning=the reserve beside 'room/second' is not used: it is open to other users" out ||
	fail "expected a warning"
chmod 700 room/.stasis-reserve
reserve room --remove
expect_status 0

# a full disk leaves nothing
STASIS_FAULT='image_reserve_allocate:3=ENOSPC' reserve room --bytes 80M
expect_status 1
expect_error "No space left on device"
[ -z "$(find room -name '.stasis*')" ] || fail "expected nothing left of the reserve"
reserve room --bytes 1000000G
expect_status 1
expect_error "nothing was made"

# neither does any other failure
for point in image_mkdir image_owner_write image_open image_reserve_sync file_write file_rename dir_rename; do
	STASIS_FAULT="$point=EIO" reserve room --bytes 20M
	expect_status 1
	[ -z "$(find room -name '.stasis*')" ] || fail "expected nothing left of the reserve after '$point'"
done

# one that was killed in the middle goes with gc
STASIS_FAULT='image_reserve_allocate:2=kill' reserve room --bytes 80M
expect_status 137
[ -n "$(find room -name '.stasis-reserve.partial-*')" ] || fail "expected an unfinished reserve"
run_limited "$stasis" gc room
expect_status 0
expect_line removed=1
[ -z "$(find room -name '.stasis*')" ] || fail "expected nothing left after gc"

# a capture that is killed with the reserve in its hands: gc removes both
reserve room --bytes 20M
STASIS_FAULT='image_reserve_use=kill' roundtrip room/killed --bytes 1M
run_limited "$stasis" gc room
expect_status 0
[ -z "$(find room -name '*partial*' -o -name '.*reserve*')" ] || fail "expected nothing left after gc"

# a reserve that cannot be taken over does not stop a capture
reserve room --bytes 20M
STASIS_FAULT='image_reserve_take=EIO' roundtrip room/third --bytes 1M
expect_status 0
expect_last_line roundtrip=passed
reserve room --remove

# an end is given, and leaves nothing
STASIS_FAULT='image_reserve_allocate:2=stop' "$stasis" reserve room --bytes 80M >out 2>err </dev/null &
pid=$!
is_stopped() { grep -q '^State:.T' "/proc/$pid/status"; }
wait_for is_stopped
kill -INT $pid
kill -CONT $pid
wait $pid
status=$?
expect_status 1
expect_error "given up"
[ -z "$(find room -name '.stasis*')" ] || fail "expected nothing left of the reserve"

# in memory the files are mapped ahead and copied into; those too small for it are written to
if [ "$(stat -f -c %T /dev/shm)" = tmpfs ]; then
	memory=$(mktemp -d -p /dev/shm) || fail "expected room in /dev/shm"
	trap 'rm -rf "$memory"' EXIT
	reserve "$memory" --bytes 128M
	expect_status 0
	roundtrip "$memory/image" --bytes 64M --verbose
	expect_status 0
	expect_line file_store=mapping
	expect_last_line roundtrip=passed
	grep -q "store 'mapping', since its files were mapped ahead" err || fail "expected the store's reason"
	run_limited "$stasis" verify "$memory/image"
	expect_last_line verify=passed
	rm -rf "$memory/image"
	reserve "$memory" --remove
	reserve "$memory" --bytes 4M
	roundtrip "$memory/image" --bytes 64M
	expect_status 0
	expect_line file_store=stripes
	expect_last_line roundtrip=passed
	rm -rf "$memory/image"
	reserve "$memory" --bytes 128M
	roundtrip "$memory/image" --bytes 64M --file-store stripes
	expect_line file_store=stripes
	expect_last_line roundtrip=passed
fi

# usage
reserve room
expect_status 2
expect_error "--bytes N is missing"
reserve room --bytes 1M --remove
expect_status 2
expect_error "exclude each other"
reserve ./missing --bytes 1M
expect_status 1
expect_error "./missing"
