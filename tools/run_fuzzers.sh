#!/bin/sh
# SPDX-License-Identifier: MIT
# run_fuzzers: run every fuzz target for a number of seconds, from its own seeds.
#
#   tools/run_fuzzers.sh BUILD SECONDS
#
# cairn_fuzzer() in cmake/CairnTargets.cmake makes the targets. Findings stay in BUILD/fuzz/found.
set -eu

build=$1
seconds=$2
source=$(realpath "$(dirname "$0")/..")

cmake -S "$source" -B "$build" -G Ninja -Wno-dev -DBUILD_TESTING=ON -DCAIRN_FUZZ=ON \
    -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
    -DCAIRN_SANITIZE=address,undefined,fuzzer-no-link >/dev/null
cmake --build "$build" -j "$(nproc)" --target fuzzers -- --quiet

mkdir -p "$build/fuzz/found"
count=0
for target in "$build"/fuzz/fuzz_*; do
    name=${target##*/fuzz_}
    work=$build/fuzz/work_$name
    mkdir -p "$work"
    xargs -r -d '\n' -I{} cp -r {} "$work" <"$build/fuzz/$name.seeds"
    "$target" -max_total_time="$seconds" -max_len=65536 -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
        -artifact_prefix="$build/fuzz/found/" "$work"
    count=$((count + 1))
done
echo "$count passed, 0 failed"
