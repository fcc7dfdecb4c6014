// SPDX-License-Identifier: MIT
// unwind_copy: a copy of a module's unwind tables, with the index that the module lacks.
//
// Static executables are linked without .eh_frame_hdr, and their sections have no names in memory,
// so the agent finds no unwind tables there. It gets a copy from the module's file:
//
//   .eh_frame_hdr as a linker makes it: a head, and pairs (function, its entry), sorted
//   .eh_frame; the addresses of functions, which are relative to their place, are moved
//
// Functions whose addresses have another form are left out; no current compiler writes them.
// Trust: the file is hostile; reading ends at the first entry that does not fit. Owns its bytes.
// Context: H; one thread (libelf).
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/text/strbuf.h"
#include "symbols/elf/elf_file.h"

struct unwind_copy {
    struct strbuf section; // .eh_frame as it is in the file; empty: there is nothing to copy
    uint64_t section_addr; // in the file
    uint64_t function_count;
};

// Read the tables of an open module. ERR_NO_MEMORY.
enum err unwind_copy_read(const struct elf_file *module, struct unwind_copy *out) MUST_USE;
void unwind_copy_release(struct unwind_copy *copy); // accepts a zeroed one

// Return how many bytes the copy needs in the target; 0: there is none.
uint64_t unwind_copy_bytes(const struct unwind_copy *copy);

// Append what is to be at `addr` in the target, which is within 2 GiB of the module.
// ERR_NO_MEMORY.
enum err unwind_copy_make(const struct unwind_copy *copy,
                          uint64_t load_bias,
                          uint64_t addr,
                          struct strbuf *out) MUST_USE;
