#!/bin/bash
# Description: what a suspended process still has open or mapped of the GPUs' device files is told, with the file and the
# library that opened it perhaps.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/ring.sh"

device=/dev/nvidia-stasis-test-$$
program=
clean() {
	[ -z "$program" ] || kill -KILL "$program" 2>/dev/null
	rm -f "$device"
	ring_clean
}
trap clean EXIT
if ! echo device >"$device"; then
	echo "needs root: makes a file in /dev"
	exit 77
fi
echo library >libnvidia-ml.so.1
cat >holder.py <<'EOF'
import ctypes
import mmap
import sys
import time

cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
if cuda.cuInit(0) != 0 or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) != 0:
    sys.exit("no CUDA")
files = [open(name, encoding="utf-8") for name in sys.argv[1:]]
maps = [mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) for file in files]
print(files[0].fileno(), flush=True)
while True:
    time.sleep(1)
EOF
"$stasis" run -- python3 holder.py "$device" libnvidia-ml.so.1 >number &
program=$!
wait_for test -s number
run_limited "$stasis" suspend "$program"
expect_status 0
expect_no_error
expect_line "still_held=process $program (python3): $device, descriptor $(cat number), opened perhaps by libnvidia-ml.so.1"
expect_line "still_held=process $program (python3): $device, mapped, opened perhaps by libnvidia-ml.so.1"
run_limited "$stasis" resume "$program"
expect_status 0
kill -KILL "$program"
wait "$program" 2>/dev/null
program=

# whoever holds nothing is not told of
ring_start 2
run_limited "$stasis" suspend "${pids[@]}"
expect_status 0
! grep -q still_held out || fail "expected nothing to be held"
run_limited "$stasis" resume "${pids[@]}"
expect_status 0
ring_end
