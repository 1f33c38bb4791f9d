#!/bin/bash
# Installs what building and testing need, and downloads CUDA headers to hold our ABI declarations
# against. usage: deps.sh [--once]
#     --once   do nothing if an earlier run got through and nothing that is required is missing
#
# As root missing packages are installed with apt; otherwise the command that does it is printed. What
# cannot be had is an error only where building cannot go on without it.
. "$(dirname "$0")/common.sh"

STAMP="$DEPS/ready"
HEADERS="$DEPS/cuda-headers"
# 13.4 brought CustomStorage; one release before it shows that the declarations fit older headers too.
HEADER_VERSIONS=('nvidia-cuda-runtime>=13.4,<14' 'nvidia-cuda-runtime==13.0.*')

# The two arrays are read through a name reference, which shellcheck does not follow.
# shellcheck disable=SC2034
# package and how to see that it is there: a command, or a library with its static archive
REQUIRED=(
	'gcc cc|gcc|clang'
	'libc6-dev header:stdlib.h'
	'make make'
	'meson meson'
	'ninja-build ninja'
	'pkg-config pkg-config|pkgconf'
	'python3 python3'
	'libjansson-dev lib:jansson'
	'libxxhash-dev lib:libxxhash'
	'liblz4-dev lib:liblz4'
	'libzstd-dev lib:libzstd'
	'libcmocka-dev lib:cmocka'
)
# shellcheck disable=SC2034
# without these something is skipped, with its reason
OPTIONAL=(
	'git git'
	'python3-pip pip'
	'scdoc scdoc'
	'clang clang'
	'clang-format clang-format'
	'clang-tidy run-clang-tidy'
	'cppcheck cppcheck'
	'shellcheck shellcheck'
)

has_pip() {
	pip_python >/dev/null
}

# The first Python 3 that has pip; Debian's own and the one on PATH may differ.
pip_python() {
	local python
	for python in python3 /usr/bin/python3; do
		if "$python" -m pip --version >/dev/null 2>&1; then
			echo "$python"
			return 0
		fi
	done
	return 1
}

is_there() {
	local probe=$1 word
	case $probe in
	header:*) [ -e "/usr/include/${probe#header:}" ] ;;
	lib:*) pkg-config --exists "${probe#lib:}" 2>/dev/null ;;
	pip) has_pip ;;
	*)
		for word in ${probe//|/ }; do
			have "$word" && return 0
		done
		return 1
		;;
	esac
}

# missing NAME-OF-ARRAY: the packages of it that are not there, in one line
missing() {
	local -n entries=$1
	local entry found=
	for entry in "${entries[@]}"; do
		is_there "${entry#* }" || found="$found ${entry%% *}"
	done
	printf '%s' "${found# }"
}

apt_install() {
	local packages=("$@")
	export DEBIAN_FRONTEND=noninteractive
	note "deps: installing ${packages[*]}"
	apt-get -qq update || note "deps: the package index could not be refreshed; trying with the old one"
	apt-get -qq -y install --no-install-recommends "${packages[@]}" >"$DEPS/apt.log" 2>&1 && return 0
	tail -5 "$DEPS/apt.log" >&2
	return 1
}

packages_get() {
	local required optional
	required=$(missing REQUIRED)
	optional=$(missing OPTIONAL)
	[ -n "$required$optional" ] || return 0
	local wanted=()
	read -ra wanted <<<"$required $optional"
	if have apt-get && [ "$(id -u)" -eq 0 ]; then
		# together, then the required ones alone: one package that a release lacks must not stop the rest
		apt_install "${wanted[@]}" || packages_get_each "$required" "$optional"
	elif have apt-get; then
		note "deps: missing; install with"
		note "    sudo apt-get install --no-install-recommends ${wanted[*]}"
	else
		note "deps: missing, under their Debian names: ${wanted[*]}"
	fi
	required=$(missing REQUIRED)
	optional=$(missing OPTIONAL)
	[ -z "$optional" ] || note "deps: going on without: $optional"
	[ -z "$required" ] || die "cannot build without: $required"
}

packages_get_each() {
	local package packages=()
	read -ra packages <<<"$1"
	[ ${#packages[@]} -eq 0 ] || apt_install "${packages[@]}" || true
	for package in $2; do
		apt_install "$package" || true
	done
}

headers_unpack() {
	python3 - "$1" "$HEADERS" <<-'PYTHON'
	import os, re, shutil, sys, tempfile, zipfile
	wheel, target = sys.argv[1:]
	version = os.path.basename(wheel).split("-")[1]
	final = os.path.join(target, version)
	part = tempfile.mkdtemp(prefix=".part-", dir=target)
	with zipfile.ZipFile(wheel) as archive:
	    for name in archive.namelist():
	        found = re.search(r"(?:^|/)include/(.+)$", name)
	        if not found or name.endswith("/") or ".." in name:
	            continue
	        place = os.path.join(part, "include", found.group(1))
	        os.makedirs(os.path.dirname(place), exist_ok=True)
	        with archive.open(name) as source, open(place, "wb") as copy:
	            shutil.copyfileobj(source, copy)
	if not os.path.exists(os.path.join(part, "include", "cuda.h")):
	    sys.exit(f"no cuda.h in {wheel}")
	shutil.rmtree(final, ignore_errors=True)
	os.chmod(part, 0o755)
	os.rename(part, final)
	print(f"deps: CUDA headers {version} in {final}")
	PYTHON
}

headers_get_one() {
	local python=$1 requirement=$2 folder
	folder=$(mktemp -d "$DEPS/wheel.XXXXXX")
	if "$python" -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: \
		--retries 1 --timeout 20 -d "$folder" "$requirement" >"$DEPS/pip.log" 2>&1; then
		headers_unpack "$folder"/*.whl || note "deps: cannot unpack the wheel of $requirement"
	else
		note "deps: no CUDA headers ($requirement): $(grep -m1 -iE 'error|no matching' "$DEPS/pip.log" || tail -1 "$DEPS/pip.log")"
		note "deps: going on; the part of tests/abi that needs them is skipped"
	fi
	rm -rf "$folder"
}

headers_get() {
	local python requirement
	mkdir -p "$HEADERS"
	if ! python=$(pip_python); then
		note "deps: no pip, so no CUDA headers; the part of tests/abi that needs them is skipped"
		return 0
	fi
	for requirement in "${HEADER_VERSIONS[@]}"; do
		headers_get_one "$python" "$requirement"
	done
}

# Changes with this script, so that an update of it is run once.
stamp_text() {
	cksum <"$ROOT/tools/deps.sh"
}

mkdir -p "$DEPS"
if [ "${1:-}" = --once ] && [ -z "$(missing REQUIRED)" ] &&
	[ "$(cat "$STAMP" 2>/dev/null)" = "$(stamp_text)" ]; then
	exit 0
fi
packages_get
headers_get
stamp_text >"$STAMP"
