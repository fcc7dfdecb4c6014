#!/bin/sh
# SPDX-License-Identifier: MIT
# test_tarball: tests the archive that build_tarball.sh made, on minimal Debian systems of their own.
#
#   tools/test_tarball.sh BUILD [SUITE...]        by default Debian 11, 12 and 13
#
# Records, reports, attaches, exports and serves in each, with programs that were built for Debian 11
# and whose allocations are known. It runs as root (else through sudo), because it makes root file
# systems in a temporary folder and runs in them.
set -eu

if [ "$(id -u)" -ne 0 ]; then
    exec sudo "$0" "$@"
fi
top=$(realpath "$(dirname "$0")/..")
build=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- bullseye bookworm trixie
. "$top/tools/fresh_root.sh"
tarball=$(ls "$build"/cairn-*-linux-x86_64.tar.gz)
cairn=/opt/$(basename "$tarball" .tar.gz)/bin/cairn

# compile SOURCE OPTION...: into $work/programs, against Debian 11.
compile() {
    source=$1
    shift
    mkdir -p "$work/programs"
    gcc -g -O0 --sysroot="$build/sysroot" -L"$build/sysroot/usr/lib/x86_64-linux-gnu" \
        -L"$build/sysroot/lib/x86_64-linux-gnu" -B"$build/sysroot/usr/lib/x86_64-linux-gnu" \
        -I"$top/include" -o "$work/programs/$(basename "$source" .c)" "$top/tests/programs/$source" "$@"
}

# report ROOT NAME PATTERN...: the JSON report of a recording must have the figures.
report() {
    within "$1" "$cairn" report --json "/recordings/$2.cairn" >"$work/$2.json"
    name=$2
    shift 2
    expect "$work/$name.json" '"lost_events":0' "$@"
}

# A program executes commands from a pipe before, while and after cairn is attached to it. It writes
# "done" for each; the recorder answers once it has patched the program. Only the 200 allocations and
# 50 frees in between count.
attach='
    set -eu
    coproc program { exec /programs/obedient; }
    obey() { echo "$1" >&"${program[1]}"; read -r -t 300 answer <&"${program[0]}"; [ "$answer" = done ]; }
    obey "a 10 1000"
    "$0" record -q -o /recordings/attached.cairn -p "$program_PID" &
    recorder=$!
    until "$0" ctl /recordings/attached.cairn status >/dev/null 2>&1; do kill -0 "$recorder"; done
    obey "a 200 64"
    obey "f 50"
    "$0" ctl /recordings/attached.cairn detach >/dev/null
    wait "$recorder"
    obey "a 10 1000"
    kill "$program_PID"'

test_suite() {
    root=$work/$1
    mmdebstrap --quiet --variant=essential "$1" "$root"
    mkdir -p "$root/recordings"
    tar -x -z -f "$tarball" -C "$root/opt"
    cp -r "$work/programs" "$root/programs"

    within "$root" "$cairn" version --verbose >"$work/version.txt"
    expect "$work/version.txt" "^libc +glibc $2" "^libcurl +libcurl/" "^libdebuginfod +installed" "^libmicrohttpd +[0-9]"
    within "$root" "$cairn" record -q -o /recordings/one.cairn /programs/malloc_family
    report "$root" one '"allocations":4,"allocated_bytes":1000,"frees":3' '"function":"main","file":"[^"]*malloc_family.c"'
    within "$root" "$cairn" record -q -o /recordings/threads.cairn /programs/threads
    report "$root" threads '"allocations":8012,"allocated_bytes":[0-9]+,"frees":[0-9]+' '"threads":5'
    within "$root" bash -c "$attach" "$cairn" >"$work/attach.txt" 2>&1 || {
        cat "$work/attach.txt"
        fail "attaching failed on $1"
    }
    report "$root" attached '"allocations":200,"allocated_bytes":12800'
    within "$root" "$cairn" record -q -o /recordings/shell.cairn -- bash -c 'ls -R /etc | sort | wc -l' >/dev/null
    report "$root" shell '"processes":4'
    within "$root" "$cairn" report /recordings/shell.cairn >"$work/shell.txt"
    expect "$work/shell.txt" 'peak heap' 'allocations'
    within "$root" "$cairn" export --html /recordings/one.cairn -o /recordings/one.html
    expect "$root/recordings/one.html" 'data-answer="summary\?' '<div id="app">'
    within "$root" "$cairn" export --to sqlite /recordings/one.cairn -o /recordings/one.db
    expect_page "$root" "$cairn" /recordings/one.cairn
    rm -rf --one-file-system "$root"
    echo "test_tarball: records, attaches, reports, exports and serves on a minimal $1"
}

compile counts/malloc_family.c
compile counts/threads.c -pthread
compile lifecycle/obedient.c
for suite in "$@"; do
    case $suite in
    bullseye) test_suite "$suite" 2.31 ;;
    bookworm) test_suite "$suite" 2.36 ;;
    trixie) test_suite "$suite" 2.41 ;;
    *) fail "the glibc of $suite is not known here" ;;
    esac
done
