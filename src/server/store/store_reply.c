// SPDX-License-Identifier: MIT
#include "server/store/store_reply.h"

#include <string.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "host/os/mutex.h"
#include "server/http/connection.h"
#include "server/http/encoding.h"
#include "server/http/reply.h"
#include "store/store.h"
#include "store/store_table.h"
#include "views_json/layout/view.h"

enum {
    ROWS_BY_DEFAULT = 1000,
    ROWS_MAX = 10000,
};

#define SCOPE                                                                       \
    (PARAM_BIT(PARAM_TOKEN) | PARAM_BIT(PARAM_SERVICE) | PARAM_BIT(PARAM_VERSION) | \
     PARAM_BIT(PARAM_HOST) | PARAM_BIT(PARAM_SORT) | PARAM_BIT(PARAM_LIMIT))
#define BETWEEN (SCOPE | PARAM_BIT(PARAM_OLD) | PARAM_BIT(PARAM_NEW))

// The words of a query are parameters; PARAM_COUNT: none.
static const struct store_route {
    const char *name;
    const struct store_query *query; // NULL: store_query_find(name)
    uint64_t params;
    enum param words[QUERY_WORDS_MAX];
} store_routes[] = {
    {"list", &query_list, SCOPE, {PARAM_COUNT, PARAM_COUNT}},
    {"top", &query_top, SCOPE, {PARAM_COUNT, PARAM_COUNT}},
    {"versions", &query_versions, SCOPE, {PARAM_COUNT, PARAM_COUNT}},
    {"diff", &query_diff, BETWEEN, {PARAM_OLD, PARAM_NEW}},
    {"growth", NULL, BETWEEN, {PARAM_OLD, PARAM_NEW}},
    {"hosts", NULL, SCOPE, {PARAM_COUNT, PARAM_COUNT}},
    {"history", NULL, SCOPE | PARAM_BIT(PARAM_FUNCTION), {PARAM_FUNCTION, PARAM_COUNT}},
    {"oom", NULL, SCOPE, {PARAM_COUNT, PARAM_COUNT}},
};

static const struct store_route *store_route_of(const char *target)
{
    const char *name = target + strlen(STORE_REPLY_PREFIX);
    for (size_t i = 0; i < ARRAY_LEN(store_routes); i++) {
        if (target_has_path(name, store_routes[i].name)) {
            return &store_routes[i];
        }
    }
    return NULL;
}

static MUST_USE enum err read_request(struct MHD_Connection *connection,
                                      uint64_t params,
                                      struct request *out,
                                      struct problem *problem)
{
    struct request_args args;
    http_arguments(connection, &args);
    return request_parse(&args, params, out, &problem->parameter, &problem->info);
}

static MUST_USE enum err
scope_of(const struct request *request, struct store_scope *out, struct problem *problem)
{
    const uint64_t limit = request_number(request, PARAM_LIMIT, ROWS_BY_DEFAULT);
    if (limit == 0 || limit > ROWS_MAX) {
        return problem_set(problem, 0, PARAM_LIMIT, ERR_INVALID,
                           "limit: a store's answer has 1 to %d rows", ROWS_MAX);
    }
    *out = (struct store_scope){
        .service = request_text(request, PARAM_SERVICE),
        .version = request_text(request, PARAM_VERSION),
        .host = request_text(request, PARAM_HOST),
        .cost = (enum cost)request_number(request, PARAM_SORT, COST_PEAK_BYTES),
        .limit = (uint32_t)limit,
    };
    return ERR_OK;
}

static MUST_USE enum err ask_store(struct store_service *service,
                                   const struct store_query *query,
                                   const struct store_scope *scope,
                                   const char *const *words,
                                   struct store_table *out,
                                   struct err_info *info)
{
    CLEANUP(store_closep) struct store *store = NULL;
    mutex_lock(&service->asking);
    enum err problem = store_open(service->place, false, &store, info);
    if (problem == ERR_OK) {
        problem = store_ask(store, query, scope, words, out, info);
    }
    store_close(store);
    store = NULL;
    mutex_unlock(&service->asking);
    return problem;
}

static MUST_USE enum err answer_query(struct store_service *service,
                                      struct MHD_Connection *connection,
                                      const struct store_route *route,
                                      struct strbuf *out,
                                      struct problem *problem)
{
    CLEANUP(store_table_release) struct store_table table = {0};
    struct request request;
    struct store_scope scope = {0};
    const char *words[QUERY_WORDS_MAX] = {NULL};
    TRY(read_request(connection, route->params, &request, problem));
    TRY(scope_of(&request, &scope, problem));
    for (size_t i = 0; i < QUERY_WORDS_MAX && route->words[i] != PARAM_COUNT; i++) {
        words[i] = request_text(&request, route->words[i]);
        if (words[i] == NULL) {
            return problem_set(problem, 0, route->words[i], ERR_INVALID, "%s is required",
                               request_param_name(route->words[i]));
        }
    }
    const struct store_query *query =
        route->query != NULL ? route->query : store_query_find(route->name);
    TRY(ask_store(service, query, &scope, words, &table, &problem->info));
    struct json_writer w;
    json_to_strbuf(&w, out, JSON_COMPACT);
    json_key_u64(&w, "version", VIEW_JSON_VERSION);
    json_key_string(&w, "cost", cost_get_info(scope.cost)->key);
    store_table_write_json(&table, &w);
    return json_finish(&w);
}

enum MHD_Result store_reply_send(struct store_service *service,
                                 struct MHD_Connection *connection,
                                 const char *target)
{
    CLEANUP(strbuf_release) struct strbuf body = {0};
    CLEANUP(strbuf_release) struct strbuf packed = {0};
    struct problem problem = {0};
    const struct store_route *route = store_route_of(target);
    if (route == NULL) {
        return reply_refuse(connection, MHD_HTTP_NOT_FOUND, ERR_NOT_FOUND, "not found");
    }
    if (answer_query(service, connection, route, &body, &problem) != ERR_OK) {
        return reply_problem(connection, &problem);
    }
    struct reply reply = {.status = MHD_HTTP_OK, .type = "application/json"};
    reply.is_gzip = accepts_gzip(http_header(connection, MHD_HTTP_HEADER_ACCEPT_ENCODING)) &&
                    gzip_compress(strbuf_bytes(&body), GZIP_FAST, &packed) == ERR_OK;
    return reply_send(connection, &reply, reply.is_gzip ? &packed : &body);
}

// Find the path of a recording, and check that its file is the one that was added.
static MUST_USE enum err find_file(struct store_service *service,
                                   int64_t recording_id,
                                   struct strbuf *out,
                                   struct err_info *info)
{
    CLEANUP(store_table_release) struct store_table table = {0};
    const struct store_scope scope = {
        .recording_id = recording_id, .is_any_cost = true, .limit = 1};
    TRY(ask_store(service, &query_list, &scope, NULL, &table, info));
    if (store_table_rows(&table) == 0) {
        return err_set(info, ERR_NOT_FOUND, "the store has no such recording");
    }
    for (size_t column = 0; column < table.names.len; column++) {
        const struct store_value value = store_table_get(&table, 0, column);
        if (strcmp(store_table_name(&table, column), "path") == 0 && value.kind == STORE_TEXT) {
            strbuf_append_text(out, value.text);
        }
    }
    TRY(strbuf_result(out));
    struct stat status;
    if (stat(strbuf_text(out), &status) != 0 || !S_ISREG(status.st_mode)) {
        return err_set(info, ERR_NOT_FOUND, "the file '%.200s' is not on this machine",
                       strbuf_text(out));
    }
    int64_t found = 0;
    TRY(store_identify(strbuf_text(out), &found, info));
    return found == recording_id
               ? ERR_OK
               : err_set(info, ERR_NOT_FOUND, "'%.200s' is no longer the file that was added",
                         strbuf_text(out));
}

static MUST_USE enum err open_recording(struct store_service *service,
                                        const struct request *request,
                                        struct strbuf *out_address,
                                        struct problem *problem)
{
    CLEANUP(strbuf_release) struct strbuf path = {0};
    const char *text = request_text(request, PARAM_RECORDING_ID);
    int64_t id = 0;
    if (text == NULL || !store_parse_id(text, &id)) {
        return problem_set(problem, 0, PARAM_RECORDING_ID, ERR_INVALID,
                           "recording_id: 16 hexadecimal digits are required");
    }
    TRY(find_file(service, id, &path, &problem->info));
    mutex_lock(&service->asking);
    const enum err result =
        service->open(service->context, strbuf_text(&path), out_address, &problem->info);
    mutex_unlock(&service->asking);
    return result;
}

enum MHD_Result store_reply_open(struct store_service *service, struct MHD_Connection *connection)
{
    CLEANUP(strbuf_release) struct strbuf address = {0};
    CLEANUP(strbuf_release) struct strbuf body = {0};
    struct problem problem = {0};
    struct request request;
    if (read_request(connection, PARAM_BIT(PARAM_TOKEN) | PARAM_BIT(PARAM_RECORDING_ID), &request,
                     &problem) != ERR_OK ||
        open_recording(service, &request, &address, &problem) != ERR_OK) {
        return reply_problem(connection, &problem);
    }
    struct json_writer w;
    json_to_strbuf(&w, &body, JSON_COMPACT);
    json_key_u64(&w, "version", VIEW_JSON_VERSION);
    json_key_string(&w, "address", strbuf_text(&address));
    const struct reply reply = {.status = MHD_HTTP_OK, .type = "application/json"};
    return json_finish(&w) == ERR_OK ? reply_send(connection, &reply, &body) : MHD_NO;
}
