#!/bin/sh
# SPDX-License-Identifier: MIT
# run_tests: every test of a build directory, then how many single cases passed.
#
#   tools/run_tests.sh BUILD JOBS [ctest options]
set -eu

build=$1
jobs=$2
shift 2

results=$(realpath "$build")/tests.xml
status=0
ctest --test-dir "$build" -j "$jobs" --output-on-failure --no-tests=error \
    --output-junit "$results" --test-output-size-passed 100000 "$@" || status=$?
/usr/bin/python3 "$(dirname "$0")/count_tests.py" "$results"
exit $status
