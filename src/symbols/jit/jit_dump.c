// SPDX-License-Identifier: MIT
#include "symbols/jit/jit_dump.h"

#include <string.h>

#include "base/cursor.h"

enum {
    MAGIC = 0x4a695444, // in the byte order of this machine
    VERSION = 1,
    FIXED_HEADER_BYTES = 40,
    RECORD_HEADER_BYTES = 16,
    RECORD_LOAD = 0,
    RECORD_MOVE = 1
};

// Add loaded code: code number, address, size and zero-terminated name.
static enum err add_load(struct cursor *c, struct jit_map *map)
{
    (void)cursor_take(c, 8); // process and thread
    (void)cursor_u64(c);     // vma: equals the address
    const uint64_t address = cursor_u64(c);
    const uint64_t size = cursor_u64(c);
    (void)cursor_u64(c); // number
    const size_t room = cursor_left(c);
    const char *name = (const char *)cursor_take(c, room);
    const size_t len = name != NULL ? strnlen(name, room) : room;
    if (c->failed || len == room || len == 0) {
        return ERR_OK;
    }
    return jit_map_add(map, address, size, (struct bytes){(const uint8_t *)name, len});
}

// Add moved code, which keeps its name.
static enum err add_move(struct cursor *c, struct jit_map *map)
{
    (void)cursor_take(c, 8); // process and thread
    (void)cursor_u64(c);     // vma
    const uint64_t old_address = cursor_u64(c);
    const uint64_t address = cursor_u64(c);
    const uint64_t size = cursor_u64(c);
    return c->failed ? ERR_OK : jit_map_add_move(map, old_address, address, size);
}

enum err jit_dump_parse(struct bytes file, struct jit_map *map)
{
    struct cursor c = cursor_over(file);
    const uint32_t magic = cursor_u32(&c);
    const uint32_t version = cursor_u32(&c);
    const uint32_t header_bytes = cursor_u32(&c);
    if (c.failed || magic != MAGIC || version != VERSION || header_bytes < FIXED_HEADER_BYTES ||
        header_bytes > file.len) {
        return ERR_CORRUPT;
    }
    (void)cursor_take(&c, header_bytes - 12); // succeeds: checked above
    while (cursor_left(&c) >= RECORD_HEADER_BYTES) {
        const uint32_t kind = cursor_u32(&c);
        const uint32_t len = cursor_u32(&c);
        (void)cursor_u64(&c); // time
        if (len < RECORD_HEADER_BYTES || len - RECORD_HEADER_BYTES > cursor_left(&c)) {
            break;
        }
        const struct bytes body = {cursor_take(&c, len - RECORD_HEADER_BYTES),
                                   len - RECORD_HEADER_BYTES};
        struct cursor record = cursor_over(body);
        if (kind == RECORD_LOAD) {
            TRY(add_load(&record, map));
        } else if (kind == RECORD_MOVE) {
            TRY(add_move(&record, map));
        }
    }
    return ERR_OK;
}
