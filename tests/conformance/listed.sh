#!/bin/sh
# Each behaviour stands three times under the same name: in its program's table, in meson.build, from which the
# list of tests is made, and in docs/conformance.md. With --write the tables of the document are made anew.
set -eu
build=$STASIS_BUILD_DIR
page=$STASIS_SOURCE_DIR/docs/conformance.md
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

topics() {
	sed -n 's/^conformance \([a-z_]*\)\..*/\1/p' "$build/tests/tests.list" | uniq
}

tables() {
	for topic in $(topics); do
		printf '\n### %s\n\n| behaviour | states | source |\n| --- | --- | --- |\n' "$topic"
		"$build/tests/conformance/$topic" --list |
			awk -F '\t' '{ printf "| %s | %s | %s |\n", $1, $3, $2 }'
	done
}

sed -n 's/^conformance \([^ ]*\) .*/\1/p' "$build/tests/tests.list" | sort >"$scratch/listed"
for topic in $(topics); do
	"$build/tests/conformance/$topic" --list | sed "s/^\([^\t]*\)\t.*/$topic.\1/"
done | sort >"$scratch/there"
diff "$scratch/there" "$scratch/listed" || {
	echo "tests/conformance/meson.build (>) and the programs' tables (<) name different behaviours"
	exit 1
}

mark='<!-- tables: tests/conformance/listed.sh --write -->'
awk -v mark="$mark" '{ print } $0 == mark { exit }' "$page" >"$scratch/page"
tables >>"$scratch/page"
if [ "${1:-}" = --write ]; then
	cat "$scratch/page" >"$page"
	exit 0
fi
diff "$page" "$scratch/page" || {
	echo "the tables of docs/conformance.md are not those of the programs; tests/conformance/listed.sh --write"
	exit 1
}
