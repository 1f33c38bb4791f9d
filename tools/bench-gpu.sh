#!/bin/bash
# Measures the transfer engine's targets on one GPU: default settings, digests on, each rate beside the limit of
# the same run. Writes OUT/transfer.json and OUT/transfer.md, which is ready for docs/measurements/, and ends with
# status 1 where a target was missed. Mounts nothing: give it a directory in memory and one on a disk.
# usage: bench-gpu.sh [BUILD-FOLDER] --tmpfs DIR --disk DIR [--bytes 16G] [--disk-bytes 4G] [--runs 5] [--out DIR]
#                     [--device N] [--rows PATTERNS]
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
rows='save/tmpfs,load/tmpfs,*/tmpfs/zeros=100,save/memory,load/memory,save/disk,load/disk'

usage() {
	sed -n 's/^# usage: /usage: /p' "$0" >&2
	exit 2
}

while [ $# -gt 0 ]; do
	case $1 in
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
stasis="$build/src/cli/stasis"
[ -x "$stasis" ] || die "no program '$stasis'; build it or name the build folder"
have python3 || die "needs python3"

commit() {
	cat "$ROOT/COMMIT" 2>/dev/null || git -C "$ROOT" describe --always --dirty --abbrev=40 2>/dev/null ||
		echo unknown
}

command=("$stasis" bench transfer --bytes "$bytes" --disk-bytes "$disk_bytes" --runs "$runs" --device "$device"
	--tmpfs "$tmpfs" --disk "$disk" --rows "$rows" --json)
mkdir -p "$out"
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
