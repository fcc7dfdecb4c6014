// SPDX-License-Identifier: MIT
// top_row: a line of the list of `cairn top`: the figures of a call site, and how they changed.
//
// Context: H; pure.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cli/top/top_sample.h"
#include "host/containers/vec.h"

enum top_column {
    TOP_LIVE,
    TOP_CHANGE,
    TOP_RATE,
    TOP_TEMPORARY,
    TOP_ALLOCATIONS,
    TOP_PEAK,
    TOP_COLUMN_COUNT,
};

struct top_column_info {
    const char *title;
    const char *word;  // after --sort
    const char *words; // in a sentence: "sorted by ..."
    unsigned columns;  // width
};

// The description of a column, static.
const struct top_column_info *top_column_get(enum top_column column);

// Return the column of this word, TOP_COLUMN_COUNT if there is none.
enum top_column top_column_find(const char *word);

struct top_row {
    size_t site; // in the sample
    struct site_figures now;
    uint64_t peak_bytes;
    int64_t change_bytes;
    double rate;                     // allocations in a second
    double errors[TOP_COLUMN_COUNT]; // two standard errors; 0: exact, or unknown
};

DEFINE_VEC(top_row_vec, struct top_row);

// What rows compare; all borrowed.
struct top_moments {
    const struct top_sample *sample;    // the present one
    const struct site_moment *base;     // of changes
    const struct site_moment *previous; // of rates; may be NULL
    uint64_t previous_ms;               // when it was still right
};

// The row of a call site of the sample.
struct top_row top_row_of(const struct top_moments *moments, size_t site);

// Return how often in a second something happened, whose counts at the two moments these are, and
// the error of such a rate of allocations.
double top_rate(const struct top_moments *moments, uint64_t now, uint64_t before);
double top_rate_error(const struct top_moments *moments,
                      const struct site_figures *now,
                      const struct site_figures *before);

// The figure of a column. A change may be negative.
double top_row_value(const struct top_row *row, enum top_column column);
