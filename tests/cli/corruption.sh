#!/bin/bash
# Description: a truncated or corrupted image is found where the verification asked for looks, and named.
. "$(dirname "$0")/lib.sh"

found() { # ARGUMENT...
	rm -rf image
	roundtrip image --bytes 9M "$@"
	expect_status 0
	expect_no_error
	expect_last_line "corruption_check=passed"
	expect_line "post_restore_operation=passed"
	expect_no_partial
	process_is_gone "$(value_of workload_pid)" || fail "expected the workload to have ended"
}

restore_count() {
	grep -c 'cuCheckpointProcessRestore' sim.log
}

# The refusal comes before the driver's restore: one call in all, and it comes after the refusal.
refused_first() {
	grep -q '^refused=' out || fail "expected a refusal"
	[ "$(sed -n 's/^phase=\([a-z_]*\).*/\1/p' out | grep -nE '^(expect_refusal|restore)$' |
		cut -d: -f2 | tr '\n' ' ')" = "expect_refusal restore " ] ||
		fail "expected the refusal before the restore"
	[ "$(restore_count)" = 1 ] || fail "expected one restore, counted $(restore_count)"
}

export STASIS_SIM_LOG=$PWD/sim.log
for verify in before loading off; do
	: >sim.log
	found --truncate-before-restore --verify $verify
	refused_first
	expect_line "damage=truncated"
	expect_line "damage_found_by=validation of sizes, before the restore"
	[ "$(value_of damage_offset)" = $(($(value_of damage_file_bytes) - 1)) ] ||
		fail "expected the last byte to be missing"
	file=image/$(value_of damage_file)
	[ "$(stat -c %s "$file")" = "$(value_of damage_file_bytes)" ] || fail "expected it repaired"
	run_limited "$stasis" verify image
	expect_status 0
done

: >sim.log
found --corrupt-before-restore
refused_first
expect_line "damage_found_by=digests, before the restore"
[ "$(value_of found_file)" = "$(value_of damage_file)" ] || fail "expected the file to be named"
[ "$(value_of found_chunk)" = "$(value_of damage_chunk)" ] || fail "expected the chunk to be named"
grep -q "^refused=.*$(value_of damage_file).*chunk $(value_of damage_chunk) at offset" out ||
	fail "expected file, chunk and offset in the refusal"

found --corrupt-before-restore --verify loading
expect_line "damage_found_by=digests, while loading"
[ "$(value_of found_chunk)" = "$(value_of damage_chunk)" ] || fail "expected the chunk to be named"

found --corrupt-before-restore --verify off
expect_line "damage_found_by=the workload, after the restore"
[ "$(value_of first_wrong_offset)" = "$(value_of damage_application_offset)" ] ||
	fail "expected the workload to name the very byte"
grep -qE '^first_wrong_byte=expected 0x[0-9a-f]{2}, found 0x[0-9a-f]{2}$' out || fail "expected the byte"
# Here the image stays damaged, and says so by itself.
run_limited "$stasis" verify image
expect_status 5
expect_error "gpu/P0-D0-custom"

# A byte of what a codec has packed, with few bytes of the program's among many zeros.
for codec in lz4 zstd; do
	for verify in before loading; do
		: >sim.log
		found --corrupt-before-restore --verify $verify --compress $codec --bytes 4096
		[ "$(value_of found_file)" = "$(value_of damage_file)" ] || fail "expected the file to be named"
		[ "$(value_of found_chunk)" = "$(value_of damage_chunk)" ] || fail "expected the chunk to be named"
		run_limited "$stasis" verify image
		expect_status 0
	done
	found --truncate-before-restore --compress $codec --bytes 4096
	rm -rf image
	roundtrip image --bytes 4096 --corrupt-before-restore --verify off --compress $codec
	expect_status 2
	expect_error "end the program"
done

# The smallest memory in which the program's bytes can be told from others.
for bytes in 32 33 100 4096; do
	rm -rf image
	roundtrip image --bytes $bytes --corrupt-before-restore
	expect_status 0
	expect_last_line "corruption_check=passed"
done
