#!/bin/sh
# SPDX-License-Identifier: MIT
# run_tests: run the tests of a build directory that ctest's options select, and print how many
# cases passed.
#
#   tools/run_tests.sh BUILD NAME JOBS [ctest options]
#
# The results stay in BUILD/NAME.xml, in JUnit's format, and the processor time of each entry in
# BUILD/NAME.times (tests/test_entry.c). A server that has loaded pytest runs the files
# of tests meanwhile (tests/pytest_server.py).
set -eu

build=$1
name=$2
jobs=$3
shift 3

CAIRN_PYTEST_SERVER=cairn-pytest-$(cat /proc/sys/kernel/random/uuid)
export CAIRN_PYTEST_SERVER
/usr/bin/python3 -B "$(dirname "$0")/../tests/pytest_server.py" "$CAIRN_PYTEST_SERVER" &
trap 'kill $!' EXIT

results=$(realpath "$build")/$name.xml
CAIRN_ENTRY_TIMES=$(realpath "$build")/$name.times
export CAIRN_ENTRY_TIMES
rm -f "$CAIRN_ENTRY_TIMES"
status=0
ctest --test-dir "$build" -j "$jobs" --output-on-failure --no-tests=error \
    --output-junit "$results" --test-output-size-passed 100000 "$@" || status=$?
/usr/bin/python3 "$(dirname "$0")/dearest_tests.py" "$CAIRN_ENTRY_TIMES"
/usr/bin/python3 "$(dirname "$0")/count_tests.py" "$results"
exit $status
