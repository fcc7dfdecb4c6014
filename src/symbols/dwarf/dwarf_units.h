// SPDX-License-Identifier: MIT
// dwarf_units: the compilation units of a file, by address.
//
// libdw finds a unit by .debug_aranges, which clang does not write and other compilers write
// incompletely. So this module collects the ranges of each unit's DIE, once for a file. A unit
// without ranges gets the ranges of its functions. Type units and partial units hold no code. For
// split DWARF, the tree of a unit is in the .dwo file, if libdw found it. Hostile input: the number
// of ranges is limited by the bytes of the file. Borrows the Dwarf handle. Context: H.
#pragma once

#include <elfutils/libdw.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "symbols/names/range_index.h"

struct dwarf_unit {
    Dwarf_Die die;  // unit DIE in the file: has the line table
    Dwarf_Die tree; // parent of the functions: `die`, or the unit DIE of the .dwo file
};

DEFINE_VEC(dwarf_unit_vec, struct dwarf_unit);

struct dwarf_units {
    struct dwarf_unit_vec units;
    struct range_index ranges; // value: index into units
};

// Read all units that libdw can read. Units after a damaged one are lost.
enum err dwarf_units_init(struct dwarf_units *units, Dwarf *dwarf, uint64_t file_bytes) MUST_USE;
void dwarf_units_release(struct dwarf_units *units);
