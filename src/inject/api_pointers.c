// SPDX-License-Identifier: MIT
#include "inject/api_pointers.h"

#include <elf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"

#define NOTE_OWNER "cairn"

enum {
    NOTE_POINTER = 1, // the distance from here to the pointer, 8 bytes
    NOTES_BYTES_MAX = 64 << 10,
    HEADERS_MAX = 128, // of one module
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

// As in announce.c.
static uint64_t padded(uint64_t bytes)
{
    return (bytes + 3) & ~(uint64_t)3;
}

uint64_t api_pointers_find(const uint8_t *bytes, size_t len, uint64_t addr)
{
    for (size_t at = 0; len - at >= sizeof(Elf64_Nhdr);) {
        struct note note = {0};
        memcpy(&note, bytes + at, min_u64(sizeof(note), len - at));
        const uint64_t note_bytes =
            sizeof(note.head) + padded(note.head.n_namesz) + padded(note.head.n_descsz);
        if (note_bytes > len - at) {
            return 0;
        }
        if (note_bytes >= sizeof(note) && is_ours(&note)) {
            return addr + at + offsetof(struct note, distance) + (uint64_t)note.distance;
        }
        at += note_bytes;
    }
    return 0;
}

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

static bool
is_writable(const struct headers *headers, const struct target_module *module, uint64_t address)
{
    for (size_t i = 0; i < headers->count; i++) {
        const Elf64_Phdr *segment = headers->items + i;
        const uint64_t offset = address - module->load_bias - segment->p_vaddr;
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W) != 0 &&
            segment->p_memsz >= sizeof(uint64_t) && offset <= segment->p_memsz - sizeof(uint64_t)) {
            return address % sizeof(uint64_t) == 0;
        }
    }
    return false;
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
        const uint64_t pointer = api_pointers_find(buffer, len, at);
        if (pointer != 0 && is_writable(headers, module, pointer)) {
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
