// SPDX-License-Identifier: MIT
// view_check: the results of `cairn check`, one for each budget and each cost that may not grow.
#include "base/compiler.h"
#include "views_json/views/views.h"

static const struct column result_columns[] = {
    COLUMN(CELL_TEXT, check_row, kind),       COLUMN(CELL_TEXT, check_row, name),
    COLUMN(CELL_TEXT, check_row, measure),    COLUMN(CELL_TEXT, check_row, function),
    COLUMN(CELL_BOOL, check_row, broken),     COLUMN(CELL_BOOL, check_row, known),
    COLUMN(CELL_BOOL, check_row, certain),    COLUMN(CELL_TEXT, check_row, message),
    COLUMN(CELL_DOUBLE, check_row, value),    COLUMN(CELL_DOUBLE, check_row, limit),
    COLUMN(CELL_DOUBLE, check_row, at_least), COLUMN(CELL_DOUBLE, check_row, at_most),
    COLUMN(CELL_TEXT, check_row, file),       COLUMN(CELL_U32, check_row, line),
    COLUMN(CELL_TEXT, check_row, details),
};

void view_check(struct view *view, const struct check_view_options *options)
{
    struct json_writer *w = view->w;
    json_key_string(w, "title", options->title);
    json_key_bool(w, "passed", options->passed);
    json_key_u64(w, "runtime_ms", options->runtime_ms);
    json_key(w, "wait_status");
    if (options->wait_status != NULL) {
        json_i64(w, *options->wait_status);
    } else {
        json_null(w);
    }
    view_table(view, &TABLE("results", result_columns, options->rows, options->count));
}
