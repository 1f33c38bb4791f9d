#!/bin/bash
# Fuzzes each decoder for FUZZ_SECONDS (default 60), starting from its kept corpus: with clang's libFuzzer
# where there is one, else with the mixtures of tests/fuzz/replay.c; under ASan and UBSan either way. What it
# finds is kept in .out/fuzz/NAME/ and makes this fail; add the input to the corpus with the fix, so that
# `make test` replays it.
. "$(dirname "$0")/common.sh"

BUILD="$ROOT/build-fuzz"
SECONDS_EACH=${FUZZ_SECONDS:-60}
status=0
count=0

has_libfuzzer() {
	echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return !d && n; }' |
		clang -x c -fsanitize=fuzzer,address -o /dev/null - 2>/dev/null
}

# fuzz NAME: one decoder, in a folder that keeps what it finds
fuzz() {
	local corpus="$ROOT/tests/fuzz/corpus/${1#fuzz_}" program="$BUILD/tests/fuzz/$1"
	if [ "$engine" = libfuzzer ]; then
		mkdir -p corpus
		"$program" -max_total_time="$SECONDS_EACH" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
			-verbosity=0 corpus "$corpus"
	else
		"$program" "$corpus" "$SECONDS_EACH" "$RANDOM"
	fi
}

if has_libfuzzer; then
	engine=libfuzzer
	CC=clang "$ROOT/tools/build.sh" --quiet "$BUILD" -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false
else
	engine=replay
	BUILD="$BUILD-replay"
	note "clang has no libFuzzer here (libclang-rt-dev); mixing the corpus at random instead"
	CC=gcc "$ROOT/tools/build.sh" --quiet "$BUILD" -Db_sanitize=address,undefined
fi

export UBSAN_OPTIONS=halt_on_error=1
for program in "$BUILD"/tests/fuzz/fuzz_*; do
	[ -f "$program" ] || continue
	name=$(basename "$program")
	mkdir -p "$ROOT/.out/fuzz/$name"
	note "== $name, $SECONDS_EACH s with $engine"
	if ! (cd "$ROOT/.out/fuzz/$name" && fuzz "$name"); then
		note "$name: FAILED; the input is in $ROOT/.out/fuzz/$name"
		status=1
	fi
	count=$((count + 1))
done
[ $count -gt 0 ] || die "no fuzz target in '$BUILD/tests/fuzz'"
note "$count decoders fuzzed"
exit $status
