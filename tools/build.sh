#!/bin/bash
# Configures a build folder where that has not been done, and builds it.
# usage: build.sh [--quiet] BUILD-FOLDER [meson setup options]
. "$(dirname "$0")/common.sh"

quiet=0
if [ "${1:-}" = --quiet ]; then
	quiet=1
	shift
fi
build=$1
shift

for tool in meson ninja pkg-config python3; do
	need "$tool"
done
have "${CC:-cc}" || have gcc || have clang || die "needs a C compiler; run 'make deps'"

log=$(mktemp)
trap 'rm -f "$log"' EXIT

run() {
	if [ $quiet -eq 0 ]; then
		"$@"
	elif ! "$@" >"$log" 2>&1; then
		cat "$log"
		die "'$*' failed"
	fi
}

if [ ! -f "$build/build.ninja" ]; then
	if ! meson setup "$build" "$ROOT" "$@" >"$log" 2>&1; then
		cat "$log"
		rm -rf "$build"
		die "cannot configure; if a library is missing, run 'make deps'"
	fi
fi
run ninja -C "$build"
