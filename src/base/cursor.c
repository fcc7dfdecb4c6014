// SPDX-License-Identifier: MIT
#include "base/cursor.h"

const uint8_t *cursor_take(struct cursor *c, size_t len)
{
    if (c->failed || len > cursor_left(c)) {
        c->failed = true;
        return NULL;
    }
    const uint8_t *taken = c->at;
    c->at += len;
    return taken;
}

uint8_t cursor_u8(struct cursor *c)
{
    const uint8_t *at = cursor_take(c, 1);
    return at != NULL ? *at : 0;
}

uint16_t cursor_u16(struct cursor *c)
{
    const uint8_t *at = cursor_take(c, 2);
    return at != NULL ? get_u16(at) : 0;
}

uint32_t cursor_u32(struct cursor *c)
{
    const uint8_t *at = cursor_take(c, 4);
    return at != NULL ? get_u32(at) : 0;
}

uint64_t cursor_u64(struct cursor *c)
{
    const uint8_t *at = cursor_take(c, 8);
    return at != NULL ? get_u64(at) : 0;
}

uint64_t cursor_uleb(struct cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte = cursor_u8(c);
        if (c->failed) {
            return 0;
        }
        uint64_t part = byte & 0x7f;
        if (shift == 63 && part > 1) {
            break;
        }
        value |= part << shift;
        if ((byte & 0x80) == 0) {
            return value;
        }
    }
    c->failed = true;
    return 0;
}

int64_t cursor_sleb(struct cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        uint8_t byte = cursor_u8(c);
        if (c->failed) {
            return 0;
        }
        value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
        if ((byte & 0x80) == 0) {
            unsigned used = shift + 7;
            if (used < 64 && (byte & 0x40) != 0) {
                value |= ~(uint64_t)0 << used;
            }
            return (int64_t)value;
        }
    }
    c->failed = true;
    return 0;
}

const char *cursor_string(struct cursor *c)
{
    for (const uint8_t *p = c->at; !c->failed && p < c->end; p++) {
        if (*p == 0) {
            const char *text = (const char *)c->at;
            c->at = p + 1;
            return text;
        }
    }
    c->failed = true;
    return "";
}
