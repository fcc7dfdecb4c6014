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

#include "profile/calls/call_tree.h"
#include "profile/model/cost.h"
#include "views_json/layout/view.h"

// The type of a field of the row struct, and how it is written.
enum cell_kind {
    CELL_U64,
    CELL_U32,
    CELL_POSITION, // uint32_t; null if it is REC_NONE
    CELL_BOOL,
    CELL_OPTIONAL, // uint64_t; null if it is VALUE_UNKNOWN
    CELL_DOUBLE,   // null if it is not a number
    CELL_TEXT,     // const char *; null if it is NULL
    CELL_STRING,   // rec_string of the profile
    CELL_LOCATION, // struct place
    CELL_FUNCTION, // uint32_t: id in the code union, or REC_NONE
    CELL_COSTS,    // struct costs; unknown ones are null
    CELL_COSTS_AT, // const struct costs *; NULL: all 0
    CELL_ERRORS,   // struct costs, whose errors are written (sampling_errors)
    CELL_ERRORS_AT,
    CELL_FRAMES, // struct frame_list; written as `frames`, or as frame_first and frame_count
    CELL_WRITE,  // written by column.write
};

#define VALUE_UNKNOWN UINT64_MAX

// A location of one side's recording, or REC_NONE.
struct place {
    enum side side;
    uint32_t location;
};

// A stack, innermost frame first: the path from a node of a tree by location to the root, or a
// list.
struct frame_list {
    const struct call_tree *tree; // borrowed; NULL: use the list
    uint32_t node;                // of the tree; 0: no frames
    const uint32_t *locations;    // borrowed
    const uint32_t *inlined;      // borrowed
    size_t count;                 // of the list
};

// A frame of a list.
struct frame_at {
    uint32_t location;
    bool is_inlined;
    uint32_t frame; // of the recording; REC_NONE if unknown
};

// Columns that only some answers have: bits of column.when and table.has.
enum column_when {
    ALWAYS = 0,
    WHEN_COMPARED = 1 << 0, // set if the view has two selections
    WHEN_COLUMNS = 1 << 1,  // set in VIEW_COLUMNS
    WHEN_BY_FUNCTION = 1 << 2,
    WHEN_BY_LOCATION = 1 << 3,
    WHEN_SEARCHED = 1 << 4,
    WHEN_STACKS = 1 << 5,
    WHEN_SAMPLED = 1 << 6,     // set if errors of estimates are known
    WHEN_OLD_SAMPLED = 1 << 7, // set if the view has two selections, and the old was so
    WHEN_FOLDED = 1 << 8,      // of a tree with folded wrapper frames
    WHEN_CHANGES_HAVE_ERRORS = 1 << 9,
    WHEN_FOR_PAGE = 1 << 10, // for a page that adds up nodes itself (web/src/api/report-errors.ts)
};

struct column {
    const char *key;
    enum cell_kind kind;
    size_t offset;                                     // in the row struct
    uint32_t when;                                     // bits of enum column_when: all must hold
    void (*write)(struct view *view, const void *row); // for CELL_WRITE: writes one JSON value
};

struct table {
    const char *key;
    const struct column *columns;
    size_t column_count;
    const void *rows;
    size_t row_bytes;
    size_t count;
    uint32_t has;     // bits of enum column_when
    uint32_t unknown; // bit n: this table lacks enum cost n, besides what the selection lacks
};

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

// Whether the answer has this column of the table.
bool view_has_column(const struct view *view, const struct table *table, size_t column);

// Write a cell that is one JSON value in both layouts, without its key.
void view_value(struct view *view,
                const struct table *table,
                const struct column *column,
                size_t row);

// The costs in a cell; all 0 where there are none. `errors` is storage for a cell of errors.
// Without those of view_unknown_at(): such a cost is null, or an empty cell.
const struct costs *view_costs_at(const struct view *view,
                                  const struct table *table,
                                  const struct column *column,
                                  size_t row,
                                  struct costs *errors);

// The costs that are unknown in a column: bit n for enum cost n.
uint32_t
view_unknown_at(const struct view *view, const struct table *table, const struct column *column);

// The costs that are unknown on one side of the view.
uint32_t view_unknown(const struct view *view, enum side side);

// Iterate over a stack, innermost frame first. `place` begins with frame_list_begin(). Return false
// after the last frame.
uint32_t frame_list_begin(const struct frame_list *frames);
bool frame_list_next(const struct frame_list *frames, uint32_t *place, struct frame_at *out);

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
