#!/bin/bash
# Description: what participants run of the wire allocates nothing, uses no streams and no environment, does
# not end the process, and needs nothing newer than glibc 2.34 has.
library=$STASIS_BUILD_DIR/src/wire/libstasis-wire.a
command -v nm >/dev/null || { echo "needs nm"; exit 77; }
[ -f "$library" ] || { echo "no $library"; exit 1; }

# control_take.c is the coordinator's: it walks a directory.
undefined=$(nm -A -u "$library" 2>/dev/null | grep -v 'control_take\.c\.o:' | awk '{ print $NF }' | sort -u)
echo "$undefined" | grep -qx recvmsg || { echo "nm shows no use of recvmsg: the list is not what it should be"; exit 1; }
wrong=$(echo "$undefined" | grep -xE \
	'(m|c|re)alloc|free|strdup|opendir|readdir|f(open|puts|write|printf|close)|printf|puts|(secure_)?getenv|_?exit|abort|__isoc23_.*|json_.*|XXH.*|stasis_(fault|digest|log|file|tree)_.*')
[ -z "$wrong" ] || { echo "used, and must not be: $wrong"; exit 1; }
