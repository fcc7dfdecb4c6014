// SPDX-License-Identifier: MIT
// screen_text: escapes, measures and truncates text. See screen_text.h.
#include "cli/text/screen_text.h"

#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/text/utf8.h"
#include "host/text/visible_text.h"
#include "profile/model/function_name.h"

struct code_range {
    uint32_t first;
    uint32_t last;
};

static const struct code_range wide_ranges[] = {
    {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xac00, 0xd7a3},
    {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
    {0x1f300, 0x1f64f}, {0x1f680, 0x1f9ff}, {0x20000, 0x3fffd},
};

static bool is_wide(uint32_t code)
{
    for (size_t i = 0; i < ARRAY_LEN(wide_ranges); i++) {
        if (code >= wide_ranges[i].first && code <= wide_ranges[i].last) {
            return true;
        }
    }
    return false;
}

void screen_append(struct strbuf *out, const char *text)
{
    visible_append(out, text);
}

// Return the columns and set the length of the character at `text`. An invalid byte takes one
// column.
static size_t measure_columns(const char *text, size_t *len)
{
    uint32_t code = 0;
    *len = utf8_decode(text, &code);
    if (*len == 0) {
        *len = 1;
        return 1;
    }
    return is_wide(code) ? 2 : 1;
}

size_t screen_columns(const char *text)
{
    size_t columns = 0;
    while (*text != '\0') {
        size_t len;
        columns += measure_columns(text, &len);
        text += len;
    }
    return columns;
}

// Return the length in bytes of the longest prefix of `text` that fits.
static size_t fitting_bytes(const char *text, size_t columns)
{
    size_t at = 0;
    size_t used = 0;
    while (text[at] != '\0') {
        size_t len;
        used += measure_columns(text + at, &len);
        if (used > columns) {
            break;
        }
        at += len;
    }
    return at;
}

void screen_append_cut(struct strbuf *out, const char *safe, size_t columns, enum screen_cut cut)
{
    static const char dots[] = "...";
    size_t whole = screen_columns(safe);
    if (whole <= columns) {
        strbuf_append_text(out, safe);
        return;
    }
    if (columns < sizeof(dots)) {
        strbuf_append(out, safe, fitting_bytes(safe, columns));
        return;
    }
    size_t kept = columns - (sizeof(dots) - 1);
    size_t head = cut == SCREEN_CUT_MIDDLE ? (kept + 1) / 2 : 0;
    strbuf_append(out, safe, fitting_bytes(safe, head));
    strbuf_append_text(out, dots);
    size_t tail = fitting_bytes(safe, whole - (kept - head));
    // A wide character at the border makes the tail one column too long: skip it.
    while (screen_columns(safe + tail) > kept - head) {
        size_t len;
        (void)measure_columns(safe + tail, &len); // only its length is needed
        tail += len;
    }
    strbuf_append_text(out, safe + tail);
}

void screen_append_function(struct strbuf *out, const char *function, size_t columns)
{
    CLEANUP(strbuf_release) struct strbuf form = {0};
    CLEANUP(strbuf_release) struct strbuf safe = {0};
    for (int kind = NAME_NO_RETURN_TYPE; kind < NAME_FORM_COUNT; kind++) {
        strbuf_clear(&form);
        strbuf_clear(&safe);
        name_append(&form, function, (enum name_form)kind);
        screen_append(&safe, strbuf_text(&form));
        if (screen_columns(strbuf_text(&safe)) <= columns) {
            break;
        }
    }
    screen_append_cut(out, strbuf_text(&safe), columns, SCREEN_CUT_MIDDLE);
}

// Return whether a unit begins here, perhaps with punctuation after it.
static bool is_unit(const char *text)
{
    static const char *const units[] = {"B",  "KiB", "MiB", "GiB", "TiB", "PiB", "EiB",
                                        "ns", "us",  "ms",  "s",   "min", "h",   "d"};
    const size_t len = strcspn(text, " .,;:)");
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (strlen(units[i]) == len && memcmp(units[i], text, len) == 0) {
            return true;
        }
    }
    return false;
}

// Return the bytes of the first word.
static size_t word_len(const char *text)
{
    const size_t len = strcspn(text, " ");
    const bool is_figure = len > 0 && text[len - 1] >= '0' && text[len - 1] <= '9';
    return is_figure && text[len] == ' ' && is_unit(text + len + 1)
               ? len + 1 + strcspn(text + len + 1, " ")
               : len;
}

// Return the columns of the first `len` bytes.
static size_t columns_of(const char *text, size_t len)
{
    size_t columns = 0;
    for (size_t at = 0; at < len;) {
        size_t bytes;
        columns += measure_columns(text + at, &bytes);
        at += bytes;
    }
    return columns;
}

size_t screen_fitting_words(const char *safe, size_t columns)
{
    size_t at = word_len(safe);
    size_t used = columns_of(safe, at);
    while (safe[at] != '\0') {
        const size_t blanks = strspn(safe + at, " ");
        const size_t len = word_len(safe + at + blanks);
        used += columns_of(safe + at, blanks + len);
        if (len == 0 || used > columns) {
            break;
        }
        at += blanks + len;
    }
    return at;
}

void screen_print_wrapped(FILE *out, const char *safe, unsigned indent, size_t columns)
{
    while (*safe != '\0') {
        const size_t len = screen_fitting_words(safe, columns > indent ? columns - indent : 0);
        // Output errors are found when the stream is closed.
        (void)fprintf(out, "%*s", (int)indent, "");
        for (size_t i = 0; i < len; i++) {
            if (safe[i] != ' ' || safe[i + 1] != ' ') {
                (void)fputc(safe[i], out);
            }
        }
        (void)fputc('\n', out);
        safe += len;
        safe += strspn(safe, " ");
    }
}

bool screen_ends_with(const char *text, const char *end)
{
    size_t text_len = strlen(text);
    size_t end_len = strlen(end);
    return text_len >= end_len && strcmp(text + text_len - end_len, end) == 0;
}

struct human screen_format_ms(uint64_t duration_ms)
{
    static const struct human nothing = {.text = "<1 ms"};
    return duration_ms > 0 ? format_duration(duration_ms * NS_PER_MS) : nothing;
}

const char *paint_begin(bool use_color, enum paint paint)
{
    static const char *const codes[] = {
        [PAINT_TITLE] = "\033[1m", [PAINT_COST] = "\033[33m",    [PAINT_FUNCTION] = "\033[36m",
        [PAINT_PLACE] = "\033[2m", [PAINT_WARNING] = "\033[31m", [PAINT_GOOD] = "\033[32m",
    };
    return use_color ? codes[paint] : "";
}

const char *paint_end(bool use_color)
{
    return use_color ? "\033[0m" : "";
}
