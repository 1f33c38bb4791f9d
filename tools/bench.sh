#!/bin/bash
# Runs the programs of bench/, each of which prints one figure: value, unit, and what it was measured on.
# usage: bench.sh BUILD-FOLDER
. "$(dirname "$0")/common.sh"

count=0
for program in "$1"/bench/*; do
	if [ ! -f "$program" ] || [ ! -x "$program" ]; then
		continue
	fi
	note "== $(basename "$program")"
	"$program"
	count=$((count + 1))
done
note "== stasis bench transfer --quick"
"$1/src/cli/stasis" bench transfer --quick
[ $count -gt 0 ] || die "no program in '$1/bench'"
