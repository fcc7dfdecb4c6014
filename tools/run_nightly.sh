#!/bin/sh
# SPDX-License-Identifier: MIT
# run_nightly: everything that `make test` and `make check` leave out because it takes long, each part
# also where another has failed, then the counts of all tests.
#
#   tools/run_nightly.sh BUILD JOBS
#
# CAIRN_NIGHTLY lets pytest run the cases with the mark `nightly`, and the sanitizers run all tests.
set -u

build=$1
jobs=$2
tools=$(dirname "$0")
export CAIRN_NIGHTLY=1
failed=

part() {
    echo "nightly: $*"
    "$@" </dev/null || failed="$failed
  $*"
}

cmake -S . -B "$build" -G Ninja -Wno-dev -DBUILD_TESTING=ON -DCAIRN_BENCH=ON >/dev/null || exit 1
cmake --build "$build" -j "$(nproc)" || exit 1
part "$tools/packages.sh" install build test runtimes
part "$tools/run_tests.sh" "$build" nightly "$jobs" -LE '^(check|day)$'
part make "BUILD=$build" analyze
part make "BUILD=$build" asan
part make "BUILD=$build" tsan
part make "BUILD=$build" fuzz-smoke
part "$tools/packages.sh" install build test sweep
part "$tools/sweep.py" "$build" --way version --sample 100
part make "BUILD=$build" test-clickhouse
part make "BUILD=$build" soak
part make "BUILD=$build" sweep
part make "BUILD=$build" test-fresh
part make "BUILD=$build" test-deb
part make "BUILD=$build" test-packages
part make "BUILD=$build" test-tarball
part make "BUILD=$build" test-image
part make "BUILD=$build" test-aarch64
/usr/bin/python3 "$tools/count_tests.py" "$build/nightly.xml" "$build-asan/test.xml" "$build-tsan/test.xml"
[ -z "$failed" ] || {
    echo "nightly: these failed:$failed" >&2
    exit 1
}
