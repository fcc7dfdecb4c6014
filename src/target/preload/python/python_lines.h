// SPDX-License-Identifier: MIT
// python_lines: CPython's table of lines (Objects/locations.md, since 3.11).
//
// An entry begins with a byte whose high bit is set; its other bytes have it clear:
//
//   1 kind 4 | units - 1, 3     kind 0..9: same line     10..12: line + kind - 10
//                               13, 14: line + a signed number of 6 bits a byte     15: no line
//
// Context: T and H; pure.
#pragma once

#include <stdint.h>

// Return the line of the code unit `unit`, by the table of `size` readable bytes of code that
// begins at `first_line`. Returns first_line where the table has no line.
uint32_t python_lines_find(const uint8_t *table, uint64_t size, uint32_t first_line, uint64_t unit);
