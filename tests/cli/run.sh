#!/bin/bash
# Description: run becomes the command with the interposer in front of LD_PRELOAD and changes nothing else; what the
# interposer cannot go into is refused with the reason, before anything is started.
. "$(dirname "$0")/lib.sh"

interposer=$(realpath "$STASIS_BUILD_DIR/src/interpose/libstasis-interpose.so")
if [ "${STASIS_TEST_SANITIZER:-}" = address ]; then
	# a sanitized program wants its runtime to come first
	export ASAN_OPTIONS="${ASAN_OPTIONS:-}:verify_asan_link_order=0"
fi

refused() { # TEXT COMMAND...
	local text=$1
	shift
	run_limited "$stasis" run "$@"
	expect_status 1
	[ ! -s out ] || fail "expected nothing on standard output"
	expect_error "$text"
	expect_missing started
}

# arguments byte for byte, and the command's own exit status
run_limited "$stasis" run -- /bin/sh -c 'printf "<%s>" "$@"; exit 42' name "" " a  b " --json -- '*' $'\n'
expect_status 42
[ "$(cat out)" = "$(printf '<%s>' "" " a  b " --json -- '*' $'\n')" ] || fail "expected the arguments as they were"
expect_no_error
run_limited "$stasis" run sh -c 'exit 3' --help
expect_status 3

# the environment, but for LD_PRELOAD, as it was and in its order
env -i B=2 "A= x " LD_PRELOAD= C= PATH="$PATH" STASIS_LIBCUDA="$STASIS_LIBCUDA" env -0 >before
env -i B=2 "A= x " LD_PRELOAD= C= PATH="$PATH" STASIS_LIBCUDA="$STASIS_LIBCUDA" \
	"$stasis" run -- env -0 >after 2>err || fail "expected the environment"
tr '\0' '\n' <before | sed "s|^LD_PRELOAD=\$|LD_PRELOAD=$interposer|" >wanted
tr '\0' '\n' <after | diff wanted - >out || fail "expected the environment as it was"
env -u LD_PRELOAD "$stasis" run -- env >after || fail "expected the environment"
[ "$(grep -c "^LD_PRELOAD=$interposer\$" after)" = 1 ] || fail "expected the interposer in LD_PRELOAD"

# what was preloaded stays, behind ours, byte for byte; ours is not put in twice
other="$STASIS_BUILD_DIR/sim/libcuda.so.1"
LD_PRELOAD="$other::$other " "$stasis" run -- env >after 2>err || fail "expected the environment"
grep -qxF "LD_PRELOAD=$interposer:$other::$other " after || fail "expected what was preloaded before"
"$stasis" run -- "$stasis" run -- env >after || fail "expected the environment"
grep -qxF "LD_PRELOAD=$interposer" after || fail "expected the interposer once"

# it is really in there, and a script's interpreter is followed
printf '#!/bin/sh\ngrep -c "%s" /proc/$$/maps\n' "$interposer" >script
chmod +x script
run_limited "$stasis" run ./script
expect_status 0
[ "$(cat out)" -gt 0 ] || fail "expected the interposer among the mappings"

# what the kernel cannot execute is the shell's, as with execvp: no first line, none that names anything, one that is
# longer than the kernel reads, an interpreter that has none either, nothing at all
plain() { # NAME FIRST-LINE
	printf '%s\n%s\n' "$2" "printf '%s:' \"\$@\"; grep -c '$interposer' /proc/\$\$/maps" >"$1"
	chmod +x "$1"
}
plain plain ''
plain nameless '#! 	'
plain long "#!/$(printf '%0300d' 0)"
plain chained '#!./plain'
mkdir folder && cp plain folder/found
for script in ./plain ./nameless ./long ./chained found; do
	PATH="$PWD/folder:$PATH" run_limited "$stasis" run $script "a  b" c
	expect_status 0
	expect_no_error
	grep -qE '^a  b:c:[1-9]' out || fail "expected arguments and interposer in the shell of $script"
done
touch empty && chmod +x empty
run_limited "$stasis" run ./empty
expect_status 0
expect_no_error

# signals as we were started with
run_limited "$stasis" run -- sh -c 'sed -n "s/^SigIgn:\t*//p" /proc/$$/status'
[ $((0x$(cat out) & 0x1000)) = 0 ] || fail "expected SIGPIPE as it was"
(trap '' PIPE && "$stasis" run -- sh -c 'sed -n "s/^SigIgn:\t*//p" /proc/$$/status' >out)
[ $((0x$(cat out) & 0x1000)) != 0 ] || fail "expected SIGPIPE ignored as it was"

# wrong usage
run_limited "$stasis" run
expect_status 2
expect_error "COMMAND is missing"
run_limited "$stasis" run --
expect_status 2
run_limited "$stasis" run --frobnicate sh
expect_status 2
expect_error "unknown option '--frobnicate'"

# commands that are not there
refused "no such program in PATH" no-such-command
refused "No such file" ./no-such-command
refused "Permission denied" ./out
run_limited env PATH= "$stasis" run sh
expect_status 1
expect_error "no such program in PATH"
printf '#!./loop\n' >loop && chmod +x loop
refused "one in another" ./loop
printf '#!/no/such/interpreter\n' >lost && chmod +x lost
refused "/no/such/interpreter" ./lost

# programs that the interposer cannot go into, made from one that it can
copy() {
	cp "$STASIS_BUILD_DIR/src/workload/stasis-workload" "$1"
	chmod 755 "$1"
}
patch() { # FILE PYTHON: on the bytes `b`
	python3 -c '
import struct, sys
b = bytearray(open(sys.argv[1], "rb").read())
phoff = struct.unpack_from("<Q", b, 32)[0]
phnum = struct.unpack_from("<H", b, 56)[0]
interp = [phoff + 56 * i for i in range(phnum) if struct.unpack_from("<I", b, phoff + 56 * i)[0] == 3][0]
at, size = struct.unpack_from("<Q", b, interp + 8)[0], struct.unpack_from("<Q", b, interp + 32)[0]
exec(sys.argv[2])
open(sys.argv[1], "wb").write(b)' "$1" "$2"
}
copy static && patch static 'struct.pack_into("<I", b, interp, 0)'
refused "linked statically" ./static
copy musl && patch musl 'b[at:at + size] = b"/lib/ld-musl-x86_64.so.1".ljust(size, b"\0")'
refused "is not glibc's" ./musl
copy arm && patch arm 'struct.pack_into("<H", b, 18, 183)'
refused "not a 64-bit x86-64 program" ./arm
copy short && patch short 'del b[40:]'
refused "run './short': it is no whole ELF file" ./short
copy many && patch many 'struct.pack_into("<H", b, 56, 65535)'
refused "program headers are damaged" ./many

# a loader of an old glibc: the present one with the name of the version spoilt
cp "$(realpath /lib64/ld-linux-x86-64.so.2)" ld-linux-old
python3 -c '
b = open("ld-linux-old", "rb").read()
open("ld-linux-old", "wb").write(b.replace(b"GLIBC_2.34\0", b"GLIBC_2.xx\0"))'
copy old && patch old 'b[at:at + size] = b"./ld-linux-old".ljust(size, b"\0")'
refused "older than 2.34" ./old

if [ "$(id -u)" = 0 ]; then
	copy setuid && chown 65534 setuid && chmod 4755 setuid
	refused "setuid or setgid" ./setuid
	copy setgid && chown 0:65534 setgid && chmod 2755 setgid
	refused "setuid or setgid" ./setgid
fi
if command -v setcap >setcap.path && copy capable && setcap cap_net_raw+ep capable 2>setcap.err; then
	refused "file capabilities" ./capable
fi

# what may be executed and not read, itself or as an interpreter
copy secret && chmod 111 secret
printf '#!./secret\n' >by-secret && chmod 755 . by-secret
stranger=()
if [ "$(id -u)" = 0 ]; then
	# root reads everything
	stranger=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)
fi
if "${stranger[@]}" "$stasis" --version >version 2>&1; then
	for command in ./secret ./by-secret; do
		run_limited "${stranger[@]}" "$stasis" run $command
		expect_status 1
		expect_error "secret': it may be executed and not read"
		expect_error "make it readable"
	done
fi

# a folder where programs that share memory could not find each other
long=$PWD/$(printf '%040d' 0)
STASIS_RUNTIME_DIR=$long run_limited "$stasis" run -- touch started
expect_status 2
expect_error "leave room for"
expect_error "set STASIS_RUNTIME_DIR to a shorter one"
STASIS_RUNTIME_DIR=run run_limited "$stasis" run -- touch started
expect_status 2
expect_error "not absolute"
mkdir -m 755 open
STASIS_RUNTIME_DIR=$PWD/open refused "must be ours" touch started
STASIS_RUNTIME_DIR=$PWD/no/such refused "set STASIS_RUNTIME_DIR to one that can be made" touch started
expect_missing started

# the interposer itself
STASIS_INTERPOSE=$PWD/no-such refused "STASIS_INTERPOSE" sh
mkdir 'a folder' && cp "$interposer" 'a folder/'
STASIS_INTERPOSE="$PWD/a folder/libstasis-interpose.so" refused "blank or a colon" sh
cp "$interposer" own.so
STASIS_INTERPOSE=own.so run_limited "$stasis" run -- env
expect_status 0
expect_line "LD_PRELOAD=$PWD/own.so"

# --json is ours before the command
run_limited "$stasis" run --json -- no-such-command
expect_status 1
python3 -c 'import json; assert json.load(open("out"))["exit_status"] == 1' || fail "expected a JSON object"
exit 0
