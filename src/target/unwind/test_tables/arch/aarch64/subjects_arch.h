// SPDX-License-Identifier: MIT
// subjects_arch (AArch64): the files whose tables are compared. Debian's cross compiler brings all
// of them (tools/packages.sh).
#pragma once

static const char *const subjects[] = {
    "/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1",
    "/usr/aarch64-linux-gnu/lib/libc.so.6",
    "/usr/aarch64-linux-gnu/lib/libm.so.6",
    "/usr/aarch64-linux-gnu/lib/libgcc_s.so.1",
    "/usr/aarch64-linux-gnu/lib/libstdc++.so.6",
};
