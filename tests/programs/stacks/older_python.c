// SPDX-License-Identifier: MIT
// Exports what CPython 3.9 exports, and allocates once.
// TRUTH: allocations=1 bytes=1000 leaked=1000
#define IS_OLDER
#include "other_python.c"
