# shellcheck shell=bash
# What the scripts in this folder share; sourced, never run. Sets ROOT, the folder of the project.

set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034  # used by the scripts that source this file
DEPS="$ROOT/.deps"

note() {
	printf '%s\n' "$*"
}

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

have() {
	command -v "$1" >/dev/null 2>&1
}

need() {
	have "$1" || die "needs $1; run 'make deps'"
}

jobs_count() {
	nproc 2>/dev/null || echo 2
}
