// SPDX-License-Identifier: MIT
// strbuf: a growable string, always terminated by a zero.
//
// Appending cannot be told to fail at each call: like a cursor, a strbuf remembers. After the first
// append that finds no memory, `failed` is set and later ones do nothing; ask once, at the end,
// with strbuf_result. A zeroed strbuf is empty and valid. It may hold zero bytes. Invariant: data
// is NULL, or data[len] == 0 and len < cap. Context: H; one thread at a time.
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/err.h"

struct strbuf {
    char *data; // owned; NULL until the first append. Use strbuf_text to read
    size_t len;
    size_t cap;
    bool failed;
};

// Accepts a zeroed or released strbuf, and leaves a zeroed one.
void strbuf_release(struct strbuf *sb);

// Empties it, keeps its memory and forgets an earlier failure.
void strbuf_clear(struct strbuf *sb);

// Shortens it to `len` bytes; does nothing if it is shorter already.
void strbuf_truncate(struct strbuf *sb, size_t len);

void strbuf_append(struct strbuf *sb, const void *data, size_t len);
void strbuf_append_text(struct strbuf *sb, const char *text);
void strbuf_append_char(struct strbuf *sb, char character);
void strbuf_printf(struct strbuf *sb, const char *format, ...) PRINTF_LIKE(2, 3);
void strbuf_vprintf(struct strbuf *sb, const char *format, va_list arguments) PRINTF_LIKE(2, 0);

// Room for `extra` more bytes and the terminator; the caller may write them at data + len and then
// add to len. Returns false (and sets failed) if there is no memory.
bool strbuf_reserve(struct strbuf *sb, size_t extra) MUST_USE;

// The text so far, never NULL; borrowed until the next append.
static inline const char *strbuf_text(const struct strbuf *sb)
{
    return sb->data != NULL ? sb->data : "";
}

static inline struct bytes strbuf_bytes(const struct strbuf *sb)
{
    return (struct bytes){.data = (const uint8_t *)strbuf_text(sb), .len = sb->len};
}

// ERR_NO_MEMORY if any append since the last clear failed.
static inline MUST_USE enum err strbuf_result(const struct strbuf *sb)
{
    return sb->failed ? ERR_NO_MEMORY : ERR_OK;
}

// Moves the text out: the caller frees it. NULL if an append failed or there is no memory. Leaves a
// zeroed strbuf.
char *strbuf_take(struct strbuf *sb) MUST_USE;
