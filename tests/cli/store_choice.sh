#!/bin/bash
# Description: only the default chooses the store; a driver without CustomStorage is never claimed to have it.
. "$(dirname "$0")/lib.sh"

export STASIS_SIM_CUDA=13000
roundtrip image --bytes 2M
expect_status 0
expect_line "store=native"
grep -q '^store_why=' out || fail "expected the reason for the native store"
expect_last_line "roundtrip=passed"

roundtrip image2 --bytes 2M --store custom
expect_status 1
expect_error "CustomStorage"
expect_missing image2
expect_no_partial

for damage in --corrupt-before-restore --truncate-before-restore; do
	roundtrip image2 --bytes 2M $damage
	expect_status 1
	expect_error "native store"
	expect_missing image2
	expect_no_partial
done

# Without a driver of its own the machine gets the simulated one, and is told so; the others get none.
unset STASIS_SIM_CUDA STASIS_LIBCUDA
if [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]; then
	exit 0
fi
roundtrip image3 --bytes 2M
expect_status 0
expect_line "driver=simulated"
grep -q '^driver_why=.*using the simulated driver' out || fail "expected the reason"

export STASIS_LIBCUDA=$PWD/none.so
roundtrip image4 --bytes 2M
expect_status 1
expect_error "none.so"
expect_missing image4
