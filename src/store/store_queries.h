// SPDX-License-Identifier: MIT
// store_queries: the queries that a store answers, as one table of SQL for both databases.
//
// A text has {JOIN}, {IN}, {INT}, {COST} and {BLIND}, which become words of the dialect, the key of
// a cost, and 1 if the store has no errors of estimates of that cost. {LABELS} becomes the
// conditions of labels, {LAST} that of the last state of each run, {RATE} the division by the
// seconds, and {ONCE} a subquery that a query reads more than once. Parameters are numbered: ?1 to
// ?8 are the scope of the query, ?9 and ?10 are its own words, and two for each label follow. Means
// are per recording, so that hosts with many recordings do not count more. Context: H; pure.
#pragma once

#include <stddef.h>

#include "base/err.h"
#include "host/text/strbuf.h"
#include "profile/model/cost.h"
#include "store/engine.h"

enum {
    QUERY_WORDS_MAX = 2,
    QUERY_LIMIT = 7,                    // the value of ?8
    QUERY_LABELS = 8 + QUERY_WORDS_MAX, // the first value of a label
    QUERY_LABELS_MAX = 16,
    QUERY_VALUES = QUERY_LABELS + 2 * QUERY_LABELS_MAX,
};

// What the text of a query depends on.
struct query_form {
    enum cost cost;
    size_t label_count;  // at most QUERY_LABELS_MAX
    bool has_all_states; // of each run, not the last alone
    bool is_per_second;
};

struct store_query {
    const char *name;
    const char *words[QUERY_WORDS_MAX]; // what it needs, for messages; NULL: nothing
    bool words_are_versions;            // each must be of a recording in the scope
    bool compares;                      // recordings, which should have lasted equally long
    const char *help;                   // one line
    const char *once;                   // the text of {ONCE}; NULL: none
    const char *sql;
};

extern const struct store_query query_list;
extern const struct store_query query_top;
extern const struct store_query query_diff;
extern const struct store_query query_lasted; // the shortest and the longest in the scope
extern const struct store_query query_ages;   // what retention.h needs
// States of runs over time, as series: of recordings, and of functions (?9: this one, or all).
extern const struct store_query query_points;
extern const struct store_query query_function_points;
extern const struct store_query query_versions; // one row for each version in the scope

// The queries that `cairn store query` has by name.
extern const struct store_query *const store_queries[];

// Return the query of that name, or NULL.
const struct store_query *store_query_find(const char *name);

// Append the SQL of a query. ERR_NO_MEMORY.
enum err store_query_render(const struct store_query *query,
                            const struct dialect *dialect,
                            const struct query_form *form,
                            struct strbuf *out) MUST_USE;
