// SPDX-License-Identifier: MIT
// view_cell: the cells of a table of an answer: their types, and what all layouts read of them.
//
// view_table.h writes tables as JSON, view_csv.h as CSV. Context: H.
#pragma once

#include <stdbool.h>
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

// Whether the selection of one side is of a sampled recording.
bool view_is_sampled(const struct view *view, enum side side);

// The field of a row that a column shows.
const void *view_field_at(const struct table *table, const struct column *column, size_t row);

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

// The errors of the costs of one side, which is sampled.
struct costs view_errors_of(const struct view *view, enum side side, const struct costs *costs);

// Write a position as a value; null for REC_NONE.
void view_position(struct json_writer *w, uint32_t position);

// Iterate over a stack, innermost frame first. `place` begins with frame_list_begin(). Return false
// after the last frame.
uint32_t frame_list_begin(const struct frame_list *frames);
bool frame_list_next(const struct frame_list *frames, uint32_t *place, struct frame_at *out);
