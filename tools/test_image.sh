#!/bin/sh
# SPDX-License-Identifier: MIT
# test_image: tests contrib/container/Dockerfile without docker: each stage is a minimal Debian 12 in
# a folder, and each instruction is carried out there. cairn must then record in the image.
#
# Uses the committed state of the tree and Debian's archive, and takes some minutes. It runs as root
# (else through sudo). An instruction of a kind that it does not know is a failure.
set -eu

if [ "$(id -u)" -ne 0 ]; then
    exec sudo "$0" "$@"
fi
top=$(realpath "$(dirname "$0")/..")
. "$top/tools/fresh_root.sh"
dockerfile=$top/contrib/container/Dockerfile
root= # of the present stage
place=/
entry=

# begin_stage IMAGE [AS NAME]
begin_stage() {
    case $1 in
    debian:12 | debian:12-slim) ;;
    *) fail "no stage can begin with $1" ;;
    esac
    root=$work/${3:-last}
    place=/
    mmdebstrap --quiet --variant=apt bookworm "$root"
}

# copy SOURCE... TARGET, as COPY has them: the tree, or files of another stage
copy() {
    case "$1 $2" in
    ". .")
        git -c safe.directory="$top" -C "$top" archive HEAD | tar -x -C "$root$place"
        ;;
    --from=*)
        set +f # the source is a pattern
        # shellcheck disable=SC2086
        cp "$work/${1#--from=}"$2 "$root$3"
        set -f
        ;;
    *) fail "unknown: COPY $*" ;;
    esac
}

carry_out() {
    word=$1
    shift
    echo "test_image: $word $*"
    case $word in
    ARG) eval "$1" ;;
    FROM) eval "begin_stage $*" ;;
    WORKDIR)
        place=$1
        mkdir -p "$root$place"
        ;;
    COPY) copy "$@" ;;
    RUN)
        within "$root" sh -c "cd $place && $*" >"$work/run.txt" 2>&1 || {
            tail -n 40 "$work/run.txt"
            fail "RUN $* failed"
        }
        ;;
    ENTRYPOINT) entry=$(echo "$*" | sed 's/[]["]//g; s/,/ /g') ;;
    *) fail "unknown: $word" ;;
    esac
}

set -f # the instructions have patterns for the files of the stages
sed -e ':join' -e '/\\$/{N;s/\\\n *//;b join' -e '}' -e '/^#/d;/^ *$/d' "$dockerfile" >"$work/instructions"
while read -r instruction <&3; do
    # shellcheck disable=SC2086
    carry_out $instruction
done 3<"$work/instructions"
set +f

within "$root" sh -c "$entry record -q -o /tmp/ls.cairn ls / >/dev/null && $entry report /tmp/ls.cairn" >"$work/report.txt"
expect "$work/report.txt" 'peak heap' 'allocations'
within "$root" sh -c "sleep 1000 & $entry record --name sleep --duration 1s -q -o /tmp/sleep.cairn && $entry verify /tmp/sleep.cairn"
! [ -e "$root/usr/bin/gcc" ] || fail "the image has a compiler"
echo "test_image: every instruction of the Dockerfile works, and the image records"
