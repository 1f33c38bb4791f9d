#!/bin/bash
# Description: a round trip with the driver's own store passes on this machine's GPU, small and large.
. "$(dirname "$0")/../cli/lib.sh"

for bytes in 4097 64M 1G; do
	rm -rf image
	roundtrip image --store native --bytes "$bytes"
	expect_status 0
	expect_no_error
	expect_line "driver=nvidia"
	expect_line "store=native"
	expect_line "post_restore_operation=passed"
	expect_last_line "roundtrip=passed"
	[ "$(sed -n 's/^state=//p' out | tr '\n' ' ')" = "RUNNING LOCKED CHECKPOINTED LOCKED RUNNING " ] ||
		fail "expected the five states"
	[ "$(value_of application_bytes)" = "$(value_of application_bytes_verified)" ] ||
		fail "expected every byte to be verified"
	process_is_gone "$(value_of workload_pid)" || fail "expected the workload to have ended"
	grep -E '^(device_name|cuda_version|application_bytes|checkpoint_seconds|restore_seconds)=' out
done
