// SPDX-License-Identifier: MIT
// dwarf_reader: find the chain of functions at an address in the DWARF of one file.
//
//   address -> unit (by its ranges) -> function (dwarf_functions, kept for one unit at a time)
//           -> down through the blocks that hold the address
//
// Each DW_TAG_inlined_subroutine on this path is one more frame. The line table gives the place in
// the innermost frame. The call_file and call_line of each inlined frame give the place in its
// caller. Queries in ascending order of address read each unit once. The reader owns the Dwarf
// handle and borrows the file. Context: H; one thread.
#pragma once

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "symbols/dwarf/dwarf_functions.h"
#include "symbols/elf/elf_file.h"
#include "symbols/names/range_index.h"

struct dwarf_place {
    const char *file; // borrowed from the Dwarf handle; NULL: unknown. May be relative
    uint32_t line;    // 0: unknown
};

struct dwarf_frame {
    const char *name;         // linkage name, else plain name; NULL: unknown. Borrowed
    bool is_linkage_name;     // `name` identifies the function without its scopes
    Dwarf_Die declaration;    // only for a plain name: to find its scopes
    struct dwarf_place place; // borrowed
    const char *directory;    // compilation directory, the base of a relative file; NULL: unknown
};

DEFINE_VEC(dwarf_frame_vec, struct dwarf_frame);

struct dwarf_unit {
    Dwarf_Die die;  // unit DIE in the file: has the line table
    Dwarf_Die tree; // parent of the functions: `die`, or the unit DIE of the .dwo file, if found
};

DEFINE_VEC(dwarf_unit_vec, struct dwarf_unit);

// All units that libdw can read. Units after a damaged one are lost.
struct dwarf_units {
    struct dwarf_unit_vec units;
    struct range_index ranges; // value: index into units
};

struct dwarf_reader {
    Dwarf *dwarf;
    uint64_t file_bytes;
    struct dwarf_units units;
    struct dwarf_functions functions; // of units.units.items[current]
    size_t current;                   // SIZE_MAX: none
    struct die_vec inlined;           // scratch: inlined subroutines that hold the address
};

// Open the DWARF of a file, which must hold DWARF (elf_file_has_dwarf). ERR_CORRUPT if libdw cannot
// read it at all.
enum err dwarf_reader_open(struct dwarf_reader *reader, struct elf_file *file) MUST_USE;

// Accepts a zeroed reader.
void dwarf_reader_close(struct dwarf_reader *reader);

// Replace the content of `out` by the frames at `address`, innermost first, the physical function
// last. A unit with a line table but without the function (assembler) gives one frame without a
// name. An unknown address gives no frames.
enum err dwarf_reader_find(struct dwarf_reader *reader,
                           uint64_t address,
                           struct dwarf_frame_vec *out) MUST_USE;
