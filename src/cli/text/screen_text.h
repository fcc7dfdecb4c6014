// SPDX-License-Identifier: MIT
// screen_text: untrusted names, made safe and short enough for a line of a terminal.
//
// Names and paths come from the recording and may hold any bytes. Characters that a terminal would
// obey or hide (control characters, escape sequences, text direction overrides) and invalid UTF-8
// are shown as \x1b or \u{202e}, visible and without effect. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "host/text/format.h"
#include "host/text/strbuf.h"

// Append `text`, made safe.
void screen_append(struct strbuf *out, const char *text);

// Return the columns of safe text: two for each East Asian wide character, one for any other.
size_t screen_columns(const char *text);

enum screen_cut {
    SCREEN_CUT_MIDDLE, // for functions: both ends are informative
    SCREEN_CUT_START,  // for paths: the end is most informative
};

// Append safe text in at most `columns` columns; the omitted part becomes "...".
void screen_append_cut(struct strbuf *out, const char *safe, size_t columns, enum screen_cut cut);

// Append a function's name in at most `columns` columns: its longest form that fits, or the
// shortest form, truncated, if none fits.
void screen_append_function(struct strbuf *out, const char *function, size_t columns);

// Return the bytes of the words of safe text that fit in `columns` columns; of the first word if
// even that does not. A figure and its unit, "8.21 s", are one word.
size_t screen_fitting_words(const char *safe, size_t columns);

// Print the words of safe text in lines of `columns`, each indented.
void screen_print_wrapped(FILE *out, const char *safe, unsigned indent, size_t columns);

bool screen_ends_with(const char *text, const char *end);

// Format the recorder's milliseconds: "5.68 s", "<1 ms" for 0.
struct human screen_format_ms(uint64_t duration_ms);

// Colours, as escape sequences; "" without colour.
enum paint {
    PAINT_TITLE,
    PAINT_COST,
    PAINT_FUNCTION,
    PAINT_PLACE,
    PAINT_WARNING,
    PAINT_GOOD,
};

const char *paint_begin(bool use_color, enum paint paint);
const char *paint_end(bool use_color);
