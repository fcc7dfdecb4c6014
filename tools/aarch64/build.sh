#!/bin/sh
# SPDX-License-Identifier: MIT
# build: builds all of cairn for AArch64 with Debian's cross compiler.
#
#   tools/aarch64/build.sh BUILD JOBS [CMAKE_OPTION...]
#
# BUILD/sysroot gets the libraries of an AArch64 Debian (make_sysroot.sh).
set -eu

mkdir -p "$1"
build=$(realpath "$1")
jobs=$2
shift 2
top=$(realpath "$(dirname "$0")/../..")

"$top/tools/aarch64/make_sysroot.sh" "$build/sysroot"
cmake -S "$top" -B "$build" -G Ninja -Wno-dev -DBUILD_TESTING=OFF -DCMAKE_SYSROOT="$build/sysroot" \
    --toolchain "$top/cmake/aarch64-linux-gnu.cmake" "$@" >/dev/null
cmake --build "$build" -j "$jobs"
