#!/bin/bash
# Description: on this machine's GPU the default store is the one that the driver has, CustomStorage is
# refused where it is missing and leaves nothing behind, and damage is found where it is there.
. "$(dirname "$0")/../cli/lib.sh"

run_limited "$stasis" doctor
expect_status 0
custom=$(value_of store_custom)

roundtrip image --bytes 64M
expect_status 0
expect_line "driver=nvidia"
expect_last_line "roundtrip=passed"

if [ "$custom" != yes ]; then
	expect_line "store=native"
	grep -q '^store_why=' out || fail "expected the reason for the native store"
	for option in "--store custom" --truncate-before-restore --corrupt-before-restore; do
		# shellcheck disable=SC2086  # an option and its value
		roundtrip refused --bytes 64M $option
		expect_status 1
		expect_error "CustomStorage"
		expect_missing refused
		expect_no_partial
	done
	echo "CustomStorage: $custom"
	exit 0
fi

expect_line "store=custom"
run_limited "$stasis" verify image
expect_status 0
for damage in truncate corrupt; do
	roundtrip "$damage" --bytes 64M "--$damage-before-restore"
	expect_status 0
	expect_line "post_restore_operation=passed"
	expect_last_line "corruption_check=passed"
done
