// SPDX-License-Identifier: MIT
// dwarf_reader: from an address to its chain of functions, out of one file's DWARF.
//
//   address -> unit (dwarf_units) -> function (dwarf_functions, kept for one unit at a time)
//           -> down through the blocks that hold the address
//
// Each DW_TAG_inlined_subroutine on the way is one more frame. The line table gives the place in
// the innermost frame, and each inlined frame's call_file and call_line the place in its caller.
// Ask in ascending order of address, so that each unit is read once. Owns the Dwarf handle, borrows
// the file. Context: H; one thread.
#pragma once

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "symbols/dwarf/dwarf_functions.h"
#include "symbols/dwarf/dwarf_lines.h"
#include "symbols/dwarf/dwarf_units.h"
#include "symbols/elf/elf_file.h"

struct dwarf_frame {
    const char *name;         // linkage name, else plain name; NULL: unknown. Borrowed
    bool is_linkage_name;     // `name` identifies the function without its scopes
    Dwarf_Die declaration;    // only for a plain name: to find its scopes by
    struct dwarf_place place; // borrowed
    const char *directory;    // of the compilation, to which a relative file refers; NULL: unknown
};

DEFINE_VEC(dwarf_frame_vec, struct dwarf_frame);

struct dwarf_reader {
    Dwarf *dwarf;
    uint64_t file_bytes;
    struct dwarf_units units;
    struct dwarf_functions functions; // of units.units.items[current]
    size_t current;                   // SIZE_MAX: none
    struct die_vec inlined; // the inlined subroutines on the way down; kept for its memory
};

// The file must hold DWARF (elf_file_has_dwarf). ERR_CORRUPT if libdw cannot read it at all.
enum err dwarf_reader_open(struct dwarf_reader *reader, struct elf_file *file) MUST_USE;

// Accepts a zeroed reader.
void dwarf_reader_close(struct dwarf_reader *reader);

// Replaces the content of `out` by the frames at `address`, innermost first, the physical function
// last. A unit with a line table but without the function (assembler) gives one frame without a
// name. Nothing known: no frames.
enum err dwarf_reader_find(struct dwarf_reader *reader,
                           uint64_t address,
                           struct dwarf_frame_vec *out) MUST_USE;
