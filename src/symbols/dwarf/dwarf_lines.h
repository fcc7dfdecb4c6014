// SPDX-License-Identifier: MIT
// dwarf_lines: source files and lines of one compilation unit.
//
// libdw decodes a unit's line table once and keeps it until the Dwarf handle is closed; the search
// is ours. A row with line 0 means that the compiler moved or merged the code and no line is right:
// it stays 0, since the row before it mostly belongs to another inlined function. Context: H.
#pragma once

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

struct dwarf_place {
    const char *file; // borrowed from the Dwarf handle; NULL: unknown. May be relative
    uint32_t line;    // 0: unknown
};

// The place that the unit's line table gives for `address`; all unknown if it gives none.
struct dwarf_place dwarf_lines_find(Dwarf_Die *unit_die, uint64_t address);

// The place from which `inlined` (a DW_TAG_inlined_subroutine of the unit) was called.
struct dwarf_place dwarf_call_place(Dwarf_Die *unit_die, Dwarf_Die *inlined);
