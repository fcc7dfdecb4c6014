#!/bin/sh
# SPDX-License-Identifier: MIT
# test_fresh: tests the first use on a fresh Debian: a minimal system with only make, git and
# certificates, where `make demo` must end with an HTML report, and the viewer must be served.
#
#   tools/test_fresh.sh [SUITE]
#
# Uses the committed state of the tree and Debian's archive, and takes some minutes. It runs as root
# (else through sudo), because it makes a root file system in a temporary folder and runs in it.
set -eu

suite=${1:-bookworm}
if [ "$(id -u)" -ne 0 ]; then
    exec sudo "$0" "$@"
fi
top=$(realpath "$(dirname "$0")/..")
. "$top/tools/fresh_root.sh"
root=$work/root

mmdebstrap --quiet --variant=apt --include=make,git,ca-certificates "$suite" "$root"
mkdir -p "$root/cairn"
git -c safe.directory="$top" -C "$top" archive HEAD | tar -x -C "$root/cairn"

within "$root" make -C /cairn demo >"$work/demo.txt" 2>&1 || {
    cat "$work/demo.txt"
    exit 1
}
expect "$work/demo.txt" 'session_cache::visit' 'build/demo/shop\.html' 'build/bin/cairn analyze build/demo/shop\.cairn'
expect "$root/cairn/build/demo/shop.html" 'data-answer="summary\?' '<div id="app">'
! [ -e "$root/usr/bin/node" ] || fail "node was installed, which no build needs"
expect_page "$root" /cairn/build/bin/cairn /cairn/build/demo/shop.cairn
echo "test_fresh: make demo, export --html and analyze work on a fresh $suite"
