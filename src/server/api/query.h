// SPDX-License-Identifier: MIT
// query: the context of one API request while it is answered.
//
//   request + snapshot --query_init--> filter, selection(s), costs, sort --route->answer--> JSON
//
// It does what all routes share: it finds the recording, the filter and its selection, and writes
// the envelope. api_*.c have one answer function for each route in routes.c; the contents of an
// answer are views (views_json/views/views.h).
// Context: H; a query belongs to one thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/calls/call_tree.h"
#include "profile/select/filter.h"
#include "server/http/request.h"
#include "server/state/snapshot.h"
#include "server/state/tree_cache.h"
#include "views_json/layout/view.h"

// The settings of the server, fixed at its start. Texts are borrowed until the server ends.
struct server_settings {
    const char *tool_version;
    const char *editor; // pattern of a link; NULL: none
    bool hides_sources;
    const struct filter *filter;       // also applies to every query; NULL: none
    const struct selection *selection; // what it selects; may keep results. NULL without a filter
};

struct query {
    const struct server_settings *settings; // borrowed
    const struct request *request;          // borrowed
    struct snapshot *snapshot;              // borrowed
    struct tree_cache *trees;               // borrowed
    struct cancel *cancel;                  // borrowed; NULL: never cancelled
    struct problem *problem;                // borrowed
    const struct opened *opened;            // the recording to answer from
    const struct opened *old_opened;        // of the old side; `opened` if two ranges are compared
    const struct profile *profile;          // its profile
    const struct code_union *code;          // of that profile, or of both with `is_diff`
    bool is_diff;
    bool has_selection;
    struct filter filter;
    struct selection selection;     // owned; lent by the snapshot without a filter
    struct selection old_selection; // owned; with is_diff
    struct view view;               // owned; in columns; refers to the fields above
};

// Set up everything but the answer. `with_selection`: the route takes a filter. query->problem
// describes an error.
enum err query_init(struct query *query, bool with_selection) MUST_USE;
void query_release(struct query *query);

// Return which frames the trees of the answer have: hide_wrappers.
enum call_tree_frames query_frames(const struct query *query);

// Read the parameter `by`: `least` or the choice after it, or `otherwise` if it was not given.
enum err query_choose_by(struct query *query,
                         enum request_by least,
                         enum request_by otherwise,
                         enum request_by *out) MUST_USE;

// Write version, generation and, if there is one, the selection into the open object.
enum err query_write_envelope(struct query *query) MUST_USE;

// Get the tree for `spec` and this query's selections, from the cache or newly built. The caller
// receives a reference.
enum err query_tree(struct query *query, struct tree_view_spec spec, struct cached_tree **out)
    MUST_USE;

// The features of a recording that some routes need.
enum capability {
    CAPABILITY_TIME_RANGE,
    CAPABILITY_SLICES,
    CAPABILITY_SIZES,
    CAPABILITY_LIFETIMES,
    CAPABILITY_RSS,
    CAPABILITY_MAPPINGS,
    CAPABILITY_GROWTH,
    CAPABILITY_SOURCE,
    CAPABILITY_ADHOC,
    CAPABILITY_BLOCKS,
    CAPABILITY_COUNT,
};

const char *capability_name(enum capability capability);
bool query_can(const struct query *query, enum capability capability);

// Refuse with 409 unless the recording has the capability. `what` names the missing feature, as in
// "it has no <what>".
enum err query_need(struct query *query, enum capability capability, const char *what) MUST_USE;
