// SPDX-License-Identifier: MIT
// screen_text: strangers' names, made safe and short enough for a terminal's line.
//
// Names and paths come from the recording and may hold anything. What a terminal would obey or hide
// (control characters, escape sequences, text direction overrides) and bytes that are no UTF-8 are
// shown as \x1b or \u{202e}, so that they can be seen and do nothing.
// Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "host/text/format.h"
#include "host/text/strbuf.h"

// Appends `text`, made safe.
void screen_append(struct strbuf *out, const char *text);

// How many columns safe text takes: East Asian wide characters two, others one.
size_t screen_columns(const char *text);

enum screen_cut {
    SCREEN_CUT_MIDDLE, // for functions: both ends tell something
    SCREEN_CUT_START,  // for paths: the end tells most
};

// Appends safe text in at most `columns` columns; what does not fit becomes "...".
void screen_append_cut(struct strbuf *out, const char *safe, size_t columns, enum screen_cut cut);

// Appends a function's name in at most `columns` columns: its longest form that fits, and the
// shortest one cut if none does.
void screen_append_function(struct strbuf *out, const char *function, size_t columns);

// Prints the words of safe text over as many lines of `columns` as it takes, each indented.
void screen_print_wrapped(FILE *out, const char *safe, unsigned indent, size_t columns);

// The part of a path after its last slash.
const char *screen_basename(const char *path);

bool screen_ends_with(const char *text, const char *end);

// The recorder's clock counts milliseconds: "5.68 s", "<1 ms" for 0.
struct human screen_format_ms(uint64_t duration_ms);
