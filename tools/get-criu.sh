#!/bin/bash
# Unpacks a current CRIU (Debian 13's packages) into .deps/criu, without installing anything: the program is
# started through the loader and the libraries that came with it, so that it runs on Debian 12 too.
#     .deps/criu/bin/criu      start this
#     .deps/criu/root/         the unpacked packages, rpc.proto among them
# The packages come from the Debian mirror in apt's sources, or from STASIS_DEBIAN_MIRROR; apt checks their
# signatures. Root is not needed.
. "$(dirname "$0")/common.sh"

SUITE=trixie
TARGET="$DEPS/criu"
PACKAGES=(criu libcriu-dev)
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# The first Debian mirror that apt is set up with; security and third-party archives are not one.
mirror_find() {
	if [ -n "${STASIS_DEBIAN_MIRROR:-}" ]; then
		echo "$STASIS_DEBIAN_MIRROR"
		return
	fi
	# shellcheck disable=SC2016  # apt fills these in, not the shell
	apt-get indextargets --format '$(SITE) $(ORIGIN) $(LABEL)' 2>/dev/null |
		awk '$2 == "Debian" && $3 == "Debian" { print $1; exit }'
}

skip() {
	note "criu: skipped: $*"
	rm -rf "$work"
	exit 0
}

work=$(mktemp -d "${TMPDIR:-/tmp}/stasis-criu.XXXXXX")
trap 'rm -rf "$work"' EXIT

[ "$(uname -m)" = x86_64 ] || skip "only x86-64 has been tried"
for tool in apt-get dpkg-deb; do
	have "$tool" || skip "$tool is not here; install CRIU 4 with your own package manager"
done
mirror=$(mirror_find)
[ -n "$mirror" ] || skip "no Debian mirror in apt's sources; name one with STASIS_DEBIAN_MIRROR=URL"
[ -f "$KEYRING" ] || skip "no $KEYRING; install debian-archive-keyring"

# An apt of its own: other sources, other lists, and a machine on which nothing is installed yet.
mkdir -p "$work"/{state/lists/partial,cache/archives/partial,etc}
: >"$work/state/status"
echo "deb [signed-by=$KEYRING] $mirror $SUITE main" >"$work/etc/sources.list"
APT=(-q -o "Dir::State=$work/state" -o "Dir::State::status=$work/state/status" -o "Dir::Cache=$work/cache"
	-o "Dir::Etc::sourcelist=$work/etc/sources.list" -o Dir::Etc::sourceparts=/dev/null
	-o Dir::Etc::preferencesparts=/dev/null -o "APT::Architecture=amd64" -o "APT::Architectures=amd64"
	-o APT::Sandbox::User= -o Acquire::Languages=none -o Debug::NoLocking=1 -o Acquire::Retries=1)

note "criu: fetching the list of packages of Debian $SUITE"
apt-get "${APT[@]}" update >"$work/log" 2>&1 || skip "the package index cannot be reached: $(grep -m1 '^[EW]:' "$work/log")"
note "criu: fetching ${PACKAGES[*]} and their libraries"
apt-get "${APT[@]}" -y --no-install-recommends --download-only install "${PACKAGES[@]}" >"$work/log" 2>&1 ||
	skip "the packages cannot be fetched: $(grep -m1 '^E:' "$work/log")"

rm -rf "$TARGET.part"
mkdir -p "$TARGET.part/root" "$TARGET.part/bin"
for package in "$work"/cache/archives/*.deb; do
	dpkg-deb -x "$package" "$TARGET.part/root"
done

loader=$(cd "$TARGET.part/root" && find . -name 'ld-linux-x86-64.so.2' | head -1)
program=$(cd "$TARGET.part/root" && find . -path '*sbin/criu' | head -1)
if [ -z "$loader" ] || [ -z "$program" ]; then
	die "the packages hold no loader or no program"
fi
cat >"$TARGET.part/bin/criu" <<SCRIPT
#!/bin/sh
# Made by tools/get-criu.sh: CRIU with the loader and the libraries that it was built for.
root=\$(cd "\$(dirname "\$0")/../root" && pwd) || exit 1
exec "\$root/$loader" --library-path "\$root/usr/lib/x86_64-linux-gnu:\$root/lib/x86_64-linux-gnu" \\
	"\$root/$program" "\$@"
SCRIPT
chmod +x "$TARGET.part/bin/criu"
version=$("$TARGET.part/bin/criu" --version 2>&1) || die "the unpacked program does not start: $version"
rm -rf "$TARGET"
mv "$TARGET.part" "$TARGET"
note "criu: $(echo "$version" | head -1) in $TARGET/bin/criu"
