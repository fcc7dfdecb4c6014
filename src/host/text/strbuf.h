// SPDX-License-Identifier: MIT
// strbuf: a growable string, always terminated by a zero.
//
// Appending does not report failures. After the first append without memory, or beyond `most`,
// `failed` is set and
// later appends do nothing; the caller checks once, at the end, with strbuf_result. A zeroed strbuf
// is empty and valid. It may hold zero bytes.
// Invariant: data is NULL, or data[len] == 0 and len < cap. Context: H; one thread at a time.
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/bytes.h"
#include "base/err.h"

struct strbuf {
    char *data; // owned; NULL until the first append. Read it with strbuf_text
    size_t len;
    size_t cap;
    size_t most; // bytes that it may hold, set by its owner; 0: any number
    bool failed;
};

// Release and zero. Accepts a zeroed or released strbuf.
void strbuf_release(struct strbuf *sb);

// Remove the text, keep the memory and reset `failed`.
void strbuf_clear(struct strbuf *sb);

// Shorten to `len` bytes. Does nothing if the text is shorter.
void strbuf_truncate(struct strbuf *sb, size_t len);

void strbuf_append(struct strbuf *sb, const void *data, size_t len);
void strbuf_append_text(struct strbuf *sb, const char *text);
void strbuf_append_char(struct strbuf *sb, char character);
// Append two lower-case hexadecimal digits for each byte.
void strbuf_append_hex(struct strbuf *sb, struct bytes bytes);
// Append a decimal number, ten times as fast as strbuf_printf.
void strbuf_append_integer(struct strbuf *sb, int64_t number);

void strbuf_printf(struct strbuf *sb, const char *format, ...) PRINTF_LIKE(2, 3);
void strbuf_vprintf(struct strbuf *sb, const char *format, va_list arguments) PRINTF_LIKE(2, 0);

// Return a stream that appends what is written to it, or NULL without memory. The text is whole
// when the stream is closed; `failed` says then whether it is.
FILE *strbuf_open_stream(struct strbuf *sb) MUST_USE;

// Make room for `extra` more bytes and the terminator. The caller may write them at data + len and
// then add to len. Return false (and set `failed`) if memory is short.
bool strbuf_reserve(struct strbuf *sb, size_t extra) MUST_USE;

// Return the text so far, never NULL; borrowed until the next append.
static inline const char *strbuf_text(const struct strbuf *sb)
{
    return sb->data != NULL ? sb->data : "";
}

static inline struct bytes strbuf_bytes(const struct strbuf *sb)
{
    return (struct bytes){.data = (const uint8_t *)strbuf_text(sb), .len = sb->len};
}

// Return ERR_NO_MEMORY if any append since the last clear failed.
static inline MUST_USE enum err strbuf_result(const struct strbuf *sb)
{
    return sb->failed ? ERR_NO_MEMORY : ERR_OK;
}

// Move the text out; the caller frees it. Return NULL if an append failed or memory is short.
// Leaves a zeroed strbuf.
char *strbuf_take(struct strbuf *sb) MUST_USE;
