#!/bin/sh
# SPDX-License-Identifier: MIT
# unpack_debian: unpacks AArch64 packages of Debian, and what they depend on, into a folder.
#
#   tools/aarch64/unpack_debian.sh FOLDER PACKAGE...
#
# How: mmdebstrap lets apt download them from Debian's archive, of this Debian's release or of
# DEBIAN_RELEASE, and unpacks them. No AArch64 program runs. A folder with the same packages is kept.
set -eu

folder=$1
shift
release=${DEBIAN_RELEASE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
packages=$(echo "$@" | tr ' ' ,)

[ "$(cat "$folder/packages" 2>/dev/null)" != "$packages" ] || exit 0
rm -rf "$folder" "$folder.new"
mmdebstrap --quiet --variant=extract --architectures=arm64 --include="$packages" "$release" "$folder.new"
# Links to absolute paths would lead out of it.
find "$folder.new/usr" "$folder.new/lib" -type l -lname '/*' | while read -r link; do
    ln -snfr "$folder.new$(readlink "$link")" "$link"
done
echo "$packages" >"$folder.new/packages"
mv "$folder.new" "$folder"
