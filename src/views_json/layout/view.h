// SPDX-License-Identifier: MIT
// view: one answer as JSON, for `report --json`, the HTTP API and the HTML report.
//
// A view has one writer (views.h) and two layouts (view_table.h):
//
//   VIEW_ROWS      a table is an array of objects, and code is named in place: for people and jq
//   VIEW_COLUMNS   a table is an object of arrays, and code is a position in the tables `code`
//                  and `frames` at the end of the answer: for the viewer
//
// Field names, meanings and numbers are the same in both; docs/format/json.md describes them.
//
//   json_begin_object(w);
//   TRY(view_call_sites(&view, &options));   any writers of views.h: each adds fields
//   TRY(view_end(&view));
//   json_end_object(w);
//
// A view in rows may write one of its tables as CSV instead (view_csv.h).
// Context: H; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "host/os/progress.h"
#include "host/text/json_writer.h"
#include "profile/calls/tree_view.h"
#include "profile/select/filter.h"
#include "views_json/layout/code_tables.h"

enum {
    // Version of the fields in docs/format/json.md; the same for all answers.
    VIEW_JSON_VERSION = 3
};

enum view_layout {
    VIEW_ROWS,
    VIEW_COLUMNS,
};

// A frame of a stack, for answers in columns.
struct view_frame {
    uint32_t location; // position in code.locations
    bool inlined;
};

DEFINE_VEC(view_frame_vec, struct view_frame);

enum {
    VIEW_FRAMES_MAX = 16 << 20 // a recursion has as many frames as the square of its depth
};

struct view {
    // The query and its subject. Borrowed; views of the whole run may have NULL selections.
    const struct profile *profile;
    const struct code_union *code; // of the profile, or of both of a comparison
    const struct selection *selection;
    const struct selection *old_selection; // NULL: no comparison
    const struct filter *filter;           // of the selection
    uint64_t costs;                        // bits of enum cost that cost objects contain
    enum cost sort;
    enum side_score score; // sorts the entries of a comparison

    // The output. Borrowed.
    struct json_writer *w;
    enum view_layout layout;
    struct view_csv *csv;      // NULL: JSON; else the only output (view_csv.h). Borrowed
    bool has_offsets;          // frames in rows also have their offset in the module
    struct progress *progress; // NULL: silent

    // The collected tables. Owned; view_end() empties them.
    struct code_tables tables;
    struct view_frame_vec frames;
    bool has_code;   // the answer has the tables `code`, even if they are empty
    bool has_frames; // the answer has the table `frames`
    bool is_full;    // more than VIEW_FRAMES_MAX frames: view_end() reports it
};

#define ALL_COSTS (((uint64_t)1 << COST_COUNT) - 1)

// Release what a failed writer left behind.
void view_release(struct view *view);

// End an answer: in columns, write `frames` and `code`. ERR_NO_MEMORY, also if memory has ended
// since memory_end_forget (host/containers/memory_end.h): writers need not hand it on. ERR_LIMIT:
// too many frames.
enum err view_end(struct view *view) MUST_USE;

// Write a view as a separate object under `key`.
#define VIEW_OBJECT(view, key, write)      \
    do {                                   \
        json_key_object((view)->w, (key)); \
        TRY(write);                        \
        TRY(view_end(view));               \
        json_end_object((view)->w);        \
    } while (0)
