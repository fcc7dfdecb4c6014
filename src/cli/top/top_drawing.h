// SPDX-License-Identifier: MIT
// top_drawing: a picture of `cairn top`, made line by line, and figures as both forms of cairn top
// write them.
//
// top_picture.c draws what is around the list, top_list.c the list. A line is collected in `line`
// and moves to the picture at its end. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cli/top/top_model.h"
#include "host/containers/vec.h"
#include "host/text/format.h"
#include "host/text/strbuf.h"

enum top_style {
    TOP_STYLE_PLAIN,
    TOP_STYLE_TITLE, // of the screen
    TOP_STYLE_CHART,
    TOP_STYLE_NOTE,   // what deserves attention
    TOP_STYLE_HEAD,   // of the list
    TOP_STYLE_CURSOR, // the selected row
    TOP_STYLE_KEYS,
};

struct top_line {
    size_t text; // offset in `texts`
    enum top_style style;
};

DEFINE_VEC(top_line_vec, struct top_line);

struct top_picture {
    struct strbuf texts;       // owned; each line ends with a zero
    struct top_line_vec lines; // owned; at most `height`
};

struct top_size {
    unsigned width;
    unsigned height;
    bool is_utf8;
};

struct top_drawing {
    const struct top_model *model; // borrowed
    struct top_size size;
    struct top_picture *picture; // borrowed
    struct strbuf line;          // owned; the text of one line
};

void top_drawing_release(struct top_drawing *d);

// Append the line to the picture, cut to the width. The line is empty then. ERR_NO_MEMORY.
enum err top_drawing_end_line(struct top_drawing *d, enum top_style style) MUST_USE;

// Append blanks up to a column, at least `least`.
void top_drawing_blank_to(struct strbuf *line, size_t column, size_t least);

// Return whether figures of the sample have errors.
bool top_drawing_has_errors(const struct top_model *model);

// Return the columns of an error, 0 if figures have none.
unsigned top_drawing_error_columns(const struct top_drawing *d);

// Draw the head and `lines` lines of the list, or of the selected call site's stacks.
// ERR_NO_MEMORY.
enum err top_list_draw(struct top_drawing *d, size_t lines) MUST_USE;
enum err top_list_draw_stack(struct top_drawing *d, size_t lines) MUST_USE;

// Append "+1.2 MiB", "-3 B" or "0 B".
void top_append_change(struct strbuf *out, int64_t change_bytes);

// Append the figure of a column of bytes. Return false, and append nothing, for another column.
bool top_append_bytes(struct strbuf *out, const struct top_row *row, enum top_column column);

// Append the error of a figure as a share of it, " ±12%"; nothing if it is exact or unknown.
void top_append_error(struct strbuf *out, double figure, double error);

// Return a count in at most five characters: "9999", "12.3k", "1.23M".
struct human top_format_short(double count);

// Return what the recorder does: "running", "has ended", ...
const char *top_state_words(const struct top_model *model);
