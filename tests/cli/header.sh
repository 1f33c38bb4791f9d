#!/bin/bash
# Description: stasis.h compiles alone, as C and as C++, without a warning.
. "$(dirname "$0")/lib.sh"

compiled=0
for language in c:cc c++:c++; do
	compiler=${language#*:}
	command -v "$compiler" >/dev/null || continue
	run_limited "$compiler" -x "${language%%:*}" -Wall -Wextra -Werror -pedantic -fsyntax-only \
		"$STASIS_SOURCE_DIR/include/stasis.h"
	expect_status 0
	compiled=$((compiled + 1))
done
[ $compiled -gt 0 ] || {
	echo "needs a compiler"
	exit 77
}
