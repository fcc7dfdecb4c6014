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

#include "session/api_note.h"

static void
set_pointer(const struct dl_phdr_info *module, uint64_t address, const struct cairn_api *api)
{
    if (api_note_may_point(module->dlpi_phdr, module->dlpi_phnum, module->dlpi_addr, address)) {
        _Atomic(const struct cairn_api *) *pointer =
            (_Atomic(const struct cairn_api *) *)address; // NOLINT(performance-no-int-to-ptr)
        const struct cairn_api *none = NULL;
        // Release: the program's load, which depends on nothing else, sees the table whole.
        (void)atomic_compare_exchange_strong_explicit(pointer, &none, api, memory_order_release,
                                                      memory_order_relaxed); // set already
    }
}

static void read_notes(const struct dl_phdr_info *module,
                       const Elf64_Phdr *segment,
                       const struct cairn_api *api)
{
    const uint64_t address = module->dlpi_addr + segment->p_vaddr;
    struct cursor notes = cursor_over(
        (struct bytes){.data = (const uint8_t *)address, // NOLINT(performance-no-int-to-ptr)
                       .len = segment->p_memsz});
    uint64_t pointer;
    while ((pointer = api_note_next(&notes, address)) != 0) {
        set_pointer(module, pointer, api);
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
