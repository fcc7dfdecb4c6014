// SPDX-License-Identifier: MIT
// function_starts: where functions begin that have no name, by the table of .eh_frame_hdr.
//
// Whatever is stripped, this table stays: exceptions need it. It is sorted by address, so that a
// search in it is all there is to do. Only the form that linkers write is read (4-byte numbers
// relative to the table's section). The table is a stranger's: every access is checked, and a
// crooked one gives wrong places, nothing worse. Borrows from the ELF handle. Context: H.
#pragma once

#include <libelf.h>
#include <stdint.h>

struct function_starts {
    Elf *elf;               // borrowed
    const uint8_t *entries; // borrowed; pairs of numbers: of a function's start, of its FDE
    uint64_t count;
    uint64_t hdr_addr;
};

// Finds the table of an open ELF file; `out` has no entries if there is none.
void function_starts_init(Elf *elf, struct function_starts *out);

// The start of the function that holds `address`; 0 if that is not known.
uint64_t function_starts_find(const struct function_starts *starts, uint64_t address);
