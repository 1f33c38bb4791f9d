#!/bin/bash
# Installs below PREFIX, staged in DESTDIR where that is not empty, from a build folder of its own that is
# configured for this PREFIX. usage: install.sh SOURCE-FOLDER PREFIX DESTDIR
. "$(dirname "$0")/common.sh"

prefix=$2
destdir=$3
build="$ROOT/build-install"

case $prefix in
/*) ;;
*) die "PREFIX must be an absolute path, not '$prefix'" ;;
esac
"$ROOT/tools/build.sh" --quiet "$build" -Doptimization=2 -Ddebug=false --prefix="$prefix" --libdir=lib
# an earlier configuration may have had another prefix
meson configure "$build" --prefix="$prefix" --libdir=lib
ninja -C "$build" >/dev/null
DESTDIR=$destdir meson install -C "$build" --no-rebuild
