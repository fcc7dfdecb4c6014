#!/bin/sh
# SPDX-License-Identifier: MIT
# run_sanitized: build cairn's own processes with sanitizers and run their tests.
#
#   tools/run_sanitized.sh address,undefined|thread BUILD
#
# The default is what finds most for its time: units and parsers, and two whole runs. With CAIRN_NIGHTLY
# set all tests of cairn's own processes run, and under the thread sanitizer all of modules with threads.
# The preload library is never sanitized, because it runs inside other programs; its code is, as
# linked into the unit tests. Address space randomization is off, because ThreadSanitizer of Debian
# 12 does not support the 32 random bits that some kernels use. -O1 takes 0.82 of the processor time
# of -O0. As in `make test`, more tests run than there are processors.
set -eu

sanitizers=$1
build=$2
source=$(realpath "$(dirname "$0")/..")

# ThreadSanitizer is only for code with threads; other tests would just be slow. With -O1, gcc refuses
# fences for it, which it does not know.
filter='^(unit|fuzz|recording|formats)|^e2e\.(counts|lifecycle)'
left_out='^$'
optimization=-O1
[ -z "${CAIRN_NIGHTLY:-}" ] || filter=.
if [ "$sanitizers" = thread ]; then
    optimization=-O0
    filter='^unit\.(session|producer|host\.(quiet_thread|http_client|process_search)|server\.(event_hub|listener|turns)|profile\.(deferred_symbols|cancel)|recorder\.(drain|attach_step|unrecorded_list))|^e2e\.counts'
    [ -z "${CAIRN_NIGHTLY:-}" ] ||
        filter='^unit\.(session|producer|recorder|host|server|profile\.(deferred_symbols|cancel))|^e2e\.(counts|lifecycle)'
    left_out='^unit\.recorder\.(sampling|order_(preemption|steps))$' # long, of one thread
fi

cmake -S "$source" -B "$build" -G Ninja -Wno-dev -DBUILD_TESTING=ON -DCMAKE_BUILD_TYPE=Debug \
    "-DCMAKE_C_FLAGS_DEBUG=-g $optimization" "-DCAIRN_SANITIZE=$sanitizers" "-DCAIRN_TESTS=$filter" >/dev/null
cmake --build "$build" -j "$(nproc)" -- --quiet

# A test that sets LD_PRELOAD for the program also sets it for a sanitized cairn. Its run-time would
# refuse that (verify_asan_link_order).
ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1
# As the system's allocator does.
ASAN_OPTIONS=$ASAN_OPTIONS:allocator_may_return_null=1
export ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:allocator_may_return_null=1

exec setarch -R "$source/tools/run_tests.sh" "$build" test "$(expr 2 '*' "$(nproc)")" -R "$filter" -E "$left_out"
