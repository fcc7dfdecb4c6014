#!/bin/sh
# SPDX-License-Identifier: MIT
# test_deb: tests the package that `make deb` made: lintian finds nothing, and on a minimal Debian 12
# it installs, works, and leaves nothing behind when it is removed.
#
#   tools/test_deb.sh BUILD
#
# It runs as root (else through sudo), because it makes a root file system in a temporary folder and
# runs in it. There systemd runs the unit of the package, too: it comes back after each end that is too early,
# not after a wrong command line, and `systemctl stop` leaves the recorded program as it was.
set -eu

if [ "$(id -u)" -ne 0 ]; then
    exec sudo "$0" "$@"
fi
top=$(realpath "$(dirname "$0")/..")
package=$(ls "$(realpath "$1")"/cairn_*.deb)
. "$top/tools/fresh_root.sh"
root=$work/root

# boot: start systemd as the first process of a system of its own; sets $first, its process id.
boot() {
    unshare --mount --pid --uts --ipc --fork --kill-child sh -c '
        mount --make-rprivate / && mount --bind "$1" "$1" && cd "$1" && mkdir -p old
        mount -t proc proc proc && mount -t sysfs sysfs sys && mount -t tmpfs tmpfs run && mount -t tmpfs tmpfs dev
        for device in null zero random urandom; do : >"dev/$device" && mount --bind "/dev/$device" "dev/$device"; done
        mkdir dev/shm && mount -t tmpfs tmpfs dev/shm
        mount -t cgroup2 cgroup2 sys/fs/cgroup || mount -t tmpfs tmpfs sys/fs/cgroup
        pivot_root . old && umount -l /old
        exec env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=basic.target' \
        boot "$root" >"$work/boot.txt" 2>&1 &
    booted=$!
    await 'it has started' sh -c "pgrep -P $booted >'$work/first'"
    first=$(cat "$work/first")
    await 'systemd answers' inside systemctl is-active -q basic.target
}

# inside COMMAND...: in that system.
inside() {
    nsenter -t "$first" -m -p -r -w env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# await TEXT COMMAND...: until the command succeeds.
await() {
    text=$1
    shift
    tries=600
    until "$@" >"$work/await.txt" 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || {
            cat "$work/await.txt" "$work/boot.txt"
            fail "waited in vain until $text"
        }
        sleep 0.2
    done
}

# is UNIT PROPERTY VALUE
is() {
    [ "$(inside systemctl show -p "$2" --value "$1")" = "$3" ]
}

# write_unit NAME LINE...
write_unit() {
    mkdir -p "$(dirname "$root/etc/systemd/system/$1")"
    printf '%s\n' '[Service]' >"$root/etc/systemd/system/$1"
    name=$1
    shift
    printf '%s\n' "$@" >>"$root/etc/systemd/system/$name"
}

# What production.md says of cairn-attach@.service. The program is perl, which allocates each 20 ms.
test_service() {
    unit=cairn-attach@perl
    write_unit server.service \
        'ExecStart=/usr/bin/perl -e "while(1){push @a, q(x) x 5000; select undef,undef,undef,0.02}"'
    write_unit "$unit.service.d/test.conf" 'RestartSec=100ms' 'StartLimitIntervalSec=0'
    write_unit cairn-attach@wrong.service.d/test.conf 'ExecStart=' 'ExecStart=/usr/bin/cairn record --no-such-option'
    boot
    inside systemctl start server "$unit"
    await 'it records' test -e "$root/var/lib/cairn/perl.cairn"
    inside systemctl reload "$unit"
    await 'a state is kept' sh -c "ls '$root'/var/lib/cairn/perl.2*.cairn"
    restarts=0
    for signal in HUP TERM KILL; do
        await 'it runs' is "$unit" SubState running
        inside systemctl kill -s "$signal" --kill-who=main "$unit"
        restarts=$((restarts + 1))
        await "it comes back after SIG$signal" is "$unit" NRestarts "$restarts"
    done
    inside systemctl start cairn-attach@wrong
    await 'a wrong command line fails' is cairn-attach@wrong ActiveState failed
    is cairn-attach@wrong NRestarts 0 || fail 'a wrong command line is tried again'
    await 'it records again' inside sh -c '/usr/bin/cairn ctl /var/lib/cairn/perl.cairn status'
    inside systemctl stop "$unit"
    is "$unit" Result success || fail 'systemctl stop is no success'
    is server ActiveState active || fail 'the program ended with the recorder'
    inside cairn report /var/lib/cairn/perl.cairn >"$work/service.txt"
    expect "$work/service.txt" '/usr/bin/perl' 'call stacks'
    kill -KILL "$first"
    wait "$booted" || true
    rm -rf "$root"/etc/systemd/system/*cairn* "$root"/etc/systemd/system/server.service "$root/old"
}

lintian --allow-root --tag-display-limit 0 --fail-on error,warning "$package"
mmdebstrap --quiet --variant=apt --include=man-db,systemd bookworm "$root"
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
test_service
within "$root" apt-get -qq -y remove --autoremove cairn >"$work/remove.txt" 2>&1
! within "$root" dpkg-query -W cairn >"$work/state.txt" 2>&1 || fail "removed, it is still known: $(cat "$work/state.txt")"
within "$root" sh -c 'cd / && find bin etc lib opt usr -xdev | sort' >"$work/after.txt"
! diff "$work/before.txt" "$work/after.txt" | grep cairn || fail "removing it leaves files behind"
echo "test_deb: lintian finds nothing; it installs, works and goes without a trace"
