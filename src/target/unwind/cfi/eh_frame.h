// SPDX-License-Identifier: MIT
// eh_frame: finds and reads the unwind table entry of a pc.
//
// The tables are those of the Linux Standard Base (core, 10.6): .eh_frame_hdr with its sorted
// index, .eh_frame with CIEs and FDEs. They are read in place, in a mapped module or in a copy of
// one, through a cursor that never leaves the image. Without a usable index the FDEs are searched
// one by one, unless they have to be fetched. Addresses are the program's, pointers are ours.
// Trust: none in the bytes. Context: T and H; allocates nothing.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

// Bytes of a program, and the program's address of the first one.
struct eh_image {
    struct bytes bytes;
    uint64_t addr;
};

// The tables of a module: one segment that holds both sections, as linkers lay them out, or two. If
// one object file has a writable .eh_frame (assembly, the start files of compiler-rt), the module's
// .eh_frame is writable, and linkers put it into another segment.
struct eh_table {
    struct eh_image image;
    struct eh_image frames; // of .eh_frame; empty: it is in `image`
    uint64_t hdr_addr;      // of .eh_frame_hdr
    // Brings the bytes [addr, addr + len) into the image, where they are inside it and exist. NULL:
    // all bytes are present.
    void (*fetch)(const struct eh_table *self, uint64_t addr, uint64_t len);
    char *fetched; // the image's bytes, for fetch to write
};

// One function's entry: an FDE together with its CIE. All pointers lead into the image.
struct eh_function {
    const struct eh_image *image; // borrowed from the table
    uint64_t start;               // first pc
    uint64_t end;                 // exclusive
    uint64_t code_align;
    int64_t data_align;
    uint64_t return_register;
    bool signal_frame;        // its caller was interrupted, it did not call
    uint8_t pointer_encoding; // of DW_CFA_set_loc
    struct bytes cie_program; // initial instructions
    struct bytes fde_program;
};

// Find the function that contains `pc`. ERR_NOT_FOUND: there is none. ERR_CORRUPT, ERR_UNSUPPORTED:
// the table contradicts itself, or has a kind that no current tool writes.
MUST_USE enum err eh_find(const struct eh_table *table, uint64_t pc, struct eh_function *out);

// Whether a function begins at `pc`. If no function covers pc - 1, then a return address of `pc`
// does not come from a call: code laid out a stack by hand, and this is its beginning. makecontext
// does so, and the CFI of the function that it puts there does not describe that.
bool eh_begins_function(const struct eh_table *table, uint64_t pc);

// Read the FDE at `fde_addr`. ERR_NOT_FOUND if a CIE or the terminator is there.
MUST_USE enum err
eh_read_fde(const struct eh_table *table, uint64_t fde_addr, struct eh_function *out);

// Step through .eh_frame entry by entry: advance *entry_addr from an entry (at first eh_first()) to
// the next one. False at the end.
bool eh_next(const struct eh_table *table, uint64_t *entry_addr);

// Return the address of the first entry of .eh_frame, 0 if the header cannot be read.
uint64_t eh_first(const struct eh_table *table);

struct cursor;

// Read a pointer in a DW_EH_PE encoding. `data_addr` is the base of datarel. Fails the cursor on
// encodings that these sections do not use.
uint64_t eh_read_pointer(struct cursor *c,
                         const struct eh_image *image,
                         uint8_t encoding,
                         uint64_t data_addr);
