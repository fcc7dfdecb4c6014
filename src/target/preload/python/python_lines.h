// SPDX-License-Identifier: MIT
// python_lines: CPython's table of lines.
//
// Since 3.11 (Objects/locations.md) an entry begins with a byte whose high bit is set; its other
// bytes have it clear:
//
//   1 kind 4 | units - 1, 3     kind 0..9: same line     10..12: line + kind - 10
//                               13, 14: line + a signed number of 6 bits a byte     15: no line
//
// 3.10 (PEP 626) has pairs of bytes: so many bytes of code, 2 a unit, have the line of the pair
// before plus a signed number; -128: no line.
//
// Context: T and H; pure.
#pragma once

#include <stdint.h>

// Return the line of the code unit `unit`, by the table of `size` readable bytes of code that
// begins at `first_line`. Returns first_line where the table has no line.
uint32_t python_lines_find(const uint8_t *table, uint64_t size, uint32_t first_line, uint64_t unit);

// The same by a table of pairs.
uint32_t
python_lines_find_pair(const uint8_t *table, uint64_t size, uint32_t first_line, uint64_t unit);
