// SPDX-License-Identifier: MIT
// prometheus_reply: see prometheus_reply.h.
#include "server/store/prometheus_reply.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/containers/vec.h"
#include "host/text/json_writer.h"
#include "server/http/connection.h"
#include "server/http/reply.h"
#include "server/store/selector.h"

#define API            "/api/v1/"
#define TOTALS         "cairn_store_"
#define FUNCTIONS      "cairn_store_function_"
#define SECONDS_MAX    1e11 // beyond the year 5000
#define INFINITE_RANGE 1e12

// The columns of query_points and query_function_points.
enum {
    POINT_SERVICE,
    POINT_VERSION,
    POINT_HOST,
    POINT_FUNCTION,
    POINT_TIME,
    POINT_RUNTIME_MS,
    POINT_COST,
    LABEL_COUNT = POINT_TIME,
};

static const char *const label_names[LABEL_COUNT] = {"service", "version", "host", "function"};

// Rows of one series in an answer of the store.
struct series {
    size_t first;
    size_t count;
};

DEFINE_VEC(series_vec, struct series);

// The moments of an answer.
struct range {
    double start_s;
    double end_s;
    double step_s; // 0: one moment
};

// What an answer is made of: the points of one metric.
struct metric_data {
    char name[80];
    struct store_table points; // owned
    struct series_vec series;  // owned
};

static void metric_data_release(struct metric_data *data)
{
    store_table_release(&data->points);
    series_vec_release(&data->series);
}

// --- moments -------------------------------------------------------------------------------------

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

static MUST_USE enum err
seconds_of(const char *name, const char *text, double otherwise, double *out, struct err_info *info)
{
    *out = otherwise;
    return text == NULL || parse_seconds(text, out)
               ? ERR_OK
               : err_set(info, ERR_INVALID, "%s: not a time in seconds or as RFC 3339", name);
}

static MUST_USE enum err
range_of(const struct prometheus_request *request, struct range *out, struct err_info *info)
{
    if (request->start == NULL || request->end == NULL || request->step == NULL) {
        return err_set(info, ERR_INVALID, "start, end and step are required");
    }
    TRY(seconds_of("start", request->start, 0, &out->start_s, info));
    TRY(seconds_of("end", request->end, 0, &out->end_s, info));
    if (!parse_step(request->step, &out->step_s)) {
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

// --- points --------------------------------------------------------------------------------------

static double point_end_s(const struct metric_data *data, size_t row)
{
    return (double)store_table_integer(&data->points, row, POINT_TIME) +
           (double)store_table_integer(&data->points, row, POINT_RUNTIME_MS) / MS_PER_S;
}

// Return the value of a series at a moment: that of its last point before it. False: none.
static bool value_at(const struct metric_data *data,
                     const struct series *series,
                     double moment_s,
                     double lookback_s,
                     int64_t *out)
{
    size_t low = 0; // points up to the moment are before `low`
    size_t high = series->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (point_end_s(data, series->first + middle) <= moment_s) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0 || point_end_s(data, series->first + low - 1) <= moment_s - lookback_s) {
        return false;
    }
    *out = store_table_integer(&data->points, series->first + low - 1, POINT_COST);
    return true;
}

static bool is_same_series(const struct store_table *points, size_t row, size_t other)
{
    for (size_t i = 0; i < LABEL_COUNT; i++) {
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
    for (size_t i = 0; i < LABEL_COUNT; i++) {
        is_selected = is_selected && selector_takes(selector, label_names[i],
                                                    store_table_get(&data->points, row, i).text);
    }
    // Labels that no series has.
    for (size_t m = 0; m < selector->count && is_selected; m++) {
        const char *label = strbuf_text(&selector->matchers[m].label);
        bool is_ours = strcmp(label, "__name__") == 0;
        for (size_t i = 0; i < LABEL_COUNT; i++) {
            is_ours |= strcmp(label, label_names[i]) == 0;
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

// Divide the points, which are in the order of their labels, into series, and keep those that are
// selected: of more than PROMETHEUS_SERIES_MAX those with the highest last values.
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
    if (data->series.len > PROMETHEUS_SERIES_MAX) {
        data->series.len = PROMETHEUS_SERIES_MAX;
    }
    return ERR_OK;
}

// Read the points of the metric that the selector names. Without one there are none.
static MUST_USE enum err read_points(struct store *store,
                                     struct selector *selector,
                                     struct metric_data *data,
                                     struct err_info *info)
{
    const char *name = selector_equal(selector, "__name__");
    const char *function = selector_equal(selector, "function");
    const bool is_of_function = strncmp(name, FUNCTIONS, strlen(FUNCTIONS)) == 0;
    const char *const words[QUERY_WORDS_MAX] = {function, ""};
    for (int cost = 0; cost < COST_COUNT; cost++) {
        const char *prefix = is_of_function ? FUNCTIONS : TOTALS;
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

// --- answers -------------------------------------------------------------------------------------

static void write_labels(struct json_writer *w, const struct metric_data *data, size_t row)
{
    json_key_string(w, "__name__", data->name);
    for (size_t i = 0; i < LABEL_COUNT; i++) {
        const char *text = store_table_get(&data->points, row, i).text;
        if (text[0] != '\0') { // an empty label is none
            json_key_string(w, label_names[i], text);
        }
    }
}

static void write_sample(struct json_writer *w, double moment_s, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof(text), "%lld", (long long)value); // fits
    json_begin_array(w);
    json_value_double(w, moment_s);
    json_value_string(w, text);
    json_end_array(w);
}

static void write_matrix(struct json_writer *w, struct metric_data *data, const struct range *range)
{
    const double lookback_s = fmax(PROMETHEUS_LOOKBACK_S, range->step_s);
    const size_t steps = (size_t)((range->end_s - range->start_s) / range->step_s);
    for (size_t s = 0; s < data->series.len; s++) {
        bool is_begun = false;
        for (size_t i = 0; i <= steps; i++) {
            const double moment_s = range->start_s + (double)i * range->step_s;
            int64_t value = 0;
            if (!value_at(data, &data->series.items[s], moment_s, lookback_s, &value)) {
                continue;
            }
            if (!is_begun) {
                json_begin_object(w);
                json_key_object(w, "metric");
                write_labels(w, data, data->series.items[s].first);
                json_end_object(w);
                json_key_array(w, "values");
                is_begun = true;
            }
            write_sample(w, moment_s, value);
        }
        if (is_begun) {
            json_end_array(w);
            json_end_object(w);
        }
    }
}

static void write_vector(struct json_writer *w, struct metric_data *data, double moment_s)
{
    for (size_t s = 0; s < data->series.len; s++) {
        int64_t value = 0;
        if (value_at(data, &data->series.items[s], moment_s, PROMETHEUS_LOOKBACK_S, &value)) {
            json_begin_object(w);
            json_key_object(w, "metric");
            write_labels(w, data, data->series.items[s].first);
            json_end_object(w);
            json_key(w, "value");
            write_sample(w, moment_s, value);
            json_end_object(w);
        }
    }
}

// Begin {"status":"success","data":...}.
static void begin_success(struct json_writer *w, struct strbuf *out)
{
    json_to_strbuf(w, out, JSON_COMPACT);
    json_key_string(w, "status", "success");
}

// Read the series of a query, whose text must be there.
static MUST_USE enum err read_query(struct store *store,
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

// Answer the query with which Grafana tries a data source.
static enum err answer_two(double now_s, struct strbuf *out)
{
    struct json_writer w;
    begin_success(&w, out);
    json_key_object(&w, "data");
    json_key_string(&w, "resultType", "scalar");
    json_key(&w, "result");
    write_sample(&w, now_s, 2);
    json_end_object(&w);
    return json_finish(&w);
}

static enum err answer_query(struct store *store,
                             const struct prometheus_request *request,
                             double now_s,
                             struct strbuf *out,
                             struct err_info *info)
{
    CLEANUP(metric_data_release) struct metric_data data = {0};
    struct json_writer w;
    double moment_s = now_s;
    TRY(seconds_of("time", request->time, now_s, &moment_s, info));
    if (request->query != NULL && strcmp(request->query, "1+1") == 0) {
        return answer_two(moment_s, out);
    }
    TRY(read_query(store, "query", request->query, &data, info));
    begin_success(&w, out);
    json_key_object(&w, "data");
    json_key_string(&w, "resultType", "vector");
    json_key_array(&w, "result");
    write_vector(&w, &data, moment_s);
    json_end_array(&w);
    json_end_object(&w);
    return json_finish(&w);
}

static enum err answer_range(struct store *store,
                             const struct prometheus_request *request,
                             double now_s,
                             struct strbuf *out,
                             struct err_info *info)
{
    (void)now_s;
    CLEANUP(metric_data_release) struct metric_data data = {0};
    struct range range = {0};
    struct json_writer w;
    TRY(range_of(request, &range, info));
    TRY(read_query(store, "query", request->query, &data, info));
    begin_success(&w, out);
    json_key_object(&w, "data");
    json_key_string(&w, "resultType", "matrix");
    json_key_array(&w, "result");
    write_matrix(&w, &data, &range);
    json_end_array(&w);
    json_end_object(&w);
    return json_finish(&w);
}

static enum err answer_series(struct store *store,
                              const struct prometheus_request *request,
                              double now_s,
                              struct strbuf *out,
                              struct err_info *info)
{
    (void)now_s;
    CLEANUP(metric_data_release) struct metric_data data = {0};
    struct json_writer w;
    double start_s = 0;
    double end_s = 0;
    TRY(seconds_of("start", request->start, 0, &start_s, info));
    TRY(seconds_of("end", request->end, INFINITE_RANGE, &end_s, info));
    TRY(read_query(store, "match[]", request->match, &data, info));
    begin_success(&w, out);
    json_key_array(&w, "data");
    for (size_t s = 0; s < data.series.len; s++) {
        const struct series *series = &data.series.items[s];
        if (point_end_s(&data, series->first) <= end_s &&
            point_end_s(&data, series->first + series->count - 1) >= start_s) {
            json_begin_object(&w);
            write_labels(&w, &data, series->first);
            json_end_object(&w);
        }
    }
    json_end_array(&w);
    return json_finish(&w);
}

static enum err answer_labels(struct store *store,
                              const struct prometheus_request *request,
                              double now_s,
                              struct strbuf *out,
                              struct err_info *info)
{
    (void)store;
    (void)request;
    (void)now_s;
    (void)info;
    struct json_writer w;
    begin_success(&w, out);
    json_key_array(&w, "data");
    json_value_string(&w, "__name__");
    for (size_t i = 0; i < LABEL_COUNT; i++) {
        json_value_string(&w, label_names[i]);
    }
    json_end_array(&w);
    return json_finish(&w);
}

static void write_metric_names(struct json_writer *w)
{
    static const char *const prefixes[] = {FUNCTIONS, TOTALS};
    for (size_t p = 0; p < ARRAY_LEN(prefixes); p++) {
        for (int cost = 0; cost < COST_COUNT; cost++) {
            char name[80];
            (void)snprintf(name, sizeof(name), "%s%s", prefixes[p],
                           cost_get_info((enum cost)cost)->key); // fits
            json_value_string(w, name);
        }
    }
}

// The values of a label: those in the recordings, or of functions those with the highest peaks.
static MUST_USE enum err
write_label_values(struct store *store, size_t label, struct json_writer *w, struct err_info *info)
{
    CLEANUP(store_table_release) struct store_table values = {0};
    CLEANUP(strbuf_release) struct strbuf sql = {0};
    const struct store_scope scope = {.cost = COST_PEAK_BYTES, .limit = PROMETHEUS_SERIES_MAX};
    size_t column = 0;
    if (label == POINT_FUNCTION) {
        TRY(store_ask(store, &query_top, &scope, NULL, &values, info));
        column = 1;
    } else {
        strbuf_printf(&sql, "SELECT DISTINCT %s AS value FROM recordings ORDER BY value LIMIT %d",
                      label_names[label], PROMETHEUS_SERIES_MAX);
        TRY(strbuf_result(&sql));
        TRY(store_select(store, strbuf_text(&sql), 0, &values, info));
    }
    for (size_t row = 0; row < store_table_rows(&values); row++) {
        json_value_string(w, store_table_get(&values, row, column).text);
    }
    return ERR_OK;
}

static enum err answer_values(struct store *store,
                              const struct prometheus_request *request,
                              double now_s,
                              struct strbuf *out,
                              struct err_info *info)
{
    (void)now_s;
    struct json_writer w;
    const char *name = request->path + strlen("label/");
    const size_t len = strcspn(name, "/");
    if (strcmp(name + len, "/values") != 0) {
        return err_set(info, ERR_NOT_FOUND, "not found");
    }
    begin_success(&w, out);
    json_key_array(&w, "data");
    if (len == strlen("__name__") && strncmp(name, "__name__", len) == 0) {
        write_metric_names(&w);
    }
    for (size_t i = 0; i < LABEL_COUNT; i++) {
        if (strlen(label_names[i]) == len && strncmp(label_names[i], name, len) == 0) {
            TRY(write_label_values(store, i, &w, info));
        }
    }
    json_end_array(&w);
    return json_finish(&w);
}

static enum err answer_build(struct store *store,
                             const struct prometheus_request *request,
                             double now_s,
                             struct strbuf *out,
                             struct err_info *info)
{
    (void)store;
    (void)request;
    (void)now_s;
    (void)info;
    struct json_writer w;
    begin_success(&w, out);
    json_key_object(&w, "data");
    json_key_string(&w, "version", "2.42.0"); // whose API this is
    json_key_object(&w, "features");
    json_end_object(&w);
    json_end_object(&w);
    return json_finish(&w);
}

static const struct prometheus_route {
    const char *path; // one that ends with '/' has more behind it
    enum err (*answer)(struct store *store,
                       const struct prometheus_request *request,
                       double now_s,
                       struct strbuf *out,
                       struct err_info *info);
} prometheus_routes[] = {
    {"query", answer_query},   {"query_range", answer_range}, {"series", answer_series},
    {"labels", answer_labels}, {"label/", answer_values},     {"status/buildinfo", answer_build},
};

static const struct prometheus_route *prometheus_route_of(const char *target)
{
    if (strncmp(target, API, strlen(API)) != 0) {
        return NULL;
    }
    const char *path = target + strlen(API);
    for (size_t i = 0; i < ARRAY_LEN(prometheus_routes); i++) {
        const char *own = prometheus_routes[i].path;
        if (target_has_path(path, own) ||
            (own[strlen(own) - 1] == '/' && strncmp(path, own, strlen(own)) == 0)) {
            return &prometheus_routes[i];
        }
    }
    return NULL;
}

bool prometheus_has(const char *target)
{
    return prometheus_route_of(target) != NULL;
}

enum err prometheus_answer(struct store *store,
                           const struct prometheus_request *request,
                           double now_s,
                           struct strbuf *out,
                           struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf target = {0};
    strbuf_printf(&target, API "%s", request->path);
    TRY(strbuf_result(&target));
    const struct prometheus_route *route = prometheus_route_of(strbuf_text(&target));
    return route != NULL ? route->answer(store, request, now_s, out, info)
                         : err_set(info, ERR_NOT_FOUND, "not found");
}

// Send a failure as Prometheus does.
static enum MHD_Result
send_failure(struct MHD_Connection *connection, enum err problem, const struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf body = {0};
    const bool is_bad = problem == ERR_INVALID || problem == ERR_LIMIT;
    const struct reply reply = {.status = is_bad ? MHD_HTTP_BAD_REQUEST
                                          : problem == ERR_NOT_FOUND
                                              ? MHD_HTTP_NOT_FOUND
                                              : MHD_HTTP_INTERNAL_SERVER_ERROR,
                                .type = "application/json"};
    struct json_writer w;
    json_to_strbuf(&w, &body, JSON_COMPACT);
    json_key_string(&w, "status", "error");
    json_key_string(&w, "errorType", is_bad ? "bad_data" : "execution");
    json_key_string(&w, "error", err_text(info));
    return json_finish(&w) == ERR_OK ? reply_send(connection, &reply, &body) : MHD_NO;
}

enum MHD_Result
prometheus_reply(const char *place, struct MHD_Connection *connection, const char *target)
{
    CLEANUP(store_closep) struct store *store = NULL;
    CLEANUP(strbuf_release) struct strbuf body = {0};
    CLEANUP(strbuf_release) struct strbuf path = {0};
    struct err_info info = {0};
    strbuf_append(&path, target + strlen(API), strcspn(target, "?") - strlen(API));
    const struct prometheus_request request = {
        .path = strbuf_text(&path),
        .query = http_argument(connection, "query"),
        .time = http_argument(connection, "time"),
        .start = http_argument(connection, "start"),
        .end = http_argument(connection, "end"),
        .step = http_argument(connection, "step"),
        .match = http_argument(connection, "match[]"),
    };
    enum err problem = store_open(place, false, &store, &info);
    if (problem == ERR_OK) {
        problem =
            prometheus_answer(store, &request, (double)clock_real_ns() / NS_PER_S, &body, &info);
    }
    const struct reply reply = {.status = MHD_HTTP_OK, .type = "application/json"};
    return problem == ERR_OK ? reply_send(connection, &reply, &body)
                             : send_failure(connection, problem, &info);
}
