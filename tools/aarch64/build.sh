#!/bin/sh
# SPDX-License-Identifier: MIT
# build: builds all of cairn for AArch64 with Debian's cross compiler.
#
#   tools/aarch64/build.sh BUILD JOBS SETS [CMAKE_OPTION...]
#
# BUILD/sysroot gets the libraries of an AArch64 Debian: those among the packages of these sets
# (tools/packages.sh), but for Zydis, which decodes x86-64 only.
set -eu

mkdir -p "$1"
build=$(realpath "$1")
jobs=$2
sets=$3
shift 3
top=$(realpath "$(dirname "$0")/../..")

libraries=$("$top/tools/packages.sh" list $sets | grep -E '^libc|-dev$' | grep -v zydis)
"$top/tools/aarch64/unpack_debian.sh" "$build/sysroot" libc6-dev $libraries
cmake -S "$top" -B "$build" -G Ninja -Wno-dev -DBUILD_TESTING=OFF -DCMAKE_SYSROOT="$build/sysroot" \
    --toolchain "$top/cmake/aarch64-linux-gnu.cmake" "$@" >/dev/null
cmake --build "$build" -j "$jobs"
