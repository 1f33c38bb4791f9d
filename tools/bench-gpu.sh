#!/bin/bash
# Measures the transfer engine's targets on one GPU: default settings, digests on, each rate beside the limit of
# the same run. Writes OUT/transfer.json and OUT/transfer.md, which is ready for docs/measurements/, and ends with
# status 1 where a target was missed. Mounts nothing: give it a directory in memory and one on a disk.
# usage: bench-gpu.sh [BUILD-FOLDER] --tmpfs DIR --disk DIR [--bytes 16G] [--disk-bytes 4G] [--runs 5] [--out DIR]
#                     [--device N] [--rows PATTERNS]
#        bench-gpu.sh [BUILD-FOLDER] --sweep --tmpfs DIR --disk DIR [--tmpfs-huge DIR] [--bytes 8G] [--disk-bytes 2G]
#                     [--runs 4] [--seconds 160] [--out DIR]
# The second form compares settings of the engine with each other for so many seconds and writes OUT/sweep.txt;
# --tmpfs-huge is a tmpfs mounted with huge=always.
# The directory in memory must have room for --bytes, and the machine for that much beside it.
. "$(dirname "$0")/common.sh"

build="$ROOT/build"
tmpfs=''
disk=''
bytes=16G
disk_bytes=4G
runs=5
device=0
out="$PWD"
sweep=0
tmpfs_huge=''
seconds=160
rows='save/tmpfs,load/tmpfs,*/tmpfs/zeros=100,save/memory,load/memory,save/disk,load/disk'

usage() {
	sed -n 's/^# usage: /usage: /p; s/^#        bench-gpu.sh/       bench-gpu.sh/p' "$0" >&2
	exit 2
}

while [ $# -gt 0 ]; do
	case $1 in
	--sweep)
		sweep=1
		shift
		;;
	--*)
		[ $# -ge 2 ] || usage
		case $1 in
		--tmpfs) tmpfs=$2 ;;
		--disk) disk=$2 ;;
		--bytes) bytes=$2 ;;
		--disk-bytes) disk_bytes=$2 ;;
		--runs) runs=$2 ;;
		--device) device=$2 ;;
		--rows) rows=$2 ;;
		--out) out=$2 ;;
		--tmpfs-huge) tmpfs_huge=$2 ;;
		--seconds) seconds=$2 ;;
		*) usage ;;
		esac
		shift 2
		;;
	*)
		build=$1
		shift
		;;
	esac
done
if [ -z "$tmpfs" ] || [ -z "$disk" ]; then
	usage
fi
[ -d "$tmpfs" ] || die "'$tmpfs' is no directory"
[ -d "$disk" ] || die "'$disk' is no directory"
[ "$(stat -f -c %T "$tmpfs")" = tmpfs ] || die "'$tmpfs' is not on a tmpfs"
mkdir -p "$out"
if [ $sweep -eq 1 ]; then
	[ -x "$build/bench/sweep" ] || die "no program '$build/bench/sweep'; build it or name the build folder"
	command=("$build/bench/sweep" --bytes "$bytes" --disk-bytes "$disk_bytes" --rounds "$runs" --seconds "$seconds"
		--tmpfs "$tmpfs" --disk "$disk")
	[ -z "$tmpfs_huge" ] || command+=(--tmpfs-huge "$tmpfs_huge")
	"${command[@]}" | tee "$out/sweep.txt"
	exit "${PIPESTATUS[0]}"
fi
stasis="$build/src/cli/stasis"
[ -x "$stasis" ] || die "no program '$stasis'; build it or name the build folder"
have python3 || die "needs python3"

commit() {
	cat "$ROOT/COMMIT" 2>/dev/null || git -C "$ROOT" describe --always --dirty --abbrev=40 2>/dev/null ||
		echo unknown
}

command=("$stasis" bench transfer --bytes "$bytes" --disk-bytes "$disk_bytes" --runs "$runs" --device "$device"
	--tmpfs "$tmpfs" --disk "$disk" --rows "$rows" --json)
note "bench-gpu: $(printf '%q ' "${command[@]}")"
status=0
"${command[@]}" >"$out/transfer.json" || status=$?
if [ $status -ne 0 ]; then
	cat "$out/transfer.json"
	exit $status
fi
python3 "$ROOT/tools/bench_table" "$out/transfer.json" "$out/transfer.md" \
	"commit=$(commit)" \
	"binary=$(sha256sum "$stasis" | cut -d' ' -f1)" \
	"command=stasis bench transfer --bytes $bytes --disk-bytes $disk_bytes --runs $runs --tmpfs DIR --disk DIR --rows '$rows' --json" \
	"cores=$(nproc)" \
	"memory=$(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo | awk '{printf "%.0f GiB", $1 / 1048576}')" \
	"processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" \
	"tmpfs=$(findmnt -n -o OPTIONS -T "$tmpfs" 2>/dev/null | tail -1)" \
	"disk=$(stat -f -c %T "$disk")" || status=$?
cat "$out/transfer.md"
exit $status
