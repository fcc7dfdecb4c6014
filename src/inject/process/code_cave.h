// SPDX-License-Identifier: MIT
// code_cave: the bytes behind a module's code that nothing uses.
//
// The last page of a module's text is mapped whole, and its code seldom fills it. Context: H.
#pragma once

#include <sys/mman.h>

#include "host/containers/address_range.h"
#include "host/memory/page_size.h"
#include "inject/process/target_process.h"

// Return the unused end of a module's executable pages, empty if there is none.
static inline struct address_range code_cave_of(const struct target_process *target,
                                                const struct target_module *module)
{
    const uint64_t start = (module->text_end + 15) & ~UINT64_C(15);
    const uint64_t end = page_end(start);
    const struct target_mapping *mapping =
        end > start ? target_process_mapping_at(target, start) : NULL;
    const bool is_there =
        mapping != NULL && (mapping->prot & PROT_EXEC) != 0 && end <= mapping->end;
    return (struct address_range){.start = start, .end = is_there ? end : start};
}
