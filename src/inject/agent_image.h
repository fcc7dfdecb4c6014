// SPDX-License-Identifier: MIT
// agent_image: the agent as an ELF shared object, laid out for an address in the target.
//
// Accepted are 64-bit shared objects of this machine with a few PT_LOAD segments on pages of their
// own, and only relative relocations. The image owns a copy of its memory. Context: H; pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"

enum {
    AGENT_SEGMENTS_MAX = 8,
};

struct agent_segment {
    uint64_t start; // from the image's address; whole pages
    uint64_t end;
    int prot; // PROT_...
};

struct agent_image {
    struct bytes file; // borrowed
    uint8_t *memory;   // owned; span bytes
    uint64_t span;
    struct agent_segment segments[AGENT_SEGMENTS_MAX];
    size_t segment_count;
};

// Lay out `file`, which must outlive the image, for the address 0 and pages of this size.
// ERR_INVALID if it is not such an object, ERR_NO_MEMORY.
enum err agent_image_init(struct agent_image *image,
                          struct bytes file,
                          uint64_t page_bytes,
                          struct err_info *info) MUST_USE;
void agent_image_release(struct agent_image *image); // accepts a zeroed one

// Write the relocated words into the memory, for an image at `addr`. May be called again.
void agent_image_relocate(struct agent_image *image, uint64_t addr);

// Return the offset of a defined symbol of .dynsym, 0 if there is none. `file` is a valid image.
uint64_t agent_image_symbol(struct bytes file, const char *name);
