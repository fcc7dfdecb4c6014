// SPDX-License-Identifier: MIT
#include "host/text/strbuf.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "host/containers/memory_end.h"
#include "host/containers/vec.h"

void strbuf_release(struct strbuf *sb)
{
    free(sb->data);
    *sb = (struct strbuf){0};
}

void strbuf_clear(struct strbuf *sb)
{
    sb->failed = false;
    strbuf_truncate(sb, 0);
}

void strbuf_truncate(struct strbuf *sb, size_t len)
{
    if (len <= sb->len && sb->data != NULL) {
        sb->len = len;
        sb->data[len] = 0;
    }
}

bool strbuf_reserve(struct strbuf *sb, size_t extra)
{
    if (sb->failed) {
        return false;
    }
    if (sb->most > 0 && extra > sb->most - sb->len) {
        sb->failed = true;
        return false;
    }
    if (extra < sb->cap - sb->len) { // never equal: the terminator needs its byte
        return true;
    }
    const size_t wanted = extra < SIZE_MAX ? extra + 1 : extra; // which fails in any case
    char *grown = vec_grown(sb->data, &sb->cap, sb->len, wanted, 1);
    if (grown == NULL) {
        sb->failed = true;
        return false;
    }
    sb->data = grown;
    sb->data[sb->len] = 0;
    return true;
}

void strbuf_append(struct strbuf *sb, const void *data, size_t len)
{
    if (!strbuf_reserve(sb, len) || len == 0) {
        return;
    }
    memcpy(sb->data + sb->len, data, len);
    sb->len += len;
    sb->data[sb->len] = 0;
}

void strbuf_append_text(struct strbuf *sb, const char *text)
{
    strbuf_append(sb, text, strlen(text));
}

void strbuf_append_char(struct strbuf *sb, char character)
{
    strbuf_append(sb, &character, 1);
}

void strbuf_append_integer(struct strbuf *sb, int64_t number)
{
    char digits[20]; // of 2^63, and the sign
    size_t at = sizeof(digits);
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do {
        digits[--at] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0) {
        digits[--at] = '-';
    }
    strbuf_append(sb, digits + at, sizeof(digits) - at);
}

void strbuf_append_hex(struct strbuf *sb, struct bytes bytes)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes.len; i++) {
        strbuf_append_char(sb, digits[bytes.data[i] >> 4]);
        strbuf_append_char(sb, digits[bytes.data[i] & 15]);
    }
}

void strbuf_printf(struct strbuf *sb, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    strbuf_vprintf(sb, format, arguments);
    va_end(arguments);
}

void strbuf_vprintf(struct strbuf *sb, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int len = vsnprintf(NULL, 0, format, arguments);
    if (len < 0) {
        sb->failed = true; // only for a text of more than INT_MAX bytes
        memory_end_note(ERR_NO_MEMORY);
    } else if (strbuf_reserve(sb, (size_t)len)) {
        (void)vsnprintf(sb->data + sb->len, (size_t)len + 1, format, again); // fits: measured above
        sb->len += (size_t)len;
    }
    va_end(again);
}

static ssize_t append_written(void *sb, const char *data, size_t len)
{
    strbuf_append(sb, data, len);
    return ((const struct strbuf *)sb)->failed ? 0 : (ssize_t)len;
}

FILE *strbuf_open_stream(struct strbuf *sb)
{
    return fopencookie(sb, "w", (cookie_io_functions_t){.write = append_written});
}

char *strbuf_take(struct strbuf *sb)
{
    char *taken = NULL;
    if (strbuf_reserve(sb, 0)) {
        taken = TAKE(sb->data);
    }
    strbuf_release(sb);
    return taken;
}
