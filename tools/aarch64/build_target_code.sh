#!/bin/sh
# SPDX-License-Identifier: MIT
# build_target_code: build the code for recorded programs, and its tests, for AArch64.
#
#   tools/aarch64/build_target_code.sh BUILD
#
# `ctest --test-dir BUILD` then runs those tests under qemu-user.
set -eu

build=$1
source=$(realpath "$(dirname "$0")/../..")

cmake -S "$source" -B "$build" -G Ninja -Wno-dev -DBUILD_TESTING=ON -DCAIRN_PRELOAD_ONLY=ON \
    --toolchain "$source/cmake/aarch64-linux-gnu.cmake" >/dev/null
cmake --build "$build" -j "$(nproc)" -- --quiet
