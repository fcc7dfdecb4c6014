// SPDX-License-Identifier: MIT
// top_list: the list of call sites in a picture, and the call stacks that take its place.
//
// A narrow screen has fewer columns; that of the order is always shown. Function and place share
// what the columns leave.
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "cli/text/location_text.h"
#include "cli/text/screen_text.h"
#include "cli/top/top_drawing.h"
#include "host/os/file.h"
#include "host/text/format.h"

enum {
    SORTED_WIDTH_MIN = 40, // from here on, the column of the order is shown in any case
    FUNCTION_COLUMNS_MIN = 16,
    PLACE_COLUMNS_MAX = 40,
};

// Columns of the list by the width of the screen that they need, and that their errors need.
static const struct {
    enum top_column column;
    unsigned width_min;
    unsigned error_width_min;
} shown[] = {
    {TOP_LIVE, 0, 60},        {TOP_CHANGE, 50, 90},        {TOP_RATE, 60, 120},
    {TOP_TEMPORARY, 70, 130}, {TOP_ALLOCATIONS, 100, 140}, {TOP_PEAK, 110, 110},
};

static bool is_shown(const struct top_drawing *d, size_t column)
{
    const bool is_order = shown[column].column == d->model->sort;
    return d->size.width >= (is_order ? min_u64(SORTED_WIDTH_MIN, shown[column].width_min)
                                      : shown[column].width_min);
}

static bool is_error_shown(const struct top_drawing *d, size_t column)
{
    return top_drawing_has_errors(d->model) && is_shown(d, column) &&
           (shown[column].column == d->model->sort ||
            d->size.width >= shown[column].error_width_min);
}

// Append the error of a cell in a column of its own, or its title.
static void append_error(struct top_drawing *d, const char *text)
{
    const size_t columns = top_drawing_error_columns(d) - 1;
    // Its sign becomes two characters without UTF-8.
    const size_t used = screen_columns(text) + (!d->size.is_utf8 && text[0] != '\0');
    strbuf_printf(&d->line, "%*s%s  ", (int)(columns > used ? columns - used : 0), "", text);
}

// Append function and place of a location in the rest of the line. `inner`: the number of further
// frames that the line stands for.
static void
append_location(struct top_drawing *d, uint32_t location, bool is_inlined, uint32_t inner)
{
    const struct profile *profile = d->model->sample->profile;
    CLEANUP(strbuf_release) struct strbuf place = {0};
    CLEANUP(strbuf_release) struct strbuf cut = {0};
    const size_t used = screen_columns(strbuf_text(&d->line));
    const size_t rest = d->size.width > used ? d->size.width - used : 0;
    location_append_line(&place, profile, location, false);
    if (place.len == 0 && location != REC_NONE && !location_names_module(profile, location)) {
        screen_append(&place, path_file_name(profile_location_module(profile, location)));
    }
    const size_t room = rest > FUNCTION_COLUMNS_MIN + 2 ? rest - FUNCTION_COLUMNS_MIN - 2 : 0;
    screen_append_cut(&cut, strbuf_text(&place),
                      min_u64(min_u64(room, rest / 2), PLACE_COLUMNS_MAX), SCREEN_CUT_START);
    char others[96] = "";
    if (inner > 0) {
        (void)snprintf(others, sizeof(others), " (+ %s)",
                       format_things(inner, "frame", "frames").text); // fits
    }
    const size_t taken = cut.len > 0 ? screen_columns(strbuf_text(&cut)) + 2 : 0;
    location_append_function(&d->line, profile, location, is_inlined,
                             rest - min_u64(taken + strlen(others), rest));
    strbuf_append_text(&d->line, others);
    if (cut.len > 0) {
        top_drawing_blank_to(&d->line, d->size.width - (taken - 2), 2);
        strbuf_append_text(&d->line, strbuf_text(&cut));
    }
}

static void append_cell(struct top_drawing *d, const struct top_row *row, enum top_column column)
{
    CLEANUP(strbuf_release) struct strbuf cell = {0};
    if (!top_append_bytes(&cell, row, column)) {
        strbuf_append_text(&cell, top_format_short(top_row_value(row, column)).text);
    }
    strbuf_printf(&d->line, "%*s  ", (int)top_column_get(column)->columns, strbuf_text(&cell));
}

// Append the cells of a column, if it is shown: the figure and its error.
static void append_cells(struct top_drawing *d, const struct top_row *row, size_t column)
{
    const enum top_column of = shown[column].column;
    CLEANUP(strbuf_release) struct strbuf error = {0};
    if (is_shown(d, column)) {
        append_cell(d, row, of);
    }
    if (is_error_shown(d, column)) {
        top_append_error(&error, top_row_value(row, of), row->errors[of]);
        append_error(d, strbuf_text(&error) + (error.len > 0)); // without its blank
    }
}

enum err top_list_draw(struct top_drawing *d, size_t lines)
{
    const struct top_model *model = d->model;
    for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
        if (is_shown(d, i)) {
            const struct top_column_info *info = top_column_get(shown[i].column);
            const char *mark = shown[i].column != model->sort ? " "
                               : model->is_inverted           ? "^"
                                                              : "v";
            strbuf_printf(&d->line, "%*s%s ", (int)info->columns, info->title, mark);
        }
        if (is_error_shown(d, i)) {
            append_error(d, "±");
        }
    }
    strbuf_append_text(&d->line, "FUNCTION");
    top_drawing_blank_to(&d->line, d->size.width > 5 ? d->size.width - 5 : 0, 2);
    strbuf_append_text(&d->line, "PLACE");
    TRY(top_drawing_end_line(d, TOP_STYLE_HEAD));
    for (size_t i = model->first; i < model->first + lines; i++) {
        if (i < model->rows.len) {
            const struct top_row *row = &model->rows.items[i];
            const struct call_site *site = &model->sample->sites.sites.items[row->site];
            for (size_t column = 0; column < ARRAY_LEN(shown); column++) {
                append_cells(d, row, column);
            }
            append_location(d, site->location, false, 0); // the place says more
        } else if (i == 0) {
            strbuf_append_text(&d->line, model->filter.len > 0 ? "No call site matches the filter."
                                                               : "Nothing was allocated so far.");
        }
        TRY(top_drawing_end_line(d, i == model->cursor && i < model->rows.len ? TOP_STYLE_CURSOR
                                                                              : TOP_STYLE_PLAIN));
    }
    return ERR_OK;
}

// Append a cost of a stack with its error.
static void append_cost(struct top_drawing *d, const struct costs *costs, enum cost cost)
{
    const uint64_t value = costs_get(costs, cost);
    const struct costs errors = sampling_errors(&d->model->sample->sampling, costs);
    strbuf_append_text(&d->line, cost_get_info(cost)->unit == COST_UNIT_BYTES
                                     ? format_bytes(value).text
                                     : format_count(value).text);
    top_append_error(&d->line, (double)value, (double)costs_get(&errors, cost));
}

static void append_stack_line(struct top_drawing *d, const struct top_stack_line *line)
{
    if (!line->is_title) {
        strbuf_append_text(&d->line, "    ");
        append_location(d, line->location, line->is_inlined, line->inner);
        return;
    }
    const uint64_t blocks = costs_get(&line->costs, COST_LEAKED_ALLOCATIONS);
    const uint64_t allocations = costs_get(&line->costs, COST_ALLOCATIONS);
    append_cost(d, &line->costs, COST_LEAKED_BYTES);
    strbuf_append_text(&d->line, " in ");
    append_cost(d, &line->costs, COST_LEAKED_ALLOCATIONS);
    strbuf_append_text(&d->line, blocks == 1 ? " block; " : " blocks; ");
    append_cost(d, &line->costs, COST_ALLOCATIONS);
    strbuf_append_text(&d->line, allocations == 1 ? " allocation, " : " allocations, ");
    append_cost(d, &line->costs, COST_TEMPORARY);
    strbuf_append_text(&d->line, " temporary");
}

enum err top_list_draw_stack(struct top_drawing *d, size_t lines)
{
    const struct top_model *model = d->model;
    strbuf_append_text(&d->line, "Call stacks, innermost function first, most unfreed bytes first");
    TRY(top_drawing_end_line(d, TOP_STYLE_HEAD));
    for (size_t i = model->stack_first; i < model->stack_first + lines; i++) {
        const struct top_stack_line *line = i < model->stack.len ? &model->stack.items[i] : NULL;
        if (line != NULL) {
            append_stack_line(d, line);
        }
        TRY(top_drawing_end_line(d, line != NULL && line->is_title ? TOP_STYLE_NOTE
                                                                   : TOP_STYLE_PLAIN));
    }
    return ERR_OK;
}
