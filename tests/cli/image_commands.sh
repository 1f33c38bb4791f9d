#!/bin/bash
# Description: inspect and verify tell good images from damaged ones, without a driver.
. "$(dirname "$0")/lib.sh"

roundtrip good --bytes 9M
expect_status 0
unset STASIS_LIBCUDA LD_LIBRARY_PATH

run_limited "$stasis" inspect good
expect_status 0
expect_line "store=custom"
expect_line "extent.0.name=gpu/P0-D0-custom"
run_limited "$stasis" verify good
expect_status 0
expect_last_line "verify=passed"

damaged() { # INSPECT-STATUS TEXT
	for command in inspect verify; do
		run_limited "$stasis" $command bad
		if [ $command = verify ]; then
			expect_status 5
			expect_error "$2"
		else
			expect_status "$1"
		fi
	done
	rm -rf bad
}

copy() {
	rm -rf bad
	cp -a good bad
}

# Of a file whose bytes are wrong inspect knows nothing; everything else it refuses too.
copy
printf '\377' | dd of=bad/gpu/P0-D0-custom.0 bs=1 seek=1234567 conv=notrunc status=none
damaged 0 "gpu/P0-D0-custom.0"
copy
truncate -s -1 bad/gpu/P0-D0-custom.0
damaged 5 "gpu/P0-D0-custom.0"
copy
truncate -s +1 bad/gpu/P0-D0-custom.0
damaged 5 "gpu/P0-D0-custom.0"
copy
rm bad/gpu/P0-D0-custom.0
damaged 5 "gpu/P0-D0-custom.0"
copy
rm bad/gpu/P0-D0-custom.0 && mkfifo bad/gpu/P0-D0-custom.0
damaged 5 "gpu/P0-D0-custom.0"
copy
mv bad/gpu/P0-D0-custom.0 away && ln -s "$PWD/away" bad/gpu/P0-D0-custom.0
damaged 5 "gpu/P0-D0-custom.0"
copy
rm bad/manifest.json
damaged 5 "manifest.json"
copy
: >bad/manifest.json
damaged 5 "manifest"
copy
sed -i 's/"store"/"stare"/' bad/manifest.json
damaged 5 "manifest"
copy
printf '{}' >bad/shared.json
damaged 5 "shared.json"
copy
chmod 777 bad
damaged 5 "bad"

copy
chmod 770 bad
run_limited "$stasis" verify bad
expect_status 5
run_limited "$stasis" verify --trust bad
expect_status 0
rm -rf bad

run_limited "$stasis" verify nowhere
expect_status 5
expect_error "nowhere"
run_limited "$stasis" gc nowhere
expect_status 1
expect_error "nowhere"
