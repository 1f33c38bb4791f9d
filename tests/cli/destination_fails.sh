#!/bin/bash
# Description: a destination that fails while the program is paused costs no byte: it runs on, proven by itself.
. "$(dirname "$0")/lib.sh"

export STASIS_WORKLOAD_REPORT=$PWD/verdict
export STASIS_FAULT_LOG=$PWD/faults

# The point must have been reached, and the program must say that its memory is right.
survived() { # POINT STATUS [ARGUMENT...]
	local point=$1 status=$2
	shift 2
	rm -rf image verdict faults
	STASIS_FAULT=$point roundtrip image --bytes 9M "$@"
	set -- "$point" "$status"
	grep -q "^${1%%[:=]*}" faults 2>/dev/null || fail "expected the fault $1 to be reached"
	expect_status "$2"
	[ "$(cat verdict 2>/dev/null)" = passed ] || fail "expected the workload's own verdict: passed"
	process_is_gone "$(value_of workload_pid)" || fail "expected the workload to have ended"
}

for kind in ENOSPC EIO; do
	for passage in 1 3 5; do
		survived "transfer_write:$passage=$kind" 1
		expect_error "gpu/P0-D0-custom"
		expect_missing image
		expect_no_partial
	done
done
for codec in lz4 zstd; do
	survived "transfer_write:3=ENOSPC" 1 --compress $codec
	expect_error "gpu/P0-D0-custom"
	expect_no_partial
	survived "transfer_packing:1=ENOMEM" 1 --compress $codec
	expect_error "memory to compress"
	expect_no_partial
	survived "transfer_write:*=short" 0 --compress $codec
done
for point in transfer_open image_sums_write image_sync image_manifest_write image_rename; do
	survived "$point=EIO" 1
	expect_missing image
	expect_no_partial
done
for phase in save manifest confirm_checkpointed publish; do
	survived "roundtrip_$phase=EIO" 1
	expect_missing image
	expect_no_partial
done
# What a slow or interrupted system does is no failure.
for kind in short EINTR; do
	survived "transfer_write:2=$kind" 0
	survived "transfer_read:2=$kind" 0
done
# Reading back: before the restore the image can be read again; after it began, it is read once more.
survived "transfer_read:1=EIO" 1
survived "image_read:2=EIO" 5
survived "roundtrip_validate=EIO" 1
[ -d image ] || fail "expected the published image to stay"

# Who accepts the risk is told what it cost, and nothing is left behind.
rm -rf image verdict faults
unset STASIS_WORKLOAD_REPORT
STASIS_FAULT=transfer_write:1=ENOSPC roundtrip image --bytes 9M --no-fallback
expect_status 4
expect_error "no memory was reserved to take the bytes: process $(value_of workload_pid) is lost"
process_is_gone "$(value_of workload_pid)" || fail "expected the lost workload to have ended"
expect_missing image
expect_no_partial
