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
#
# CAIRN_TEST_TRIES=2, for continuous integration on machines that others use too: up to
# three entries that failed run once more, each alone. What passes then does not fail the run, but
# is named at its end, with what the first try said: it has a fault to find. BUILD/NAME.again.xml
# has the results.
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
again=$(realpath "$build")/$name.again.xml
rm -f "$CAIRN_ENTRY_TIMES" "$again"
status=0
ctest --test-dir "$build" -j "$jobs" --output-on-failure --no-tests=error \
    --output-junit "$results" --test-output-size-passed 100000 "$@" || status=$?
failed=$(/usr/bin/python3 "$(dirname "$0")/count_tests.py" --failed "$results")
count=$(echo "$failed" | wc -w)
if [ "${CAIRN_TEST_TRIES:-1}" -gt 1 ] && [ "$count" -ge 1 ] && [ "$count" -le 3 ]; then
    echo "once more, alone:" $failed
    status=0
    ctest --test-dir "$build" -j 1 --output-on-failure --no-tests=error --rerun-failed \
        --output-junit "$again" --test-output-size-passed 100000 || status=$?
    /usr/bin/python3 "$(dirname "$0")/count_tests.py" --said "$results"
    echo "failed at the first try:" $failed
fi
/usr/bin/python3 "$(dirname "$0")/dearest_tests.py" "$CAIRN_ENTRY_TIMES"
/usr/bin/python3 "$(dirname "$0")/count_tests.py" "$results"
exit $status
