// SPDX-License-Identifier: MIT
// elf_note: the notes of an ELF file (gABI): a build-id, or what a compiler or a library notes.
//
// A note has three words, its owner's name and a description. Both are padded to 4 bytes; notes
// that are aligned to 8 bytes (.note.gnu.property) have lengths for which that is the same. Notes
// are the program's, and hostile. Context: T and H; pure.
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cursor.h"

struct elf_note {
    uint32_t type;
    struct bytes owner; // with the zero byte at its end
    struct bytes description;
};

static inline struct bytes elf_note_part(struct cursor *notes, uint32_t len)
{
    return (struct bytes){.data = cursor_take(notes, ((size_t)len + 3) & ~(size_t)3), .len = len};
}

// Read the next note. False: there is none, or it does not fit.
static inline bool elf_note_next(struct cursor *notes, struct elf_note *out)
{
    const uint32_t owner_len = cursor_u32(notes);
    const uint32_t description_len = cursor_u32(notes);
    out->type = cursor_u32(notes);
    out->owner = elf_note_part(notes, owner_len);
    out->description = elf_note_part(notes, description_len);
    return !notes->failed;
}

// `owner` has `owner_len` bytes, the zero byte at its end included.
static inline bool
elf_note_is(const struct elf_note *note, uint32_t type, const char *owner, size_t owner_len)
{
    return note->type == type && note->owner.len == owner_len &&
           memcmp(note->owner.data, owner, owner_len) == 0;
}

// Return the build-id among notes; empty if there is none.
static inline struct bytes elf_note_build_id(struct bytes notes)
{
    struct cursor at = cursor_over(notes);
    struct elf_note note;
    while (elf_note_next(&at, &note)) {
        if (elf_note_is(&note, NT_GNU_BUILD_ID, "GNU", sizeof("GNU"))) {
            return note.description;
        }
    }
    return (struct bytes){.data = NULL, .len = 0};
}
