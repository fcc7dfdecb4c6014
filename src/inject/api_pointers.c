// SPDX-License-Identifier: MIT
#include "inject/api_pointers.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "session/api_note.h"

enum {
    NOTES_BYTES_MAX = 64 << 10,
    HEADERS_MAX = 128, // of one module
};

// The program headers of a module.
struct headers {
    Elf64_Phdr items[HEADERS_MAX];
    size_t count;
};

static bool read_headers(const struct target_process *target,
                         const struct target_module *module,
                         struct headers *out)
{
    out->count = min_u64(module->header_count, HEADERS_MAX);
    return module->headers != 0 &&
           target_process_read(target, module->headers, out->items,
                               out->count * sizeof(out->items[0])) == ERR_OK;
}

// Return the address of the module's pointer; 0: it has none.
static uint64_t find_pointer(const struct target_process *target,
                             const struct target_module *module,
                             const struct headers *headers,
                             uint8_t buffer[static NOTES_BYTES_MAX])
{
    for (size_t i = 0; i < headers->count; i++) {
        const Elf64_Phdr *segment = headers->items + i;
        const uint64_t at = module->load_bias + segment->p_vaddr;
        const size_t len = (size_t)min_u64(segment->p_memsz, NOTES_BYTES_MAX);
        if (segment->p_type != PT_NOTE || target_process_read(target, at, buffer, len) != ERR_OK) {
            continue;
        }
        struct cursor notes = cursor_over((struct bytes){.data = buffer, .len = len});
        const uint64_t pointer = api_note_next(&notes, at);
        if (pointer != 0 &&
            api_note_may_point(headers->items, headers->count, module->load_bias, pointer)) {
            return pointer;
        }
    }
    return 0;
}

// Let all pointers that are `from` be `to`.
static void replace(const struct target_process *target, uint64_t from, uint64_t to)
{
    struct headers headers;
    uint8_t *buffer = malloc(NOTES_BYTES_MAX);
    for (size_t i = 0; buffer != NULL && i < target->modules.len; i++) {
        const struct target_module *module = target->modules.items + i;
        uint64_t found = 0;
        const uint64_t pointer = read_headers(target, module, &headers)
                                     ? find_pointer(target, module, &headers, buffer)
                                     : 0;
        if (pointer != 0 && target_process_read(target, pointer, &found, sizeof(found)) == ERR_OK &&
            found == from) {
            // Fails if the process has ended.
            (void)!target_process_write(target, pointer, &to, sizeof(to));
        }
    }
    free(buffer);
}

void api_pointers_give(const struct target_process *target, uint64_t table)
{
    if (table != 0) {
        replace(target, 0, table);
    }
}

void api_pointers_take_back(const struct target_process *target, uint64_t table)
{
    if (table != 0) {
        replace(target, table, 0);
    }
}
