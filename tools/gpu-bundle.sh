#!/bin/bash
# Makes .gpu/bundle: a stripped tree that tests the GPU of another machine, from any folder, without network,
# compiler or packages; Python 3 is all that it needs there:
#     STASIS_BUILD_DIR=build make check-gpu        or, without make: python3 tools/check_gpu build
. "$(dirname "$0")/common.sh"

BUILD="$ROOT/build-gpu"
BUNDLE="$ROOT/.gpu/bundle"
LIMIT_MIB=24
GLIBC_NEWEST=2.36
# What may be needed from the other machine: glibc's own libraries.
LIBRARIES_ALLOWED='libc\.so\.6|libm\.so\.6|libdl\.so\.2|libpthread\.so\.0|librt\.so\.1|ld-linux-x86-64\.so\.2|libgcc_s\.so\.1|libcuda\.so\.1'

need strip
need readelf
"$ROOT/tools/build.sh" --quiet "$BUILD" -Doptimization=2 -Ddebug=false

binaries() {
	find "$BUILD" \( -name '*.p' -o -name meson-private -o -name meson-logs -o -path '*/tests/unit' \
		-o -path '*/tests/fuzz' -o -path '*/tests/sim' \) -prune -o -type f ! -name '*.o' ! -name '*.a' -print |
		while IFS= read -r file; do
			if [ "$(head -c 4 "$file" | tail -c 3)" = ELF ]; then
				printf '%s\n' "${file#"$BUILD"/}"
			fi
		done
	# of the suite sim only what is a scenario for a GPU, too
	sed -n 's/^gpu [^ ]* [0-9]* \(tests\/sim\/[^ ]*\).*/\1/p' "$BUILD/tests/tests.list" | sort -u
}

check_binary() {
	local foreign newest
	foreign=$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vxE "$LIBRARIES_ALLOWED" || true)
	[ -z "$foreign" ] || die "$1 needs $foreign, which another machine may not have"
	# nothing is found in a library that needs no libc at all
	newest=$(readelf -V "$1" | { grep -oE 'GLIBC_[0-9.]+' || true; } | sed 's/GLIBC_//' | sort -V | tail -1)
	[ "$(printf '%s\n' "$newest" "$GLIBC_NEWEST" | sort -V | tail -1)" = "$GLIBC_NEWEST" ] ||
		note "gpu-bundle: $1 needs glibc $newest; build on Debian 12 to reach machines with $GLIBC_NEWEST"
}

commit() {
	git -C "$ROOT" rev-parse HEAD 2>/dev/null || { echo unknown; return; }
}

rm -rf "$BUNDLE"
mkdir -p "$BUNDLE/build/tests" "$BUNDLE/tests" "$BUNDLE/tools"
while IFS= read -r file; do
	mkdir -p "$BUNDLE/build/$(dirname "$file")"
	strip --strip-unneeded -o "$BUNDLE/build/$file" "$BUILD/$file"
	check_binary "$BUNDLE/build/$file"
done < <(binaries)

# libcuda.so.1 is found by that name whatever the file behind it is called
(cd "$BUILD" && find . -name '*.p' -prune -o -type l -name '*.so*' -print) | while IFS= read -r link; do
	mkdir -p "$BUNDLE/build/$(dirname "$link")"
	cp -P "$BUILD/$link" "$BUNDLE/build/$link"
done

grep -E '^(conformance|gpu) ' "$BUILD/tests/tests.list" >"$BUNDLE/build/tests/tests.list"
cp "$ROOT/tests/run" "$BUNDLE/tests/"
mkdir -p "$BUNDLE/tests/cli"
cp "$ROOT/tests/cli/lib.sh" "$BUNDLE/tests/cli/"
"$ROOT/tools/sources" .sh .py | sed -n '/^tests\/gpu\//p' | while IFS= read -r script; do
	mkdir -p "$BUNDLE/$(dirname "$script")"
	cp "$ROOT/$script" "$BUNDLE/$script"
done
cp "$ROOT"/tools/{common.sh,check_gpu,demo.sh,bench-gpu.sh,bench_table} "$BUNDLE/tools/"
cp "$ROOT"/{Makefile,LICENSE,README.md} "$BUNDLE/"
mkdir -p "$BUNDLE/docs"
cp "$ROOT/docs/testing.md" "$BUNDLE/docs/"
changed=$(git -C "$ROOT" status --porcelain 2>/dev/null | head -1)
echo "$(commit)${changed:+ with local changes}" >"$BUNDLE/COMMIT"
(cd "$BUNDLE" && find build -type f -exec sha256sum {} + | sort -k2 >SHA256SUMS)

kib=$(du -sk "$BUNDLE" | cut -f1)
[ "$kib" -le $((LIMIT_MIB * 1024)) ] || die "$BUNDLE holds $kib KiB; at most $LIMIT_MIB MiB"
note "gpu-bundle: $BUNDLE, $kib KiB; there: STASIS_BUILD_DIR=build make check-gpu, or python3 tools/check_gpu build"
