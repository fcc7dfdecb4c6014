// SPDX-License-Identifier: MIT
// view: one answer as JSON, whoever asks: `report --json`, the HTTP API, the HTML report.
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
    // Of the fields that docs/format/json.md describes. One number for every answer.
    VIEW_JSON_VERSION = 2
};

enum view_layout {
    VIEW_ROWS,
    VIEW_COLUMNS,
};

// A frame of the stacks of an answer in columns.
struct view_frame {
    uint32_t location; // position in code.locations
    bool inlined;
};

DEFINE_VEC(view_frame_vec, struct view_frame);

struct view {
    // What is asked, and of what. Borrowed; the selections may be NULL for views of the whole run.
    const struct profile *profile;
    const struct code_union *code; // of the profile, or of both of a comparison
    const struct selection *selection;
    const struct selection *old_selection; // NULL: no comparison
    const struct filter *filter;           // of the selection
    uint64_t costs;                        // bits of enum cost: what cost objects hold
    enum cost sort;
    enum side_score score; // by which side entries of a comparison are sorted

    // How it is written. Borrowed.
    struct json_writer *w;
    enum view_layout layout;
    bool has_offsets;          // frames in rows also say where they lie in their module
    struct progress *progress; // NULL: silent

    // What the answer has collected. Owned; view_end() empties it.
    struct code_tables tables;
    struct view_frame_vec frames;
    bool has_code;   // the answer has the tables `code`, even if they are empty
    bool has_frames; // and `frames`
    bool failed;     // no memory: view_end() reports it
};

#define ALL_COSTS (((uint64_t)1 << COST_COUNT) - 1)

// Releases what a writer that failed has left behind.
void view_release(struct view *view);

// Ends an answer: in columns, writes `frames` and `code`. ERR_NO_MEMORY, also for what happened
// before.
enum err view_end(struct view *view) MUST_USE;

// Writes a view as an object of its own under `key`.
#define VIEW_OBJECT(view, key, write) \
    do {                              \
        json_key((view)->w, (key));   \
        json_begin_object((view)->w); \
        TRY(write);                   \
        TRY(view_end(view));          \
        json_end_object((view)->w);   \
    } while (0)
