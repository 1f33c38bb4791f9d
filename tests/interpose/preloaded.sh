#!/bin/bash
# Runs a program with the interposer preloaded. usage: preloaded.sh PROGRAM [ARGUMENT...]
# SECOND=before:NAME or after:NAME preloads fake/libNAME.so too; FAKE=1 puts the played libraries into
# $TMPDIR/fake, under the names that NVIDIA's have, and lets the program find them there.
set -eu
interposer=$STASIS_BUILD_DIR/src/interpose/libstasis-interpose.so
here=$STASIS_BUILD_DIR/tests/interpose/fake
list=$interposer
case ${SECOND:-} in
before:*) list=$here/lib${SECOND#*:}.so:$interposer ;;
after:*) list=$interposer:$here/lib${SECOND#*:}.so ;;
esac
if [ -n "${FAKE:-}" ]; then
	mkdir -p "$TMPDIR/fake" "$TMPDIR/copy"
	cp "$here/libcuda.so.1" "$TMPDIR/fake/libcuda.so.1"
	cp "$here/libcuda.so.1" "$TMPDIR/copy/libcuda.so.1"
	cp "$here/libcuda.so.1" "$TMPDIR/fake/libcuda.so.fake"
	for version in 11.0 12 13; do
		cp "$here/libcudart-$version.so" "$TMPDIR/fake/libcudart.so.$version"
	done
	cp "$here/libplugin.so" "$here/libconstructor.so" "$TMPDIR/fake/"
	export STASIS_TEST_FAKE=$TMPDIR/fake STASIS_TEST_COPY=$TMPDIR/copy
	export LD_LIBRARY_PATH=$TMPDIR/fake
fi
# The interposer comes before the sanitizers' runtimes, and needs none of them.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
exec env LD_PRELOAD="$list" "$@"
