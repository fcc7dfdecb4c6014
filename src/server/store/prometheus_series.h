// SPDX-License-Identifier: MIT
// prometheus_series: the points of a store as series over time, for prometheus_reply.
//
// A series is one metric with one set of labels. Its points are recordings, in the order of time;
// a moment has the value of the last point that ended before it and is not too old.
// Context: H. Trust: queries and the store are hostile; points and series are bounded.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "store/store.h"

#define METRIC_TOTALS    "cairn_store_"
#define METRIC_FUNCTIONS "cairn_store_function_"

enum {
    PROMETHEUS_STEPS_MAX = 11000, // of a matrix, as Prometheus has it
    PROMETHEUS_SERIES_MAX = 200,
    PROMETHEUS_POINTS_MAX = 100000, // recordings times functions that are read for an answer
};

// The columns of query_points and query_function_points.
enum {
    POINT_SERVICE,
    POINT_VERSION,
    POINT_HOST,
    POINT_FUNCTION,
    POINT_TIME,
    POINT_RUNTIME_MS,
    POINT_COST,
    METRIC_LABELS = POINT_TIME,
};

extern const char *const metric_label_names[METRIC_LABELS]; // of the first columns

// Rows of one series in an answer of the store.
struct series {
    size_t first;
    size_t count;
};

DEFINE_VEC(series_vec, struct series);

// The moments of an answer.
struct moments {
    double start_s;
    double end_s;
    double step_s;
};

// What an answer is made of: the points of one metric. Zeros are empty.
struct metric_data {
    char name[80];
    struct store_table points; // owned
    struct series_vec series;  // owned; those with the highest last values
    size_t found;              // all series that the query selects
};

void metric_data_release(struct metric_data *data);

// Parse the parameter `name`, seconds or a time as RFC 3339 has it in UTC. A NULL text counts as
// `otherwise_s`. ERR_INVALID with a sentence.
enum err moment_parse(const char *name,
                      const char *text,
                      double otherwise_s,
                      double *out_s,
                      struct err_info *info) MUST_USE;

// Parse the parameters of a range, at most PROMETHEUS_STEPS_MAX moments. ERR_INVALID with a
// sentence.
enum err moments_parse(const char *start,
                       const char *end,
                       const char *step,
                       struct moments *out,
                       struct err_info *info) MUST_USE;

// Read the series that the selector `text`, the value of the parameter `name`, selects. A selector
// of an unknown metric selects none. ERR_INVALID, ERR_LIMIT with a sentence; those of the store.
enum err metric_data_read(struct store *store,
                          const char *name,
                          const char *text,
                          struct metric_data *data,
                          struct err_info *info) MUST_USE;

// Return the end of the recording that is a point.
double metric_point_end_s(const struct metric_data *data, size_t row);

// Find the value of a series at a moment, which is that of the last point before it. Return false
// if there is none.
bool metric_value_at(const struct metric_data *data,
                     const struct series *series,
                     double moment_s,
                     double lookback_s,
                     int64_t *out);
