#!/bin/bash
# Description: a round trip of 1 GiB keeps our processes' anonymous and pinned memory under 300 MiB.
. "$(dirname "$0")/lib.sh"

if [ -n "${STASIS_TEST_SANITIZER:-}" ]; then
	echo "sanitizers take memory of their own"
	exit 77
fi
# The simulated machine and the fallback lie in memory, the image where the tests are.
needed_kib=$((4 << 20))
available_kib=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)
disk_kib=$(df -kP . | awk 'NR == 2 { print $4 }')
if [ "$available_kib" -lt $needed_kib ] || [ "$disk_kib" -lt $((2 << 20)) ]; then
	echo "needs 4 GiB of memory and 2 GiB of disk"
	exit 77
fi

limit=$((300 << 20))
export STASIS_SIM_CONTEXT_BYTES=16M
"$stasis" roundtrip --artifact-dir image --bytes 1G --timeout 500s >out 2>err </dev/null &
pid=$!
command_text="roundtrip of 1 GiB"

# The anonymous memory of the supervisor and its worker together, in KiB, as the kernel counts it.
anonymous_kib() {
	local child total=0 name kib
	# shellcheck disable=SC2013 # numbers between blanks
	for child in "$pid" $(cat "/proc/$pid/task/$pid/children" 2>/dev/null); do
		name=$(cat "/proc/$child/comm" 2>/dev/null)
		[ "$name" = stasis ] || continue
		kib=$(sed -n 's/^RssAnon:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$child/status" 2>/dev/null)
		total=$((total + ${kib:-0}))
	done
	echo $total
}

peak_kib=0
samples=0
while kill -0 "$pid" 2>/dev/null; do
	kib=$(anonymous_kib)
	[ "$kib" -le "$peak_kib" ] || peak_kib=$kib
	samples=$((samples + 1))
	sleep 0.02
done
wait "$pid"
status=$?
expect_status 0
expect_last_line "roundtrip=passed"
[ "$(value_of application_bytes_verified)" = $((1 << 30)) ] || fail "expected every byte to be compared"

pinned=$(value_of pinned_bytes)
own=$(value_of rss_anon_bytes)
[ "$samples" -ge 10 ] && [ "$peak_kib" -gt 0 ] || fail "expected to have looked at it, $samples times"
[ "${pinned:-0}" -gt 0 ] || fail "expected pinned memory to be used and reported"
echo "anonymous $peak_kib KiB as seen in $samples looks, $own bytes by its own account, pinned $pinned bytes"
[ $((peak_kib * 1024 + pinned)) -lt $limit ] || fail "expected anonymous and pinned memory under 300 MiB"
[ $((own + pinned)) -lt $limit ] || fail "expected its own account under 300 MiB"
# The fallback is no anonymous memory, and is reported apart.
[ "$(value_of fallback_bytes)" -ge $((1 << 30)) ] || fail "expected the fallback to hold everything"
rm -rf image
