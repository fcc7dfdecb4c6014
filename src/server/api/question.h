// SPDX-License-Identifier: MIT
// question: one request to the API on its way to an answer.
//
//   request + snapshot --question_init--> filter, selection(s), costs, sort --route->answer--> JSON
//
// What all routes have in common is read and done here: which recording, the filter and its
// selection, the envelope. Answers are written by api_*.c, one function a route, listed in
// routes.c; their contents are views (views_json/views/views.h).
// Context: H; a question lives in one thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/select/filter.h"
#include "server/http/request.h"
#include "server/state/snapshot.h"
#include "server/state/tree_cache.h"
#include "views_json/layout/view.h"

// What the server was told when it was started. Texts are borrowed for its life.
struct server_settings {
    const char *tool_version;
    const char *editor; // pattern of a link, NULL: none
    bool hides_sources;
    const struct filter *filter; // holds for every question too; NULL: none
};

// How a question failed, for the client.
struct problem {
    int status;            // of HTTP; 0: by info.code
    const char *parameter; // static, NULL: none is to blame
    struct err_info info;
};

struct question {
    const struct server_settings *settings; // borrowed
    const struct request *request;          // borrowed
    struct snapshot *snapshot;              // borrowed
    struct tree_cache *trees;               // borrowed
    struct cancel *cancel;                  // borrowed; NULL: nobody stops it
    struct problem *problem;                // borrowed
    const struct opened *opened;            // the recording that is asked
    const struct profile *profile;          // of it
    const struct code_union *code;          // of it, or of both with `is_diff`
    bool is_diff;
    bool has_selection;
    struct filter filter;
    struct selection selection;     // owned
    struct selection old_selection; // owned; with is_diff
    struct view view;               // owned; of all that is above, in columns
};

// Fills in everything but the answer. `with_selection`: the route takes a filter. The error is told
// in question->problem.
enum err question_init(struct question *question, bool with_selection) MUST_USE;
void question_release(struct question *question);

// Refuses with a status of its own, and a sentence. Returns `code`.
enum err question_refuse(struct question *question,
                         int status,
                         enum param parameter, // PARAM_COUNT: none is to blame
                         enum err code,
                         const char *format,
                         ...) PRINTF_LIKE(5, 6);

// What the answer goes by: `least` or the one after it, or `otherwise` if nothing is given.
enum err question_choose_by(struct question *question,
                            enum request_by least,
                            enum request_by otherwise,
                            enum request_by *out) MUST_USE;

// Writes version, generation and, if there is one, selection into the open object.
enum err question_write_envelope(struct question *question) MUST_USE;

// The tree that `spec` describes, for this question's selections: cached, or built. The caller has
// a reference.
enum err question_tree(struct question *question,
                       struct tree_view_spec spec,
                       struct cached_tree **out) MUST_USE;

// What was recorded, so that it can be asked for.
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
    CAPABILITY_COUNT,
};

const char *capability_name(enum capability capability);
bool question_can(const struct question *question, enum capability capability);

// Refuses with 409 unless the recording has it. `what` is the missing thing, as in "it has no
// <what>".
enum err question_need(struct question *question, enum capability capability, const char *what)
    MUST_USE;
