// SPDX-License-Identifier: MIT
// prometheus_reply: see prometheus_reply.h.
#include "server/store/prometheus_reply.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/text/json_writer.h"
#include "server/http/connection.h"
#include "server/http/reply.h"
#include "server/store/prometheus_series.h"
#include "store/store.h"

#define API            "/api/v1/"
#define INFINITE_RANGE 1e12
#define LOOKBACK_S     86400

// The parameters of a request. NULL: not given.
struct prometheus_request {
    const char *path; // without "/api/v1/"
    const char *query;
    const char *time;
    const char *start;
    const char *end;
    const char *step;
    const char *match;
};

static void write_labels(struct json_writer *w, const struct metric_data *data, size_t row)
{
    json_key_string(w, "__name__", data->name);
    for (size_t i = 0; i < METRIC_LABELS; i++) {
        const char *text = store_table_get(&data->points, row, i).text;
        if (text[0] != '\0') { // an empty label is none
            json_key_string(w, metric_label_names[i], text);
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

static void
write_matrix(struct json_writer *w, struct metric_data *data, const struct moments *range)
{
    const double lookback_s = fmax(LOOKBACK_S, range->step_s);
    const size_t steps = (size_t)((range->end_s - range->start_s) / range->step_s);
    for (size_t s = 0; s < data->series.len; s++) {
        bool is_begun = false;
        for (size_t i = 0; i <= steps; i++) {
            const double moment_s = range->start_s + (double)i * range->step_s;
            int64_t value = 0;
            if (!metric_value_at(data, &data->series.items[s], moment_s, lookback_s, &value)) {
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
        if (metric_value_at(data, &data->series.items[s], moment_s, LOOKBACK_S, &value)) {
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

// Say that series are left out, as Prometheus says what it left out.
static void write_warnings(struct json_writer *w, const struct metric_data *data)
{
    if (data->found > data->series.len) {
        char text[160];
        (void)snprintf(text, sizeof(text),
                       "%zu of %zu series, those with the highest last values: select a service, "
                       "version, host or function",
                       data->series.len, data->found); // fits
        json_key_array(w, "warnings");
        json_value_string(w, text);
        json_end_array(w);
    }
}

// An answer in the making: {"status":"success", and what follows.
struct answering {
    struct store *store;
    const struct prometheus_request *request;
    double now_s;
    struct json_writer w;
    struct err_info *info;
};

// Answer the query with which Grafana tries a data source.
static void write_two(struct json_writer *w, double now_s)
{
    json_key_object(w, "data");
    json_key_string(w, "resultType", "scalar");
    json_key(w, "result");
    write_sample(w, now_s, 2);
    json_end_object(w);
}

static enum err answer_query(struct answering *a)
{
    CLEANUP(metric_data_release) struct metric_data data = {0};
    double moment_s = a->now_s;
    TRY(moment_parse("time", a->request->time, a->now_s, &moment_s, a->info));
    if (a->request->query != NULL && strcmp(a->request->query, "1+1") == 0) {
        write_two(&a->w, moment_s);
        return ERR_OK;
    }
    TRY(metric_data_read(a->store, "query", a->request->query, &data, a->info));
    json_key_object(&a->w, "data");
    json_key_string(&a->w, "resultType", "vector");
    json_key_array(&a->w, "result");
    write_vector(&a->w, &data, moment_s);
    json_end_array(&a->w);
    json_end_object(&a->w);
    write_warnings(&a->w, &data);
    return ERR_OK;
}

static enum err answer_range(struct answering *a)
{
    CLEANUP(metric_data_release) struct metric_data data = {0};
    struct moments range = {0};
    TRY(moments_parse(a->request->start, a->request->end, a->request->step, &range, a->info));
    TRY(metric_data_read(a->store, "query", a->request->query, &data, a->info));
    json_key_object(&a->w, "data");
    json_key_string(&a->w, "resultType", "matrix");
    json_key_array(&a->w, "result");
    write_matrix(&a->w, &data, &range);
    json_end_array(&a->w);
    json_end_object(&a->w);
    write_warnings(&a->w, &data);
    return ERR_OK;
}

static enum err answer_series(struct answering *a)
{
    CLEANUP(metric_data_release) struct metric_data data = {0};
    double start_s = 0;
    double end_s = 0;
    TRY(moment_parse("start", a->request->start, 0, &start_s, a->info));
    TRY(moment_parse("end", a->request->end, INFINITE_RANGE, &end_s, a->info));
    TRY(metric_data_read(a->store, "match[]", a->request->match, &data, a->info));
    json_key_array(&a->w, "data");
    for (size_t s = 0; s < data.series.len; s++) {
        const struct series *series = &data.series.items[s];
        if (metric_point_end_s(&data, series->first) <= end_s &&
            metric_point_end_s(&data, series->first + series->count - 1) >= start_s) {
            json_begin_object(&a->w);
            write_labels(&a->w, &data, series->first);
            json_end_object(&a->w);
        }
    }
    json_end_array(&a->w);
    write_warnings(&a->w, &data);
    return ERR_OK;
}

static enum err answer_labels(struct answering *a)
{
    json_key_array(&a->w, "data");
    json_value_string(&a->w, "__name__");
    for (size_t i = 0; i < METRIC_LABELS; i++) {
        json_value_string(&a->w, metric_label_names[i]);
    }
    json_end_array(&a->w);
    return ERR_OK;
}

static void write_metric_names(struct json_writer *w)
{
    static const char *const prefixes[] = {METRIC_FUNCTIONS, METRIC_TOTALS};
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
static MUST_USE enum err write_label_values(struct answering *a, size_t label)
{
    CLEANUP(store_table_release) struct store_table values = {0};
    CLEANUP(strbuf_release) struct strbuf sql = {0};
    const struct store_scope scope = {.cost = COST_PEAK_BYTES, .limit = PROMETHEUS_SERIES_MAX};
    size_t column = 0;
    if (label == POINT_FUNCTION) {
        TRY(store_ask(a->store, &query_top, &scope, NULL, &values, a->info));
        column = 1;
    } else {
        strbuf_printf(&sql, "SELECT DISTINCT %s AS value FROM recordings ORDER BY value LIMIT %d",
                      metric_label_names[label], PROMETHEUS_SERIES_MAX);
        TRY(strbuf_result(&sql));
        TRY(store_select(a->store, strbuf_text(&sql), 0, &values, a->info));
    }
    for (size_t row = 0; row < store_table_rows(&values); row++) {
        json_value_string(&a->w, store_table_get(&values, row, column).text);
    }
    return ERR_OK;
}

static enum err answer_values(struct answering *a)
{
    const char *name = a->request->path + strlen("label/");
    const size_t len = strcspn(name, "/");
    if (strcmp(name + len, "/values") != 0) {
        return err_set(a->info, ERR_NOT_FOUND, "not found");
    }
    json_key_array(&a->w, "data");
    if (len == strlen("__name__") && strncmp(name, "__name__", len) == 0) {
        write_metric_names(&a->w);
    }
    for (size_t i = 0; i < METRIC_LABELS; i++) {
        if (strlen(metric_label_names[i]) == len &&
            strncmp(metric_label_names[i], name, len) == 0) {
            TRY(write_label_values(a, i));
        }
    }
    json_end_array(&a->w);
    return ERR_OK;
}

static enum err answer_build(struct answering *a)
{
    json_key_object(&a->w, "data");
    json_key_string(&a->w, "version", "2.42.0"); // whose API this is
    json_key_object(&a->w, "features");
    json_end_object(&a->w);
    json_end_object(&a->w);
    return ERR_OK;
}

static const struct prometheus_route {
    const char *path; // one that ends with '/' has more behind it
    enum err (*answer)(struct answering *a);
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

// Append the answer. ERR_INVALID, ERR_LIMIT, ERR_NOT_FOUND with a sentence for the client; others
// are those of the store.
static enum err write_answer(struct store *store,
                             const struct prometheus_request *request,
                             double now_s,
                             struct strbuf *out,
                             struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf target = {0};
    strbuf_printf(&target, API "%s", request->path);
    TRY(strbuf_result(&target));
    const struct prometheus_route *route = prometheus_route_of(strbuf_text(&target));
    if (route == NULL) {
        return err_set(info, ERR_NOT_FOUND, "not found");
    }
    struct answering a = {.store = store, .request = request, .now_s = now_s, .info = info};
    json_to_strbuf(&a.w, out, JSON_COMPACT);
    json_key_string(&a.w, "status", "success");
    TRY(route->answer(&a));
    return json_finish(&a.w);
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
        problem = write_answer(store, &request, (double)clock_real_ns() / NS_PER_S, &body, &info);
    }
    const struct reply reply = {.status = MHD_HTTP_OK, .type = "application/json"};
    return problem == ERR_OK ? reply_send(connection, &reply, &body)
                             : send_failure(connection, problem, &info);
}
