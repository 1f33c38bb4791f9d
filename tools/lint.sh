#!/bin/bash
# Everything that looks at the source without running it. With names, only those checks:
#     lint.sh [format|format-fix|tidy|cppcheck|shellcheck|includes|text ...]
# A tool that is missing fails the check that needs it: "not checked" must not read as "clean".
. "$(dirname "$0")/common.sh"
cd "$ROOT"

CLANG_FORMAT_MAJOR=14
BUILD_LINT="$ROOT/build-lint"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

c_files() {
	"$ROOT/tools/sources" .c .h
}

# clang-format's output differs between its releases, so only the one that the project uses is asked.
clang_format() {
	if have "clang-format-$CLANG_FORMAT_MAJOR"; then
		echo "clang-format-$CLANG_FORMAT_MAJOR"
	elif have clang-format && clang-format --version | grep -q "version $CLANG_FORMAT_MAJOR\."; then
		echo clang-format
	fi
}

check_format() {
	local tool
	tool=$(clang_format)
	[ -n "$tool" ] || { echo "needs clang-format $CLANG_FORMAT_MAJOR (Debian 12, Ubuntu 22.04)"; return 1; }
	c_files | xargs -d '\n' "$tool" --dry-run -Werror
}

check_format_fix() {
	local tool
	tool=$(clang_format)
	[ -n "$tool" ] || { echo "needs clang-format $CLANG_FORMAT_MAJOR (Debian 12, Ubuntu 22.04)"; return 1; }
	c_files | xargs -d '\n' "$tool" -i
}

# clang also compiles everything with -Werror and -Wthread-safety on the way.
lint_build() {
	need clang
	CC=clang "$ROOT/tools/build.sh" --quiet "$BUILD_LINT"
}

check_tidy() {
	need run-clang-tidy
	lint_build || return 1
	# Files that the compiler is given and that are ours; a path may hold characters special to a regex.
	run-clang-tidy -quiet -p "$BUILD_LINT" -j "$(jobs_count)" '/(src|sim|tests|bench)/[^:]*\.c$' \
		>"$log" 2>&1 && return 0
	grep -vE '^(\[[0-9 /]+\] )?(clang-tidy|[0-9]+ warnings?( treated as errors?| generated)|Suppressed|Use -|Error while)' \
		"$log" | sed 's/\x1b\[[0-9;]*m//g'
	return 1
}

check_cppcheck() {
	need cppcheck
	cppcheck --quiet --std=c11 --enable=warning,portability,performance --error-exitcode=1 \
		--inline-suppr --suppress=missingIncludeSystem --suppress=normalCheckLevelMaxBranches \
		--suppressions-list="$ROOT/tools/cppcheck.suppress" -j "$(jobs_count)" \
		-D_GNU_SOURCE -D__x86_64__ -Isrc -Iinclude -I. src sim tests bench
}

# SC2015: `this && that || fail` is meant as it reads.
check_shellcheck() {
	need shellcheck
	"$ROOT/tools/sources" | while IFS= read -r f; do
		case $f in
		*.sh) printf '%s\n' "$f" ;;
		*) head -c 64 "$f" 2>/dev/null | head -1 | grep -qaE '^#!.*\b(ba)?sh$' && printf '%s\n' "$f" ;;
		esac || true
	done | xargs -d '\n' shellcheck -x --source-path=SCRIPTDIR --exclude=SC2015
}

check_includes() {
	python3 "$ROOT/tools/check_includes"
}

check_text() {
	python3 "$ROOT/tools/check_text"
}

run_check() {
	local started=$SECONDS
	if "check_${1//-/_}"; then
		printf 'ok      %-12s %3d s\n' "$1" $((SECONDS - started))
	else
		printf 'FAILED  %s\n' "$1"
		failed="$failed $1"
	fi
}

failed=
[ $# -gt 0 ] || set -- text includes format shellcheck cppcheck tidy
for name in "$@"; do
	declare -F "check_${name//-/_}" >/dev/null || die "no check named '$name'"
	run_check "$name"
done
[ -z "$failed" ] || die "failed:$failed"
