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
work=$(mktemp -d)
root=$work/root
# Nothing stays mounted: the commands in the root have their own mounts (see within).
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 1' HUP INT TERM

within() {
    timeout 1200 unshare --mount --pid --fork --kill-child sh -c '
        root=$1; shift
        mount -t proc proc "$root/proc"
        mount -t tmpfs tmpfs "$root/dev/shm"
        exec chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"' \
        within "$root" "$@"
}

# expect FILE PATTERN...: each pattern must occur in the file.
expect() {
    file=$1
    shift
    for pattern in "$@"; do
        grep -qE -- "$pattern" "$file" || {
            cat "$file"
            echo "test_fresh: no '$pattern' in $file" >&2
            exit 1
        }
    done
}

mmdebstrap --quiet --variant=apt --include=make,git,ca-certificates "$suite" "$root"
mkdir -p "$root/cairn" "$root/dev/shm"
git -c safe.directory="$top" -C "$top" archive HEAD | tar -x -C "$root/cairn"

within make -C /cairn demo >"$work/demo.txt" 2>&1 || {
    cat "$work/demo.txt"
    exit 1
}
expect "$work/demo.txt" 'session_cache::visit' 'build/demo/shop\.html' 'build/bin/cairn analyze build/demo/shop\.cairn'
expect "$root/cairn/build/demo/shop.html" 'data-answer="summary\?' '<div id="app">'
! [ -e "$root/usr/bin/node" ] || {
    echo "test_fresh: node was installed, which no build needs" >&2
    exit 1
}

# The page is requested with tools of the system: bash and its /dev/tcp.
within bash -c '
    set -eu
    cd /cairn
    coproc server { exec build/bin/cairn analyze --no-browser build/demo/shop.cairn; }
    read -r -t 300 url <&"${server[0]}"
    address=${url#http://}
    host=${address%%/*}
    exec {page}<>"/dev/tcp/${host%:*}/${host#*:}"
    printf "GET /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" "${address#*/}" "$host" >&"$page"
    cat <&"$page"
    kill -TERM "$server_PID"
    wait "$server_PID"' >"$work/page.txt" 2>"$work/analyze.txt" || {
    cat "$work/page.txt" "$work/analyze.txt"
    exit 1
}
expect "$work/page.txt" '^HTTP/1.1 200' 'assets/viewer\.js'
echo "test_fresh: make demo, export --html and analyze work on a fresh $suite"
