// SPDX-License-Identifier: MIT
// function_starts: the starts of functions without a name, from the table of .eh_frame_hdr.
//
// strip keeps this table, because exceptions need it. It is sorted by address, so a binary search
// suffices. Only the form that linkers write is read (4-byte numbers relative to the table's
// section). The table is hostile: every access is checked, and a malformed table gives at worst
// wrong starts. Borrows from the Elf handle. Context: H.
#pragma once

#include <libelf.h>
#include <stdint.h>

#include "base/bytes.h"

struct function_starts {
    Elf *elf;               // borrowed
    const uint8_t *entries; // borrowed; pairs of numbers: start of a function, its FDE
    uint64_t count;
    uint64_t hdr_addr;
    uint64_t frames_addr; // of the FDEs
    struct bytes frames;  // from there to the end of the segment; borrowed; read when it is needed
};

// Find the table of an open ELF file; `out` has no entries if there is none.
void function_starts_init(Elf *elf, struct function_starts *out);

// Return the start of the function that holds `address`, 0 if unknown.
uint64_t function_starts_find(struct function_starts *starts, uint64_t address);
