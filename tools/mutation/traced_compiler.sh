#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: traced_compiler.sh COMPILER ARGUMENT...
# Runs the compiler, as CMake's compiler launcher, and lets it trace the basic blocks of what is below
# src/ and no test. CMake names the source last. Tracing makes gcc warn of what it does not warn of else.
# A call that a function ends with is no jump, because the block is told by where the call returns to.
for source; do :; done
case $source in
*/src/*_test.c | */src/*/test_*) ;;
*/src/*.c) set -- "$@" -fsanitize-coverage=trace-pc -fno-optimize-sibling-calls -Wno-error ;;
esac
exec $CAIRN_TRACED_LAUNCHER "$@"
