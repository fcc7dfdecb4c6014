// SPDX-License-Identifier: MIT
// api_note: the ELF note by which a module that includes cairn.h says where its pointer to the
// table of functions is. The preload library reads it in its own process (announce.h), the recorder
// from outside (api_pointers.h). Notes and program headers are the program's, and hostile.
// Context: T and H; pure.
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/elf_note.h"

#define API_NOTE_OWNER "cairn"
#define API_NOTE_TYPE  1u // the distance from there to the pointer, 8 bytes

// Find the next note of ours at `notes`, and the address of its pointer; 0: there is none.
// `address`: where the notes begin in their process.
static inline uint64_t api_note_next(struct cursor *notes, uint64_t address)
{
    struct elf_note note;
    int64_t distance;
    while (elf_note_next(notes, &note)) {
        if (note.description.len == sizeof(distance) &&
            elf_note_is(&note, API_NOTE_TYPE, API_NOTE_OWNER, sizeof(API_NOTE_OWNER))) {
            memcpy(&distance, note.description.data, sizeof(distance));
            return address + (uint64_t)(note.description.data - notes->start) + (uint64_t)distance;
        }
    }
    return 0;
}

// Whether a pointer at `address` is aligned, and in a writable segment of its module, which is
// loaded at `bias`.
static inline bool
api_note_may_point(const Elf64_Phdr *segments, size_t count, uint64_t bias, uint64_t address)
{
    for (size_t i = 0; i < count; i++) {
        const Elf64_Phdr *segment = segments + i;
        const uint64_t offset = address - bias - segment->p_vaddr;
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W) != 0 &&
            segment->p_memsz >= sizeof(uint64_t) && offset <= segment->p_memsz - sizeof(uint64_t)) {
            return address % sizeof(uint64_t) == 0;
        }
    }
    return false;
}
