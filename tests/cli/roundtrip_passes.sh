#!/bin/bash
# Description: round trips pass with both stores, odd sizes and other devices, and say what they did.
. "$(dirname "$0")/lib.sh"

passed() { # ARGUMENT...
	rm -rf image
	roundtrip image "$@"
	expect_status 0
	expect_no_error
	expect_last_line "roundtrip=passed"
	expect_line "post_restore_operation=passed"
	[ "$(sed -n 's/^state=//p' out | tr '\n' ' ')" = "RUNNING LOCKED CHECKPOINTED LOCKED RUNNING " ] ||
		fail "expected the five states"
	[ -n "$(value_of checkpoint_seconds)" ] || fail "expected checkpoint_seconds"
	[ -n "$(value_of restore_seconds)" ] || fail "expected restore_seconds"
	[ "$(value_of application_bytes)" = "$(value_of application_bytes_verified)" ] ||
		fail "expected every byte to be verified"
	[ "$(stat -c %a image)" = 700 ] || fail "expected the image to be private"
	expect_no_partial
	process_is_gone "$(value_of workload_pid)" || fail "expected the workload to have ended"
	run_limited "$stasis" verify image
	expect_status 0
	expect_last_line "verify=passed"
}

passed
custom_bytes=$(value_of bytes)
expect_line "extents=1"
[ "$custom_bytes" -gt 67108864 ] || fail "expected an extent larger than the program's memory"

passed --store native
expect_line "extents=0"

for bytes in 1 7 4095 4097 1048577 12345677; do
	passed --bytes "$bytes"
done
passed --bytes 3M --store native
passed --bytes 5M --verify loading
passed --bytes 5M --verify off
passed --bytes 5M --no-fallback
for store in auto stripes mapping direct plain; do
	passed --bytes 5M --file-store $store --chunk-bytes 256K --workers 3
done
roundtrip image0 --bytes 1M --file-store mapping --verbose
expect_line "file_store=mapping"
grep -q "store 'mapping', as was asked for" err || fail "expected the store's reason"
rm -rf image0
for codec in none lz4 zstd; do
	passed --bytes 5M --compress $codec --verify loading
	roundtrip image0 --bytes 100 --compress $codec --chunk-bytes 64K
	expect_status 0
	run_limited "$stasis" verify image0
	expect_status 0
	run_limited "$stasis" inspect image0
	expect_status 0
	if [ $codec != none ]; then
		expect_line "option.0.name=compress"
		expect_line "option.0.value=$codec"
	fi
	stored=$(value_of extent.0.stored_bytes)
	[ $codec = none ] && plain_bytes=$stored
	rm -rf image0
done
[ "$stored" -lt "$plain_bytes" ] || fail "expected less than $plain_bytes bytes, counted $stored"
roundtrip image0 --bytes 1M --compress gzip
expect_status 2
roundtrip image0 --bytes 1M --compress lz4 --chunk-bytes 32M
expect_status 2
expect_error "at most 16M"
roundtrip image0 --bytes 1M --compress lz4 --store native
expect_status 2
expect_error "no files to compress"
roundtrip image0 --bytes 1M --chunk-bytes 5000
expect_status 2
expect_error "chunks must be between"
roundtrip image0 --bytes 1M --workers 17
expect_status 2
expect_error "at most 16 workers"
umask 000
passed --bytes 5M
umask 077
export STASIS_SIM_DEVICES=3 STASIS_SIM_DIR=$PWD/three
mkdir -m 700 three
passed --bytes 5M --device 2
roundtrip image2 --bytes 5M --device 2
expect_status 0
expect_line "store=custom"
expect_line "extent_count=1"
expect_line "extent.0.device=2"
grep -qE '^extent\.0\.uuid=GPU-[0-9a-f-]{36}$' out || fail "expected the UUID"
grep -qE '^extent\.0\.pointer=0x[0-9a-f]+$' out || fail "expected the pointer"
grep -qE '^extent\.0\.stream=0x[0-9a-f]+$' out || fail "expected the stream"

roundtrip image3 --bytes 5M --device 3
expect_status 1
expect_error "device 3"
expect_missing image3
expect_no_partial
