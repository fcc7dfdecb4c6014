// SPDX-License-Identifier: MIT
#include "host/text/json_writer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/text/utf8.h"
#include "host/text/visible_text.h"

static bool sink_stream(void *context, const char *data, size_t len)
{
    return fwrite(data, 1, len, context) == len;
}

static bool sink_strbuf(void *context, const char *data, size_t len)
{
    struct strbuf *out = context;
    strbuf_append(out, data, len);
    return !out->failed;
}

void json_to_sink(struct json_writer *w, json_sink *sink, void *context, enum json_style style)
{
    w->sink = sink;
    w->context = context;
    w->style = style;
    w->depth = 0;
    w->has_sibling = false;
    w->after_key = false;
    w->failed = false;
    w->buffered = 0;
    if (style != JSON_BARE) {
        json_begin_object(w);
    }
}

void json_to_stream(struct json_writer *w, FILE *stream, enum json_style style)
{
    json_to_sink(w, sink_stream, stream, style);
}

void json_to_strbuf(struct json_writer *w, struct strbuf *out, enum json_style style)
{
    json_to_sink(w, sink_strbuf, out, style);
}

// Send the buffered bytes.
static void flush_buffer(struct json_writer *w)
{
    if (!w->failed && w->buffered > 0 && !w->sink(w->context, w->buffer, w->buffered)) {
        w->failed = true;
    }
    w->buffered = 0;
    if (!w->failed && w->sink == sink_stream && fflush(w->context) != 0) {
        w->failed = true;
    }
}

static void put_text(struct json_writer *w, const char *data, size_t len)
{
    while (len > 0 && !w->failed) {
        size_t room = sizeof(w->buffer) - w->buffered;
        size_t part = len < room ? len : room;
        memcpy(w->buffer + w->buffered, data, part);
        w->buffered += part;
        data += part;
        len -= part;
        if (w->buffered == sizeof(w->buffer)) {
            w->failed = !w->sink(w->context, w->buffer, w->buffered);
            w->buffered = 0;
        }
    }
}

static void put_line_break(struct json_writer *w)
{
    static const char spaces[] = "                                                                ";
    put_text(w, "\n", 1);
    size_t left = w->depth * 2;
    while (left > 0 && !w->failed) {
        size_t part = left < sizeof(spaces) - 1 ? left : sizeof(spaces) - 1;
        put_text(w, spaces, part);
        left -= part;
    }
}

// Write the comma and line break before a key, or before a value without a key.
static void put_separator(struct json_writer *w)
{
    if (w->after_key) {
        w->after_key = false;
        return;
    }
    if (w->has_sibling) {
        put_text(w, ",", 1);
    }
    if (w->style == JSON_INDENTED && w->depth > 0) {
        put_line_break(w);
    }
    w->has_sibling = true;
}

static void begin_container(struct json_writer *w, const char *bracket)
{
    put_separator(w);
    put_text(w, bracket, 1);
    w->depth++;
    w->has_sibling = false;
}

static void end_container(struct json_writer *w, const char *bracket)
{
    w->depth -= w->depth > 0 ? 1 : 0;
    if (w->style == JSON_INDENTED && w->has_sibling) {
        put_line_break(w);
    }
    put_text(w, bracket, 1);
    w->has_sibling = true; // the parent now has this member
}

void json_begin_object(struct json_writer *w)
{
    begin_container(w, "{");
}

void json_end_object(struct json_writer *w)
{
    end_container(w, "}");
}

void json_begin_array(struct json_writer *w)
{
    begin_container(w, "[");
}

void json_end_array(struct json_writer *w)
{
    end_container(w, "]");
}

// Write the escape of a character that a terminal would obey; above U+FFFF it is a pair of
// surrogates (RFC 8259, section 7).
static void put_code(struct json_writer *w, uint32_t code)
{
    char escape[16];
    const uint32_t above = code - 0x10000;
    const int len = code < 0x10000 ? snprintf(escape, sizeof(escape), "\\u%04x", code)
                                   : snprintf(escape, sizeof(escape), "\\u%04x\\u%04x",
                                              0xd800 + (above >> 10), 0xdc00 + (above & 0x3ff));
    put_text(w, escape, (size_t)len);
}

// Write the escape of one character. Return the number of its input bytes.
static size_t put_special(struct json_writer *w, const uint8_t *at, size_t left)
{
    static const char shorts[] = "b\bf\fn\nr\rt\t\"\"\\\\";
    for (size_t i = 0; i < sizeof(shorts) - 1; i += 2) {
        if ((uint8_t)shorts[i + 1] == *at) {
            char escape[2] = {'\\', shorts[i]};
            put_text(w, escape, 2);
            return 1;
        }
    }
    uint32_t code;
    size_t len = utf8_decode_bytes((const char *)at, left, &code);
    if (len == 0) {
        put_text(w, "\xef\xbf\xbd", 3);
        return 1;
    }
    if (w->style != JSON_BARE && visible_is_hidden(code)) {
        put_code(w, code);
    } else {
        put_text(w, (const char *)at, len);
    }
    return len;
}

static void put_quoted(struct json_writer *w, const char *text, size_t len)
{
    const uint8_t *bytes = (const uint8_t *)text;
    const size_t quote_len = w->style == JSON_BARE ? 0 : 1;
    put_text(w, "\"", quote_len);
    size_t at = 0;
    while (at < len && !w->failed) {
        size_t plain = at;
        while (plain < len && bytes[plain] >= 0x20 && bytes[plain] < 0x7f && bytes[plain] != '"' &&
               bytes[plain] != '\\') {
            plain++;
        }
        put_text(w, text + at, plain - at);
        at = plain;
        if (at < len && w->style == JSON_BARE && bytes[at] < 0x80) {
            put_text(w, text + at++, 1);
        } else if (at < len) {
            at += put_special(w, bytes + at, len - at);
        }
    }
    put_text(w, "\"", quote_len);
}

void json_key(struct json_writer *w, const char *key)
{
    put_separator(w);
    put_quoted(w, key, strlen(key));
    put_text(w, ": ", w->style == JSON_INDENTED ? 2 : 1);
    w->after_key = true;
}

static void put_value(struct json_writer *w, const char *text, size_t len)
{
    put_separator(w);
    put_text(w, text, len);
}

void json_value_u64(struct json_writer *w, uint64_t value)
{
    char digits[24];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    put_value(w, digits + at, sizeof(digits) - at);
}

void json_value_i64(struct json_writer *w, int64_t value)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%lld", (long long)value);
    put_value(w, digits, (size_t)len);
}

void json_value_double(struct json_writer *w, double value)
{
    if (!isfinite(value)) {
        json_value_null(w); // JSON has no NaN or infinity
        return;
    }
    char digits[40];
    int len = 0;
    for (int precision = 15; precision <= 17; precision++) {
        len = snprintf(digits, sizeof(digits), "%.*g", precision, value);
        if (strtod(digits, NULL) == value) {
            break;
        }
    }
    for (int i = 0; i < len; i++) {
        if (strchr("0123456789+-e", digits[i]) == NULL) {
            digits[i] = '.'; // replaces the decimal separator of any locale
        }
    }
    put_value(w, digits, (size_t)len);
}

void json_value_bool(struct json_writer *w, bool value)
{
    put_value(w, value ? "true" : "false", value ? 4 : 5);
}

void json_value_null(struct json_writer *w)
{
    put_value(w, "null", w->style == JSON_BARE ? 0 : 4);
}

void json_known_u64(struct json_writer *w, uint64_t value, bool is_known)
{
    if (is_known) {
        json_value_u64(w, value);
    } else {
        json_value_null(w);
    }
}

void json_value_string(struct json_writer *w, const char *text)
{
    if (text == NULL) {
        json_value_null(w);
        return;
    }
    json_value_string_bytes(w, text, strlen(text));
}

void json_value_string_bytes(struct json_writer *w, const char *text, size_t len)
{
    put_separator(w);
    put_quoted(w, text, len);
}

void json_key_known_u64(struct json_writer *w, const char *key, uint64_t value, bool is_known)
{
    json_key(w, key);
    json_known_u64(w, value, is_known);
}

void json_key_u64(struct json_writer *w, const char *key, uint64_t value)
{
    json_key(w, key);
    json_value_u64(w, value);
}

void json_key_double(struct json_writer *w, const char *key, double value)
{
    json_key(w, key);
    json_value_double(w, value);
}

void json_key_bool(struct json_writer *w, const char *key, bool value)
{
    json_key(w, key);
    json_value_bool(w, value);
}

void json_key_string(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    json_value_string(w, text);
}

void json_key_null(struct json_writer *w, const char *key)
{
    json_key(w, key);
    json_value_null(w);
}

void json_key_object(struct json_writer *w, const char *key)
{
    json_key(w, key);
    json_begin_object(w);
}

void json_key_array(struct json_writer *w, const char *key)
{
    json_key(w, key);
    json_begin_array(w);
}

enum err json_finish(struct json_writer *w)
{
    if (w->style != JSON_BARE) {
        json_end_object(w);
    }
    if (w->style == JSON_INDENTED) {
        put_text(w, "\n", 1);
    }
    flush_buffer(w);
    return w->failed ? ERR_IO : ERR_OK;
}
