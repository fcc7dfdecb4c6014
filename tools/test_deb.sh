#!/bin/sh
# SPDX-License-Identifier: MIT
# test_deb: tests the package that `make deb` made: lintian finds nothing, and on a minimal Debian 12
# it installs, works, and leaves nothing behind when it is removed.
#
#   tools/test_deb.sh BUILD
#
# It runs as root (else through sudo), because it makes a root file system in a temporary folder and
# runs in it.
set -eu

if [ "$(id -u)" -ne 0 ]; then
    exec sudo "$0" "$@"
fi
top=$(realpath "$(dirname "$0")/..")
package=$(ls "$(realpath "$1")"/cairn_*.deb)
. "$top/tools/fresh_root.sh"
root=$work/root

lintian --allow-root --tag-display-limit 0 --fail-on error,warning "$package"
mmdebstrap --quiet --variant=apt --include=man-db bookworm "$root"
rm -f "$root/etc/dpkg/dpkg.cfg.d/docker" "$root/etc/dpkg/dpkg.cfg.d/excludes"
cp "$package" "$root/tmp/cairn.deb"
within "$root" sh -c 'cd / && find bin etc lib opt usr -xdev | sort' >"$work/before.txt"
within "$root" apt-get -qq update
within "$root" apt-get -qq -y --no-install-recommends install /tmp/cairn.deb >"$work/install.txt" 2>&1 || {
    cat "$work/install.txt"
    fail "it does not install"
}
within "$root" sh -c 'cairn record -q -o /tmp/ls.cairn ls / >/dev/null && cairn report /tmp/ls.cairn' >"$work/report.txt"
expect "$work/report.txt" 'peak heap' 'allocations'
within "$root" sh -c 'man cairn | cat; man cairn-top | cat; man cairn.h | cat' >"$work/pages.txt" 2>&1
expect "$work/pages.txt" 'heap profiler' 'watch the heap of a running program' 'CAIRN_ASSERT'
within "$root" bash -c '. /usr/share/bash-completion/completions/cairn && complete -p cairn' >"$work/complete.txt"
expect "$work/complete.txt" 'cairn'
expect_page "$root" /usr/bin/cairn /tmp/ls.cairn
within "$root" apt-get -qq -y remove --autoremove cairn >"$work/remove.txt" 2>&1
! within "$root" dpkg-query -W cairn >"$work/state.txt" 2>&1 || fail "removed, it is still known: $(cat "$work/state.txt")"
within "$root" sh -c 'cd / && find bin etc lib opt usr -xdev | sort' >"$work/after.txt"
! diff "$work/before.txt" "$work/after.txt" | grep cairn || fail "removing it leaves files behind"
echo "test_deb: lintian finds nothing; it installs, works and goes without a trace"
