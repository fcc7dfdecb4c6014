# SPDX-License-Identifier: MIT
# fresh_root: what the tests on minimal Debian systems share; sourced by test_fresh.sh and
# test_tarball.sh, which run as root.
#
# A root file system is a folder that mmdebstrap makes from Debian's archive. Nothing stays mounted:
# the commands in it have their own mounts and process namespace. Sets $work, a temporary folder that
# is removed at the end.
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT
trap 'exit 1' HUP INT TERM

# fail TEXT
fail() {
    echo "$(basename "$0" .sh): $1" >&2
    exit 1
}

# within ROOT COMMAND...
within() {
    timeout 1200 unshare --mount --pid --fork --kill-child sh -c '
        root=$1; shift
        mkdir -p "$root/dev/shm"
        mount -t proc proc "$root/proc"
        mount -t tmpfs tmpfs "$root/dev/shm"
        exec chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"' \
        within "$@"
}

# expect FILE PATTERN...: each pattern must occur in the file.
expect() {
    file=$1
    shift
    for pattern in "$@"; do
        grep -qE -- "$pattern" "$file" || {
            cat "$file"
            fail "no '$pattern' in $file"
        }
    done
}

# expect_page ROOT CAIRN RECORDING: `cairn analyze` must serve the viewer. The page is requested with
# tools of the system: bash and its /dev/tcp.
expect_page() {
    within "$1" bash -c '
        set -eu
        coproc server { exec "$0" analyze --no-browser "$1"; }
        read -r -t 300 url <&"${server[0]}"
        address=${url#http://}
        host=${address%%/*}
        exec {page}<>"/dev/tcp/${host%:*}/${host#*:}"
        printf "GET /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" "${address#*/}" "$host" >&"$page"
        cat <&"$page"
        kill -TERM "$server_PID"
        wait "$server_PID"' "$2" "$3" >"$work/page.txt" 2>"$work/analyze.txt" || {
        cat "$work/page.txt" "$work/analyze.txt"
        fail "analyze did not serve $3"
    }
    expect "$work/page.txt" '^HTTP/1.1 200' 'assets/viewer\.js'
}
