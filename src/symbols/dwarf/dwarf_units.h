// SPDX-License-Identifier: MIT
// dwarf_units: the compilation units of a file, and which of them covers an address.
//
// libdw finds a unit by .debug_aranges, which clang does not write and others write incompletely;
// so the ranges of each unit's own DIE are collected here, once for a file. A unit that states no
// ranges gets those of its functions. Type units and partial units hold no code. For split DWARF,
// the unit's tree is that of the .dwo file, if libdw has found it. Hostile input: no more ranges
// are kept than the file has bytes for. Borrows the Dwarf handle. Context: H.
#pragma once

#include <elfutils/libdw.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "symbols/names/range_index.h"

struct dwarf_unit {
    Dwarf_Die die;  // of the unit in the file: has the line table
    Dwarf_Die tree; // whose children are the functions: the same, or that of the .dwo file
};

DEFINE_VEC(dwarf_unit_vec, struct dwarf_unit);

struct dwarf_units {
    struct dwarf_unit_vec units;
    struct range_index ranges; // value: index into units
};

// Reads all units that libdw can read; those after a damaged one are lost.
enum err dwarf_units_init(struct dwarf_units *units, Dwarf *dwarf, uint64_t file_bytes) MUST_USE;
void dwarf_units_release(struct dwarf_units *units);
