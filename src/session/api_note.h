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

#define API_NOTE_OWNER "cairn"
#define API_NOTE_TYPE  1u // the distance from there to the pointer, 8 bytes

struct api_note {
    Elf64_Nhdr head;
    char owner[8]; // API_NOTE_OWNER, padded
    int64_t distance;
} __attribute__((packed));

static inline bool api_note_is_ours(const struct api_note *note)
{
    return note->head.n_namesz == sizeof(API_NOTE_OWNER) &&
           note->head.n_descsz == sizeof(note->distance) && note->head.n_type == API_NOTE_TYPE &&
           memcmp(note->owner, API_NOTE_OWNER, sizeof(API_NOTE_OWNER)) == 0;
}

// Notes are aligned to 4 bytes. Those aligned to 8 (.note.gnu.property) have lengths for which that
// is the same.
static inline uint64_t api_note_padded(uint64_t bytes)
{
    return (bytes + 3) & ~(uint64_t)3;
}

// Return the bytes of a note of any owner.
static inline uint64_t api_note_bytes(Elf64_Nhdr head)
{
    return sizeof(head) + api_note_padded(head.n_namesz) + api_note_padded(head.n_descsz);
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
