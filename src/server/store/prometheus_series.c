// SPDX-License-Identifier: MIT
// prometheus_series: see prometheus_series.h.
#include "server/store/prometheus_series.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "server/store/selector.h"

#define SECONDS_MAX 1e11 // beyond the year 5000

const char *const metric_label_names[METRIC_LABELS] = {"service", "version", "host", "function"};

void metric_data_release(struct metric_data *data)
{
    store_table_release(&data->points);
    series_vec_release(&data->series);
}

// Parse a number of seconds, or a time as RFC 3339 has it in UTC.
static bool parse_seconds(const char *text, double *out)
{
    char *end = NULL;
    struct tm day = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &day);
    if (rest != NULL) {
        const double fraction = *rest == '.' ? strtod(rest, &end) : 0;
        rest = *rest == '.' ? end : rest;
        *out = (double)timegm(&day) + fraction;
        return strcmp(rest, "Z") == 0 || strcmp(rest, "+00:00") == 0;
    }
    *out = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*out) && fabs(*out) < SECONDS_MAX;
}

// Parse a step: seconds, or a number with a unit.
static bool parse_step(const char *text, double *out)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = {{"", 1},     {"ms", 0.001}, {"s", 1},     {"m", 60},
                 {"h", 3600}, {"d", 86400},  {"w", 604800}};
    char *end = NULL;
    const double number = strtod(text, &end);
    for (size_t i = 0; i < ARRAY_LEN(units) && end != text; i++) {
        if (strcmp(end, units[i].unit) == 0) {
            *out = number * units[i].seconds;
            return isfinite(*out) && *out >= 0.001 && *out < SECONDS_MAX;
        }
    }
    return false;
}

enum err moment_parse(
    const char *name, const char *text, double otherwise_s, double *out_s, struct err_info *info)
{
    *out_s = otherwise_s;
    return text == NULL || parse_seconds(text, out_s)
               ? ERR_OK
               : err_set(info, ERR_INVALID, "%s: not a time in seconds or as RFC 3339", name);
}

enum err moments_parse(const char *start,
                       const char *end,
                       const char *step,
                       struct moments *out,
                       struct err_info *info)
{
    if (start == NULL || end == NULL || step == NULL) {
        return err_set(info, ERR_INVALID, "start, end and step are required");
    }
    TRY(moment_parse("start", start, 0, &out->start_s, info));
    TRY(moment_parse("end", end, 0, &out->end_s, info));
    if (!parse_step(step, &out->step_s)) {
        return err_set(info, ERR_INVALID, "step: not a number of seconds or a duration such as 1m");
    }
    if (out->end_s < out->start_s) {
        return err_set(info, ERR_INVALID, "end: it is before start");
    }
    if ((out->end_s - out->start_s) / out->step_s >= PROMETHEUS_STEPS_MAX) {
        return err_set(info, ERR_INVALID,
                       "exceeded maximum resolution of %d points per timeseries: use a larger step",
                       PROMETHEUS_STEPS_MAX);
    }
    return ERR_OK;
}

double metric_point_end_s(const struct metric_data *data, size_t row)
{
    return (double)store_table_integer(&data->points, row, POINT_TIME) +
           (double)store_table_integer(&data->points, row, POINT_RUNTIME_MS) / MS_PER_S;
}

bool metric_value_at(const struct metric_data *data,
                     const struct series *series,
                     double moment_s,
                     double lookback_s,
                     int64_t *out)
{
    size_t low = 0; // points up to the moment are before `low`
    size_t high = series->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (metric_point_end_s(data, series->first + middle) <= moment_s) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0 || metric_point_end_s(data, series->first + low - 1) <= moment_s - lookback_s) {
        return false;
    }
    *out = store_table_integer(&data->points, series->first + low - 1, POINT_COST);
    return true;
}

static bool is_same_series(const struct store_table *points, size_t row, size_t other)
{
    for (size_t i = 0; i < METRIC_LABELS; i++) {
        if (strcmp(store_table_get(points, row, i).text, store_table_get(points, other, i).text) !=
            0) {
            return false;
        }
    }
    return true;
}

static bool is_selected(struct selector *selector, const struct metric_data *data, size_t row)
{
    bool is_selected = selector_takes(selector, "__name__", data->name);
    for (size_t i = 0; i < METRIC_LABELS; i++) {
        is_selected = is_selected && selector_takes(selector, metric_label_names[i],
                                                    store_table_get(&data->points, row, i).text);
    }
    // Labels that no series has.
    for (size_t m = 0; m < selector->count && is_selected; m++) {
        const char *label = strbuf_text(&selector->matchers[m].label);
        bool is_ours = strcmp(label, "__name__") == 0;
        for (size_t i = 0; i < METRIC_LABELS; i++) {
            is_ours |= strcmp(label, metric_label_names[i]) == 0;
        }
        is_selected = is_ours || selector_takes(selector, label, "");
    }
    return is_selected;
}

static int64_t last_value(const struct metric_data *data, const struct series *series)
{
    return store_table_integer(&data->points, series->first + series->count - 1, POINT_COST);
}

static int compare_last_values(const void *left, const void *right, void *context)
{
    const int64_t a = last_value(context, left);
    const int64_t b = last_value(context, right);
    return a > b ? -1 : a < b;
}

// Divide the points into series, and keep the selected ones. The points are in the order of their
// labels. Of more than PROMETHEUS_SERIES_MAX series, those with the highest last values are kept.
static MUST_USE enum err divide_points(struct selector *selector, struct metric_data *data)
{
    const size_t rows = store_table_rows(&data->points);
    for (size_t row = 0; row < rows;) {
        struct series series = {.first = row};
        while (row < rows && is_same_series(&data->points, series.first, row)) {
            row++;
        }
        series.count = row - series.first;
        if (is_selected(selector, data, series.first)) {
            TRY(series_vec_push(&data->series, series));
        }
    }
    series_vec_sort_by(&data->series, compare_last_values, data);
    data->found = data->series.len;
    if (data->series.len > PROMETHEUS_SERIES_MAX) {
        data->series.len = PROMETHEUS_SERIES_MAX;
    }
    return ERR_OK;
}

static MUST_USE enum err read_points(struct store *store,
                                     struct selector *selector,
                                     struct metric_data *data,
                                     struct err_info *info)
{
    const char *name = selector_equal(selector, "__name__");
    const char *function = selector_equal(selector, "function");
    const bool is_of_function = strncmp(name, METRIC_FUNCTIONS, strlen(METRIC_FUNCTIONS)) == 0;
    const char *const words[QUERY_WORDS_MAX] = {function, ""};
    for (int cost = 0; cost < COST_COUNT; cost++) {
        const char *prefix = is_of_function ? METRIC_FUNCTIONS : METRIC_TOTALS;
        (void)snprintf(data->name, sizeof(data->name), "%s%s", prefix,
                       cost_get_info((enum cost)cost)->key); // fits
        if (strcmp(data->name, name) != 0) {
            continue;
        }
        const struct store_scope scope = {.service = selector_equal(selector, "service"),
                                          .version = selector_equal(selector, "version"),
                                          .host = selector_equal(selector, "host"),
                                          .has_all_states = true,
                                          .cost = (enum cost)cost,
                                          .limit = PROMETHEUS_POINTS_MAX};
        TRY(store_ask(store, is_of_function ? &query_function_points : &query_points, &scope, words,
                      &data->points, info));
        if (data->points.more > 0) {
            return err_set(info, ERR_LIMIT,
                           "query: it needs more than %d points: select a service, version, host "
                           "or function",
                           PROMETHEUS_POINTS_MAX);
        }
        return divide_points(selector, data);
    }
    return ERR_OK;
}

enum err metric_data_read(struct store *store,
                          const char *name,
                          const char *text,
                          struct metric_data *data,
                          struct err_info *info)
{
    CLEANUP(selector_release) struct selector selector = {0};
    if (text == NULL) {
        return err_set(info, ERR_INVALID, "%s is required", name);
    }
    TRY(selector_parse(text, &selector, info));
    TRY(read_points(store, &selector, data, info));
    for (size_t i = 0; i < selector.count; i++) {
        if (selector.matchers[i].is_regex) {
            TRY(name_regex_result(&selector.matchers[i].regex, info));
        }
    }
    return ERR_OK;
}
