#!/bin/bash
# Shows what Stasis does, in three acts: a round trip of a real process, and two damaged images. Each act is
# one run of `stasis roundtrip`; what is told comes from its output and is checked against it.
# usage: demo.sh BUILD-FOLDER
#
# On a machine whose GPU driver has no CustomStorage, the round trip runs on the GPU with the driver's own
# store, and what needs CustomStorage runs on the simulated driver. Each line says which of the two it was.
# DEMO_DIR=PATH keeps the images there; BYTES=256M takes another size.
. "$(dirname "$0")/common.sh"

build=$(cd "$1" && pwd) || die "no folder '$1'"
stasis="$build/src/cli/stasis"
simulator="$build/sim/libcuda.so.1"
bytes=${BYTES:-64M}
[ -x "$stasis" ] || die "no program '$stasis'; build first (make)"

if [ -n "${DEMO_DIR:-}" ]; then
	mkdir -p "$DEMO_DIR"
	folder=$(cd "$DEMO_DIR" && pwd)
	kept=1
else
	folder=$(mktemp -d "${TMPDIR:-/tmp}/stasis-demo.XXXXXX")
	kept=
fi
log="$folder/log"
trap '[ -n "$kept" ] || rm -rf "$folder"' EXIT

bold='' dim='' green='' red='' plain='' tick='ok' arrow='->'
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'
fi
case ${LC_ALL:-${LC_CTYPE:-${LANG:-}}} in
*[Uu][Tt][Ff]*8*) tick='✓' arrow='→' ;;
esac

declare -A value
where=

# act TITLE EXPLANATION...
act() {
	printf '\n%s%s%s\n' "$bold" "$1" "$plain"
	shift
	printf '%s%s%s\n' "$dim" "$(printf '    %s\n' "$@")" "$plain"
}

# tell TEXT [FIGURE]: one line of the story; it says where it happened
tell() {
	printf '  %s%s%s %s%-9s%s  %-74s %s%s%s\n' "$green" "$tick" "$plain" "$dim" "$where" "$plain" "$1" "$dim" "${2:-}" "$plain" |
		sed 's/ *$//'
}

give_up() {
	printf '  %sFAILED%s: %s\n' "$red" "$plain" "$*"
	sed 's/^/    | /' "$log"
	kept=1
	printf '\nThe images and this log lie in %s\n' "$folder"
	exit 1
}

# Runs a round trip; its output's last value of each key is in `value` afterwards, its states joined in it.
round_trip() {
	local name=$1 line status=0
	shift
	rm -rf "${folder:?}/$name"
	"$stasis" roundtrip --artifact-dir "$folder/$name" --bytes "$bytes" "$@" >"$log" 2>&1 || status=$?
	value=()
	while IFS= read -r line; do
		if [[ $line =~ ^([a-z0-9_.]+)=(.*)$ ]]; then
			[ "${BASH_REMATCH[1]}" = state ] && value[states]+="${value[states]:+ $arrow }${BASH_REMATCH[2]}"
			value[${BASH_REMATCH[1]}]=${BASH_REMATCH[2]}
		fi
	done <"$log"
	[ $status -eq 0 ] || give_up "stasis roundtrip ended with status $status"
	where=GPU
	[ "${value[driver]:-}" != simulated ] || where=simulated
}

# must KEY WANTED: the run said exactly this
must() {
	[ "${value[$1]:-}" = "$2" ] || give_up "'$1=$2' was expected, and '${value[$1]:-nothing}' came"
}

size() {
	awk -v bytes="$1" 'BEGIN {
		split("bytes KiB MiB GiB TiB", unit)
		for (i = 1; bytes >= 1024 && i < 5; i++) bytes /= 1024
		printf(i == 1 ? "%d %s" : "%.1f %s", bytes, unit[i])
	}'
}

seconds() {
	LC_ALL=C awk -v seconds="$1" 'BEGIN { printf("%.2f s", seconds) }'
}

tell_capture() {
	tell "a program filled $(size "${value[application_bytes]:-0}") of device memory with a pattern" "process ${value[workload_pid]:-unknown}"
	if [ "${value[store]:-?}" = custom ]; then
		tell "its GPU work was held back; the driver let go of $(size "${value[extent_bytes]:-0}")" "${value[extent.0.uuid]:-}"
		tell "every byte was written, digested and made durable; the image was published" "$(seconds "${value[checkpoint_seconds]:-0}")"
	else
		tell "its GPU work was held back; the driver moved its memory to the host" "$(seconds "${value[checkpoint_seconds]:-0}")"
	fi
}

# What acts 2 and 3 share with the first one, in a line.
tell_capture_again() {
	tell "captured as before: $(size "${value[extent_bytes]:-0}") in files, image published" "$(seconds "${value[checkpoint_seconds]:-0}")"
}

quote_refusal() {
	printf '               %s"%s"%s\n' "$dim" "${value[refused]//"$folder"\//}" "$plain"
}

tell_proof() {
	must post_restore_operation passed
	must application_bytes_verified "${value[application_bytes]:-?}"
	tell "it compared all ${value[application_bytes_verified]} bytes and used the device again"
}

printf '%sStasis puts a running CUDA program to sleep and wakes it up, byte for byte.%s\n' "$bold" "$plain"

act '1  Round trip' \
	'A program owns device memory. Its state goes to files, the device is empty,' \
	'the files are checked, everything comes back, and the program proves it.'
round_trip image
must roundtrip passed
if [ "$where" = GPU ]; then
	printf '    %s, CUDA %s, store %s\n' "${value[device_name]:-GPU}" "${value[cuda_version]:-?}" "${value[store]:-?}"
else
	printf '    simulated driver, CUDA %s: %s\n' "${value[cuda_version]:-?}" "${value[driver_why]:-named in STASIS_LIBCUDA}"
fi
tell_capture
tell "the memory was back in place and the program ran on" "$(seconds "${value[restore_seconds]:-0}")"
tell_proof
tell "the driver's word: ${value[states]:-?}"

if [ "${value[store]:-?}" != custom ]; then
	printf '\n    %s\n' "This driver has no CustomStorage, so its own store moved the bytes and there are no" \
		"files to damage. What follows runs on the simulated driver."
	[ -e "$simulator" ] || die "the simulated driver '$simulator' is not there"
	export STASIS_LIBCUDA="$simulator"
fi

act '2  One byte is missing' \
	'The same again, but one byte is cut off a file of the image before it is read.' \
	'It must be refused before the driver is asked for anything.'
round_trip truncated --store custom --truncate-before-restore
must corruption_check passed
must damage truncated
tell_capture_again
tell "${value[damage_file]:-?} lost its last byte: $((value[damage_file_bytes] - 1)) of ${value[damage_file_bytes]} are left"
tell "refused, by ${value[damage_found_by]:-?}"
quote_refusal
tell "the program lost nothing: with the byte put back it was restored" "$(seconds "${value[restore_seconds]:-0}")"
tell_proof

act '3  One byte is wrong' \
	'The file keeps its size, and one byte inside the program'"'"'s own data is changed.' \
	'No byte of that piece may reach the program.'
round_trip corrupted --store custom --corrupt-before-restore
must corruption_check passed
must damage corrupted
[ "${value[found_file]:-}" = "${value[damage_file]:-?}" ] || give_up "damage in ${value[damage_file]:-?} was found in ${value[found_file]:-no file}"
[ "${value[found_chunk]:-}" = "${value[damage_chunk]}" ] || give_up "damage in chunk ${value[damage_chunk]} was found in chunk ${value[found_chunk]:-none}"
tell_capture_again
tell "${value[damage_file]:-?} was changed at byte ${value[damage_offset]:-?}, size kept"
tell "found by ${value[damage_found_by]:-?}: file, chunk ${value[found_chunk]} and offset ${value[found_chunk_offset]:-?}"
quote_refusal
tell "the program lost nothing: with the byte put right it was restored" "$(seconds "${value[restore_seconds]:-0}")"
tell_proof

printf '\n%s%sAll three held.%s' "$bold" "$green" "$plain"
if [ -n "$kept" ]; then
	printf ' The images lie in %s; try: %s inspect %s/image\n' "$folder" "$stasis" "$folder"
else
	printf ' DEMO_DIR=PATH make demo keeps the images to look at.\n'
fi
