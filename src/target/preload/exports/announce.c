// SPDX-License-Identifier: MIT
// announce: see announce.h.
//
// Notes are in memory that the program has mapped from its file. A note is used only if it is
// plausible: a pointer is written only if it is aligned, in a writable segment of its own module,
// and still NULL.
#include "target/preload/exports/announce.h"

#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NOTE_OWNER "cairn"

enum {
    NOTE_POINTER = 1, // the distance from here to the pointer, 8 bytes
};

struct note {
    Elf64_Nhdr head;
    char owner[8]; // NOTE_OWNER, padded
    int64_t distance;
} __attribute__((packed));

static bool is_ours(const struct note *note)
{
    return note->head.n_namesz == sizeof(NOTE_OWNER) &&
           note->head.n_descsz == sizeof(note->distance) && note->head.n_type == NOTE_POINTER &&
           memcmp(note->owner, NOTE_OWNER, sizeof(NOTE_OWNER)) == 0;
}

static bool is_writable(const struct dl_phdr_info *module, uint64_t address)
{
    for (size_t i = 0; i < module->dlpi_phnum; i++) {
        const Elf64_Phdr *segment = module->dlpi_phdr + i;
        const uint64_t offset = address - module->dlpi_addr - segment->p_vaddr;
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W) != 0 &&
            segment->p_memsz >= sizeof(void *) && offset <= segment->p_memsz - sizeof(void *)) {
            return address % sizeof(void *) == 0;
        }
    }
    return false;
}

static void
tell(const struct dl_phdr_info *module, const struct note *note, const struct cairn_api *api)
{
    const uint64_t here = (uint64_t)note + offsetof(struct note, distance);
    const uint64_t address = here + (uint64_t)note->distance;
    if (is_writable(module, address)) {
        _Atomic(const struct cairn_api *) *pointer =
            (_Atomic(const struct cairn_api *) *)address; // NOLINT(performance-no-int-to-ptr)
        const struct cairn_api *none = NULL;
        // Release: the program's load, which depends on nothing else, sees the table whole.
        (void)atomic_compare_exchange_strong_explicit(pointer, &none, api, memory_order_release,
                                                      memory_order_relaxed); // set already
    }
}

// Notes are aligned to 4 bytes. Those aligned to 8 (.note.gnu.property) have lengths for which that
// is the same.
static uint64_t padded(uint64_t bytes)
{
    return (bytes + 3) & ~(uint64_t)3;
}

static void read_notes(const struct dl_phdr_info *module,
                       const Elf64_Phdr *segment,
                       const struct cairn_api *api)
{
    const char *at =
        (const char *)(module->dlpi_addr + segment->p_vaddr); // NOLINT(performance-no-int-to-ptr)
    uint64_t left = segment->p_memsz;
    while (left >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr head;
        memcpy(&head, at, sizeof(head));
        const uint64_t bytes = sizeof(head) + padded(head.n_namesz) + padded(head.n_descsz);
        if (bytes > left) {
            return;
        }
        const struct note *note = (const struct note *)(const void *)at;
        if (bytes >= sizeof(*note) && is_ours(note)) {
            tell(module, note, api);
        }
        at += bytes;
        left -= bytes;
    }
}

static int visit(struct dl_phdr_info *module, size_t size, void *context)
{
    (void)size;
    for (size_t i = 0; i < module->dlpi_phnum; i++) {
        if (module->dlpi_phdr[i].p_type == PT_NOTE) {
            read_notes(module, module->dlpi_phdr + i, context);
        }
    }
    return 0;
}

void announce_api(const struct cairn_api *api)
{
    (void)dl_iterate_phdr(visit, (void *)(uintptr_t)api); // always 0
}
