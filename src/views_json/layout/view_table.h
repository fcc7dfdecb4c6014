// SPDX-License-Identifier: MIT
// view_table: the tables of an answer, described by their columns and written in either layout.
//
//   static const struct column columns[] = {COLUMN(CELL_U64, sample, time_ms), ...};
//   view_table(view, &TABLE("samples", columns, rows, count));
//
//   VIEW_ROWS                                    VIEW_COLUMNS
//   "samples": [{"time_ms": 7}, ...]             "samples": {"count": 2, "time_ms": [7, 9]}
//
// Context: H.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "views_json/layout/view_cell.h"

// Columns: a field under its own name, under another name, in some answers only, or written by a
// function.
#define COLUMN(kind, row, field)            COLUMN_AS(#field, kind, row, field)
#define COLUMN_AS(key, kind, row, field)    COLUMN_AS_WHEN(key, ALWAYS, kind, row, field)
#define COLUMN_WHEN(when, kind, row, field) COLUMN_AS_WHEN(#field, when, kind, row, field)
#define COLUMN_AS_WHEN(key, when, kind, row, field) \
    COLUMN_OF(key, kind, offsetof(struct row, field), when, NULL)
#define COLUMN_WRITTEN(key, write) COLUMN_OF(key, CELL_WRITE, 0, ALWAYS, write)
#define COLUMN_OF(key, kind, offset, when, write) \
    {                                             \
        key, kind, offset, when, write            \
    }
// The errors of costs, of the new recording or the old one.
#define COLUMN_ERRORS(key, kind, row, field) COLUMN_AS_WHEN(key, WHEN_SAMPLED, kind, row, field)
#define COLUMN_OLD_ERRORS(key, kind, row, field) \
    COLUMN_AS_WHEN(key, WHEN_OLD_SAMPLED, kind, row, field)
// Two fields with costs, such as self and total, old_self and old_total, and the errors of all.
#define COLUMNS_COMPARED(row, self, total)                                          \
    COLUMN(CELL_COSTS_AT, row, self), COLUMN(CELL_COSTS_AT, row, total),            \
        COLUMN_WHEN(WHEN_COMPARED, CELL_COSTS_AT, row, old_##self),                 \
        COLUMN_WHEN(WHEN_COMPARED, CELL_COSTS_AT, row, old_##total),                \
        COLUMN_ERRORS(#self "_errors", CELL_ERRORS_AT, row, self),                  \
        COLUMN_ERRORS(#total "_errors", CELL_ERRORS_AT, row, total),                \
        COLUMN_OLD_ERRORS("old_" #self "_errors", CELL_ERRORS_AT, row, old_##self), \
        COLUMN_OLD_ERRORS("old_" #total "_errors", CELL_ERRORS_AT, row, old_##total)

#define TABLE(key, columns, rows, count) \
    ((struct table){key, columns, ARRAY_LEN(columns), rows, sizeof(*(rows)), count, 0, 0})

void view_table(struct view *view, const struct table *table);

// In rows: write the members of one row into an object that the caller opened.
void view_row(struct view *view, const struct table *table, size_t row);

// Write single values, in either layout, as fields of an open object.
void view_function(struct view *view, const char *key, uint32_t function);
void view_location(struct view *view, struct place place);

// Write an object of the costs in `bits`; those in `unknown` are null.
void view_costs(
    struct view *view, const char *key, uint64_t bits, uint32_t unknown, const struct costs *costs);

// Write the errors of the costs of one side, unless it is exact. Those of unknown costs are null.
void view_errors(
    struct view *view, enum side side, const char *key, uint64_t bits, const struct costs *costs);

// Write the field `frames`: in rows as in a table, in columns as positions of locations.
void view_frames(struct view *view, const struct frame_list *frames);

// Write an array of numbers under a key.
void view_numbers(struct view *view, const char *key, const uint64_t *items, size_t count);
