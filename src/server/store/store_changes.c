// SPDX-License-Identifier: MIT
// store_changes: see store_changes.h.
#include "server/store/store_changes.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "host/text/json_writer.h"
#include "host/text/number.h"
#include "host/text/visible_text.h"
#include "server/http/connection.h"
#include "server/http/reply.h"
#include "views_json/layout/view.h"

// The parameters of a change. Texts are borrowed from the request.
struct change {
    const char *service;
    const char *version;
    const char *host;
    const char *name;
    const char *until;
    const char *oom;
    struct store_label labels[QUERY_LABELS_MAX];
    struct strbuf label_names[QUERY_LABELS_MAX]; // owned
    size_t label_count;
};

static void change_release(struct change *change)
{
    for (size_t i = 0; i < QUERY_LABELS_MAX; i++) {
        strbuf_release(&change->label_names[i]);
    }
}

static MUST_USE enum err take_label(struct change *change, const char *text, struct err_info *info)
{
    const char *equals = strchr(text, '=');
    if (change->label_count == QUERY_LABELS_MAX) {
        return err_set(info, ERR_LIMIT, "label: at most %d", QUERY_LABELS_MAX);
    }
    struct strbuf *name = &change->label_names[change->label_count];
    strbuf_append(name, text, equals != NULL ? (size_t)(equals - text) : 0);
    TRY(strbuf_result(name));
    if (equals == NULL || !store_label_is_name(strbuf_text(name))) {
        return err_set(info, ERR_INVALID, "label: not NAME=VALUE, with letters, digits and _-./");
    }
    change->labels[change->label_count++] =
        (struct store_label){.name = strbuf_text(name), .value = equals + 1};
    return ERR_OK;
}

static MUST_USE enum err
take_argument(struct change *change, const struct request_arg *arg, struct err_info *info)
{
    const struct {
        const char *name;
        const char **field;
    } fields[] = {{"service", &change->service}, {"version", &change->version},
                  {"host", &change->host},       {"name", &change->name},
                  {"until", &change->until},     {"oom", &change->oom}};
    if (arg->value == NULL || strlen(arg->value) != arg->value_len ||
        arg->value_len > REQUEST_VALUE_MAX) {
        return err_set(info, ERR_INVALID, "a parameter has no value, a zero byte, or is too long");
    }
    if (arg->name_len == strlen("label") && strncmp(arg->name, "label", arg->name_len) == 0) {
        return take_label(change, arg->value, info);
    }
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (strlen(fields[i].name) == arg->name_len &&
            strncmp(fields[i].name, arg->name, arg->name_len) == 0) {
            *fields[i].field = arg->value;
            return ERR_OK;
        }
    }
    return err_set(info, ERR_INVALID,
                   "the parameters are service, version, host, label, name, oom and until");
}

static MUST_USE enum err
read_change(struct MHD_Connection *connection, struct change *out, struct err_info *info)
{
    struct request_args args;
    http_arguments(connection, &args);
    if (args.count > REQUEST_PARAMS_MAX) {
        return err_set(info, ERR_LIMIT, "more than %d parameters", REQUEST_PARAMS_MAX);
    }
    for (size_t i = 0; i < args.count; i++) {
        TRY(take_argument(out, &args.items[i], info));
    }
    return ERR_OK;
}

enum access_verdict store_changes_judge(struct store_access *access,
                                        enum store_role needed,
                                        struct MHD_Connection *connection,
                                        const char *target)
{
    enum access_verdict verdict = ACCESS_NO_TOKEN;
    for (int role = 0; role < STORE_ROLE_COUNT; role++) {
        if (!access->has_role[role]) {
            continue;
        }
        const enum access_verdict own =
            authentication_check(&access->roles[role], connection, target);
        if (own == ACCESS_GRANTED) {
            return role == (int)needed || role == STORE_ROLE_ADMIN ? ACCESS_GRANTED
                                                                   : ACCESS_WRONG_ROLE;
        }
        verdict = own;
    }
    return verdict;
}

static MUST_USE enum err add_upload(struct served_store *served,
                                    struct baseline_upload *upload,
                                    const struct change *change,
                                    int64_t *out_id,
                                    bool *out_is_new,
                                    struct err_info *info)
{
    CLEANUP(recording_rows_release) struct recording_rows rows = {0};
    CLEANUP(strbuf_release) struct strbuf labels = {0};
    char path[BASELINE_UPLOAD_PATH_BYTES];
    struct json_writer w;
    json_to_strbuf(&w, &labels, JSON_COMPACT);
    for (size_t i = 0; i < change->label_count; i++) {
        json_key_string(&w, change->labels[i].name, change->labels[i].value);
    }
    TRY(json_finish(&w));
    TRY(baseline_upload_place(upload, path, info));
    const struct store_labels said = {.service = change->service,
                                      .version = change->version,
                                      .host = change->host,
                                      .labels = strbuf_text(&labels),
                                      .is_oom =
                                          change->oom != NULL && strcmp(change->oom, "1") == 0};
    struct recording_source source = {.labels = &said,
                                      .path = change->name != NULL ? change->name : ""};
    TRY(store_identify(path, &source.id, info));
    while (sem_wait(&served->turns) != 0) { // interrupted
    }
    const enum err problem = served->make_rows(served->context, path, &source, &rows, info);
    (void)sem_post(&served->turns); // cannot overflow
    if (problem == ERR_CORRUPT || problem == ERR_TRUNCATED) {
        info->code = ERR_INVALID; // the client's, who must not send it again
    }
    if (problem != ERR_OK) {
        return info->code;
    }
    *out_id = source.id;
    return store_intake_add(&served->intake, &rows, out_is_new, info);
}

static enum MHD_Result
send_problem(struct MHD_Connection *connection, enum err code, const struct err_info *info)
{
    const struct problem problem = {.info = *info};
    (void)code; // in `info`
    return reply_problem(connection, &problem);
}

enum MHD_Result store_changes_add(struct served_store *served,
                                  struct MHD_Connection *connection,
                                  struct baseline_upload *upload)
{
    CLEANUP(change_release) struct change change = {0};
    CLEANUP(strbuf_release) struct strbuf body = {0};
    struct err_info info = {0};
    int64_t id = 0;
    bool is_new = false;
    enum err problem = read_change(connection, &change, &info);
    if (problem == ERR_OK) {
        problem = add_upload(served, upload, &change, &id, &is_new, &info);
    }
    if (problem != ERR_OK) {
        return send_problem(connection, problem, &info);
    }
    char text[20];
    struct json_writer w;
    (void)snprintf(text, sizeof(text), "%016" PRIx64, (uint64_t)id); // fits
    json_to_strbuf(&w, &body, JSON_COMPACT);
    json_key_u64(&w, "version", VIEW_JSON_VERSION);
    json_key_string(&w, "recording_id", text);
    json_key_bool(&w, "is_new", is_new);
    const struct reply reply = {.status = MHD_HTTP_OK, .type = "application/json"};
    return json_finish(&w) == ERR_OK ? reply_send(connection, &reply, &body) : MHD_NO;
}

static MUST_USE enum err remove_selected(struct served_store *served,
                                         const struct change *change,
                                         uint64_t *out_count,
                                         struct err_info *info)
{
    CLEANUP(store_closep) struct store *store = NULL;
    struct store_scope scope = {.service = change->service,
                                .version = change->version,
                                .host = change->host,
                                .labels = change->labels,
                                .label_count = change->label_count,
                                .is_any_cost = true};
    uint64_t until = 0;
    if (change->until != NULL && !number_parse(change->until, INT64_MAX, &until)) {
        return err_set(info, ERR_INVALID, "until: not seconds of Unix time");
    }
    scope.until = (int64_t)until;
    if (change->service == NULL && change->version == NULL && change->host == NULL &&
        change->label_count == 0 && change->until == NULL) {
        return err_set(info, ERR_INVALID, "a parameter must say which recordings");
    }
    TRY(store_open(served->place, false, &store, info));
    return store_prune(store, &scope, NULL, 0, out_count, info);
}

enum MHD_Result store_changes_remove(struct served_store *served, struct MHD_Connection *connection)
{
    CLEANUP(change_release) struct change change = {0};
    CLEANUP(strbuf_release) struct strbuf body = {0};
    struct err_info info = {0};
    uint64_t count = 0;
    enum err problem = read_change(connection, &change, &info);
    if (problem == ERR_OK) {
        problem = remove_selected(served, &change, &count, &info);
    }
    if (problem != ERR_OK) {
        return send_problem(connection, problem, &info);
    }
    struct json_writer w;
    json_to_strbuf(&w, &body, JSON_COMPACT);
    json_key_u64(&w, "version", VIEW_JSON_VERSION);
    json_key_u64(&w, "removed", count);
    const struct reply reply = {.status = MHD_HTTP_OK, .type = "application/json"};
    return json_finish(&w) == ERR_OK ? reply_send(connection, &reply, &body) : MHD_NO;
}
