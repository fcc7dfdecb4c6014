// SPDX-License-Identifier: MIT
// subjects_arch (x86-64): the files whose tables are compared. The test packages bring all of them
// (tools/packages.sh): C, C++, hand-written assembly, two other compilers, a JIT, Rust.
#pragma once

static const char *const subjects[] = {
    "/proc/self/exe",
    "/lib64/ld-linux-x86-64.so.2",
    "/usr/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/lib/x86_64-linux-gnu/libdw.so.1",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus",
    "/usr/bin/python3",
    "/usr/bin/node",
    "/usr/bin/rg",
    "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
};
