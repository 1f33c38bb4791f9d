#!/bin/bash
# Description: inspect and verify know images of groups that share memory, and tell good ones from damaged ones.
. "$(dirname "$0")/lib.sh"
unset STASIS_LIBCUDA LD_LIBRARY_PATH

run_limited "$STASIS_BUILD_DIR/tests/cli/shared_image" good 40
expect_status 0

# More extents than a process can have devices.
run_limited "$stasis" verify good
expect_status 0
expect_line "extents=81"
expect_last_line "verify=passed"
run_limited "$stasis" inspect good
expect_status 0
expect_line "shared_file_bytes=$(stat -c %s good/shared.json)"
expect_line "process.39.participant=07270000000000000000000000000000"
expect_line "extent.79.name=gpu/P39-D0-shared"
expect_line "extent.79.store=shared"
expect_line "extent.80.name=gpu/P0-D0-host"

refused() { # TEXT; what is done to the image in `bad`
	for command in inspect verify; do
		run_limited "$stasis" $command bad
		expect_status 5
		expect_error "$1"
	done
	rm -rf bad
}

copy() {
	rm -rf bad
	cp -a good bad
}

copy
rm bad/shared.json
refused "open 'shared.json': No such file or directory"
copy
truncate -s -1 bad/shared.json
refused "'shared.json' has"
copy
truncate -s +1 bad/shared.json
refused "1 too many"
copy
: >bad/shared.json
refused "'shared.json' has 0 bytes"
copy
sed -i 's/"version": 1/"version": 2/' bad/shared.json
refused "'shared.json' does not have the digest that the manifest gives"
copy
rm bad/shared.json && mkfifo bad/shared.json
refused "open 'shared.json': it is not a regular file"
copy
mv bad/shared.json away && ln -s "$PWD/away" bad/shared.json
refused "open 'shared.json': it is a symbolic link"
copy
chmod g+w bad/shared.json
refused "'shared.json' can be written by others"
copy
sed -i 's/"shared": {/"shaped": {/' bad/manifest.json
refused "manifest.json"
copy
rm bad/gpu/P7-D0-shared.0
refused "gpu/P7-D0-shared.0"
copy
mv bad/gpu/P0-D0-host.0 bad/gpu/P0-D0-host.1
refused "gpu/P0-D0-host.0"

# Bytes of shared memory are verified as private ones are.
copy
printf '\377' | dd of=bad/gpu/P39-D0-shared.0 bs=1 seek=50 conv=notrunc status=none
run_limited "$stasis" verify bad
expect_status 5
expect_error "gpu/P39-D0-shared"
rm -rf bad
