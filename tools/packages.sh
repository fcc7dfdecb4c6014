#!/bin/sh
# SPDX-License-Identifier: MIT
# packages: the only list of the Debian packages that cairn needs, and their installation.
#
#   tools/packages.sh list build            prints a set
#   tools/packages.sh missing build test    prints the missing packages of these sets
#   tools/packages.sh install build demo    installs the missing packages, if any
#
# A set holds the additional packages of a use: build < demo, build < test. docs/dependencies.md has
# the reason for each library.
set -eu

build="gcc make cmake ninja-build pkg-config
    libdw-dev libelf-dev libiberty-dev libcurl4-openssl-dev libzstd-dev zlib1g-dev libxxhash-dev libjansson-dev
    libmicrohttpd-dev libncurses-dev libpcre2-dev libsqlite3-dev libzydis-dev liblzma-dev libbz2-dev"

demo="g++"

package="dpkg-dev file"

# Compilers and checkers, then independent oracles, then programs to record.
test="g++ rustc cargo rustfmt rust-clippy llvm clang clang-format clang-tidy libclang-rt-14-dev libcmocka-dev python3-pytest python3-pyte zsh fish
    dpkg-dev file groff-base
    gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user-static
    valgrind heaptrack libgoogle-perftools4 libjemalloc2 libmimalloc2.0 gdb libc6-dbg libdebuginfod1 binutils libunwind-dev
    golang-go chromium-headless-shell sqlite3 git xz-utils zstd ripgrep redis-server nodejs postgresql-15 procps
    curl python3-yaml protobuf-compiler golang-github-google-pprof-dev prometheus nginx-light musl-tools bubblewrap podman runc strace libjemalloc-dev libgoogle-perftools-dev
    libgtest-dev catch2 doctest-dev libbenchmark-dev python3-jsonschema
    python3-pip python3-setuptools python3-wheel"

# For make test-clickhouse.
clickhouse="clickhouse-server"

# For run_nightly.sh: runtimes whose empty programs leak nothing.
runtimes="librust-tokio-dev openjdk-17-jdk-headless php-cli ruby"

# For run_nightly.sh: libraries through which the programs of test_own_function.py allocate.
libraries="libabsl-dev libboost-dev libfmt-dev nlohmann-json3-dev qtbase5-dev librust-tokio-dev librust-bytes-dev
    librust-hashbrown-dev librust-rayon-dev librust-crossbeam-channel-dev librust-futures-dev librust-serde-json-dev
    librust-regex-dev librust-aho-corasick-dev librust-regex-syntax-dev librust-smallvec-dev librust-indexmap-dev"

# For the pictures of docs/user.
pictures="chromium-headless-shell pngquant"

# For build_tarball.sh.
tarball="mmdebstrap binutils git"

# For test_fresh.sh, test_tarball.sh, test_deb.sh and test_image.sh.
fresh="mmdebstrap util-linux"
test_deb="lintian"

# For make aarch64: the cross compiler, and what unpacks the libraries of the other machine.
aarch64="gcc-aarch64-linux-gnu mmdebstrap"

# For make test-aarch64: what makes and emulates the machine, and libraries of the tests for it.
machine="g++-aarch64-linux-gnu qemu-system-arm cpio e2fsprogs"
machine_libraries="libcmocka-dev libstdc++-12-dev libstd-rust-dev musl-dev libjemalloc-dev libgoogle-perftools-dev libmimalloc-dev"

# For make test-packages: what checks and builds contrib/packages.
packages="rpm rpmlint makepkg pacman-package-manager libarchive-tools nix-bin ruby shellcheck mmdebstrap util-linux"

# For sweep.py, and programs for it: of all kinds, languages and libraries.
sweep="binutils util-linux"
sweep_more="gtk-3-examples gtk-4-examples zenity qttools5-dev-tools qt6-tools-dev-tools featherpad
    gnupg curl wget git openssh-client openssh-server postgresql-client procps systemd-container
    ffmpeg imagemagick gstreamer1.0-tools vlc-bin libreoffice-writer-nogui libreoffice-calc-nogui
    php-cli ruby lua5.4 perl python3 r-base-core octave openjdk-17-jdk-headless mono-runtime mono-mcs
    clang gfortran rustc golang-go ghc ocaml-nox erlang-base nodejs
    guile-3.0 sbcl racket chicken-bin swi-prolog-nox pypy3 luajit nim ldc openmpi-bin mercurial stress-ng
    samba-common-bin smbclient krb5-user mariadb-server mariadb-client nginx-light memcached
    redis-server sqlite3"

words_of() {
    case $1 in
    aarch64) echo $aarch64 ;;
    build) echo $build ;;
    clickhouse) echo $clickhouse ;;
    demo) echo $demo ;;
    fresh) echo $fresh ;;
    machine) echo $machine ;;
    machine-libraries) echo $machine_libraries ;;
    package) echo $package ;;
    packages) echo $packages ;;
    runtimes) echo $runtimes ;;
    sweep) echo $sweep ;;
    test-deb) echo $test_deb ;;
    tarball) echo $tarball ;;
    sweep-more) echo $sweep_more ;;
    pictures) echo $pictures ;;
    test) echo $test ;;
    *)
        echo "packages: no set is called $1; there are aarch64, build, clickhouse, demo, fresh, machine, machine-libraries, package, packages, pictures, runtimes, sweep, sweep-more, tarball, test and test-deb" >&2
        exit 2
        ;;
    esac
}

list() {
    for set_name in "$@"; do
        words_of "$set_name"
    done | tr ' ' '\n' | sort -u
}

missing() {
    list "$@" | while read -r name; do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) || state=none
        [ "$state" = installed ] || echo "$name"
    done
}

install() {
    wanted=$(missing "$@")
    [ -n "$wanted" ] || return 0
    root=
    [ "$(id -u)" -eq 0 ] || root=sudo
    echo "installing:" $wanted >&2
    # Run level 1 prevents the installation of server packages from starting the servers.
    $root env DEBIAN_FRONTEND=noninteractive apt-get -qq update
    $root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get -qq -y --no-install-recommends install $wanted </dev/null
}

action=${1:-}
[ $# -ge 2 ] || {
    echo "usage: tools/packages.sh list|missing|install SET..." >&2
    exit 2
}
shift
for set_name in "$@"; do
    words_of "$set_name" >/dev/null
done
case $action in
list | missing | install) "$action" "$@" ;;
*)
    echo "packages: no action is called $action" >&2
    exit 2
    ;;
esac
