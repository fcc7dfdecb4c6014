#!/bin/sh
# SPDX-License-Identifier: MIT
# make_sysroot: unpacks Debian's AArch64 packages that cairn is built against into a folder.
#
#   tools/aarch64/make_sysroot.sh FOLDER [PACKAGE...]
#
# How: mmdebstrap lets apt download them from Debian's archive, of this Debian's release, and unpacks
# them. No AArch64 program runs. A folder with the same packages is kept. The packages of the build are
# those of tools/packages.sh, but for compilers, tools, and Zydis, which decodes x86-64 only.
set -eu

sysroot=$1
shift
top=$(realpath "$(dirname "$0")/../..")
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
packages="libc6-dev $("$top/tools/packages.sh" list build | grep -- '-dev$' | grep -v zydis | tr '\n' ' ') $*"

[ "$(cat "$sysroot/packages" 2>/dev/null)" != "$(echo $packages)" ] || exit 0
rm -rf "$sysroot" "$sysroot.new"
mmdebstrap --quiet --variant=extract --architectures=arm64 --include="$(echo $packages | tr ' ' ,)" \
    "$release" "$sysroot.new"
# Links to absolute paths would lead out of it.
find "$sysroot.new/usr" "$sysroot.new/lib" -type l -lname '/*' | while read -r link; do
    ln -snfr "$sysroot.new$(readlink "$link")" "$link"
done
echo $packages >"$sysroot.new/packages"
mv "$sysroot.new" "$sysroot"
