// SPDX-License-Identifier: MIT
// cursor: the only parser primitive for bytes from outside.
//
// A cursor walks a borrowed range and never leaves it. After the first read that does not fit, or a
// varint that is too long, `failed` is set, every later read returns 0, and the position stays; so
// a parser may read a whole record and test `failed` once. Invariant: at <= end. Context: T and H;
// allocates nothing.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct cursor {
    const uint8_t *start;
    const uint8_t *at;
    const uint8_t *end;
    bool failed;
};

static inline struct cursor cursor_over(struct bytes range)
{
    return (struct cursor){
        .start = range.data, .at = range.data, .end = range.data + range.len, .failed = false};
}

static inline size_t cursor_left(const struct cursor *c)
{
    return (size_t)(c->end - c->at);
}

static inline size_t cursor_offset(const struct cursor *c)
{
    return (size_t)(c->at - c->start);
}

// Advance over `len` bytes and return their beginning, or fail and return NULL if they do not
// exist.
const uint8_t *cursor_take(struct cursor *c, size_t len);

uint8_t cursor_u8(struct cursor *c);
uint16_t cursor_u16(struct cursor *c);
uint32_t cursor_u32(struct cursor *c);
uint64_t cursor_u64(struct cursor *c);

// Read a LEB128, as DWARF section 7.6 defines it; more than 64 significant bits fail.
uint64_t cursor_uleb(struct cursor *c);
int64_t cursor_sleb(struct cursor *c);

// Read a zero-terminated string, borrowed from the range. Without a terminator fail, and return "".
const char *cursor_string(struct cursor *c);
