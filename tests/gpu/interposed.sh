#!/bin/bash
# Description: on this machine's driver, too, programs get the same answers with the interposer preloaded.
set -u
interposer=$STASIS_BUILD_DIR/src/interpose/libstasis-interpose.so
list=$STASIS_BUILD_DIR/tests/tests.list
# what tickets change: see tests/interpose/conformance.py
changed='export_is_descriptor|import_exports_no_more|descriptor_holds_memory|keeper_without_cuda'
failures=0
count=0

while read -r _ name seconds program arguments; do
	count=$((count + 1))
	# shellcheck disable=SC2086
	LD_PRELOAD=$interposer timeout "$seconds" "$STASIS_BUILD_DIR/$program" $arguments >out 2>&1 </dev/null
	status=$?
	if [ $status -ne 0 ] && [ $status -ne 77 ]; then
		printf 'FAILED %s: status %s: %s\n' "$name" "$status" "$(tail -n 1 out)"
		failures=$((failures + 1))
	fi
done < <(grep -E '^conformance (vmm|vmm_mixed|export_import|pointer|event|capture_graph|procaddress)\.' "$list" |
	grep -vE "\.($changed) ")
printf '%s behaviours, %s changed\n' "$count" "$failures"
[ "$count" -gt 0 ] && [ "$failures" -eq 0 ]
