// SPDX-License-Identifier: MIT
// dwarf_lines: source files and lines of one compilation unit.
//
// libdw decodes a unit's line table once and keeps it until the Dwarf handle is closed; this module
// searches it. Line 0 in a row means that the compiler moved or merged the code and no line is
// right. It stays 0, because the row before it mostly belongs to another inlined function. Context:
// H.
#pragma once

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

struct dwarf_place {
    const char *file; // borrowed from the Dwarf handle; NULL: unknown. May be relative
    uint32_t line;    // 0: unknown
};

// Return the place of `address` in the unit's line table; all fields are unknown if it has none.
struct dwarf_place dwarf_lines_find(Dwarf_Die *unit_die, uint64_t address);

// Return the place of the call to `inlined` (a DW_TAG_inlined_subroutine of the unit).
struct dwarf_place dwarf_call_place(Dwarf_Die *unit_die, Dwarf_Die *inlined);
