// SPDX-License-Identifier: MIT
// http: see http.h.
#include "server/http.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/compiler.h"
#include "profile/profile_json.h"
#include "server/answer.h"
#include "server/answer_watch.h"
#include "server/assets.h"
#include "server/baseline_upload.h"
#include "server/encoding.h"
#include "server/reply.h"
#include "server/routes.h"

enum {
    COMPRESS_FROM_BYTES = 1024,
    ANSWER_WAIT_S = 30,
    ANSWER_TIME_MS = 300000,
};

// One request, from its first line to the end of its answer.
struct exchange {
    char *target; // owned; as sent
    bool is_begun;
    bool is_upload;
    struct baseline_upload upload;
};

// Whom a request is for, by its method.
enum method {
    METHOD_READ = 1 << 0, // GET, HEAD
    METHOD_PUT = 1 << 1,
    METHOD_DELETE = 1 << 2,
};

static const char events_path[] = "/api/v1/events";
static const char baseline_path[] = "/api/v1/baseline";

void *http_begin(void *http, const char *target, struct MHD_Connection *connection)
{
    (void)http;
    (void)connection;
    struct exchange *exchange = calloc(1, sizeof(*exchange));
    if (exchange != NULL) {
        exchange->target = strdup(target);
    }
    return exchange;
}

void http_end(void *http,
              struct MHD_Connection *connection,
              void **exchange,
              enum MHD_RequestTerminationCode code)
{
    (void)http;
    (void)connection;
    (void)code;
    struct exchange *ended = *exchange;
    if (ended != NULL) {
        baseline_upload_release(&ended->upload);
        free(ended->target);
        free(ended);
        *exchange = NULL;
    }
}

static enum MHD_Result
refuse(struct MHD_Connection *connection, int status, enum err code, const char *message)
{
    struct problem problem = {.status = status};
    (void)err_set(&problem.info, code, "%s", message); // told right here
    return reply_problem(connection, &problem);
}

static enum MHD_Result refuse_method(struct MHD_Connection *connection, const char *allow)
{
    CLEANUP(strbuf_release) struct strbuf body = {0};
    strbuf_append_text(&body, "{\"version\":1,\"status\":405,\"error\":{\"code\":\"invalid\","
                              "\"parameter\":null,\"message\":\"this cannot be done here\"}}");
    struct reply reply = {
        .status = MHD_HTTP_METHOD_NOT_ALLOWED, .type = "application/json", .allow = allow};
    return reply_send(connection, &reply, &body);
}

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

// The value of the parameter "token", which needs no decoding; "" if there is none of its length.
static void find_token(const char *target, struct access_token *out)
{
    static const char name[] = "token=";
    *out = (struct access_token){0};
    for (const char *at = target_query(target); *at != '\0';) {
        size_t len = strcspn(at, "&");
        if (len == sizeof(name) - 1 + ACCESS_TOKEN_LEN && memcmp(at, name, sizeof(name) - 1) == 0) {
            memcpy(out->text, at + sizeof(name) - 1, ACCESS_TOKEN_LEN);
        }
        at += len + (at[len] == '&');
    }
}

static bool takes_launch_token(struct http *http, const struct access_token *token)
{
    return access_is_token(&http->launch, token->text, strlen(token->text)) &&
           // Relaxed: only one exchange may win; nothing else is published by it.
           !atomic_exchange_explicit(&http->is_launch_spent, true, memory_order_relaxed);
}

static enum access_verdict check_access(struct http *http,
                                        struct MHD_Connection *connection,
                                        const char *target,
                                        enum method method)
{
    struct access_token token;
    find_token(target, &token);
    struct access_headers headers = {
        .host = header_of(connection, MHD_HTTP_HEADER_HOST),
        .origin = header_of(connection, "Origin"),
        .fetch_site = header_of(connection, "Sec-Fetch-Site"),
        .cookie = header_of(connection, MHD_HTTP_HEADER_COOKIE),
        .authorization = header_of(connection, MHD_HTTP_HEADER_AUTHORIZATION),
        .token = token.text[0] != '\0' ? token.text : NULL,
        .is_write = method != METHOD_READ,
        .is_page = target_has_path(target, "/"),
    };
    enum access_verdict verdict = access_check(&http->token, http->cookie_name, &headers);
    if (verdict == ACCESS_NO_TOKEN && headers.is_page && takes_launch_token(http, &token)) {
        return ACCESS_GRANTED;
    }
    return verdict;
}

static enum MHD_Result refuse_access(struct MHD_Connection *connection, enum access_verdict verdict)
{
    enum {
        MISDIRECTED = 421 // newer than the library's names
    };
    switch (verdict) {
    case ACCESS_WRONG_HOST:
        return refuse(connection, MISDIRECTED, ERR_PERMISSION,
                      "only 127.0.0.1 and localhost are served");
    case ACCESS_WRONG_ORIGIN:
        return refuse(connection, MHD_HTTP_FORBIDDEN, ERR_PERMISSION,
                      "requests of other sites are not answered");
    case ACCESS_NO_TOKEN:
        return refuse(connection, MHD_HTTP_UNAUTHORIZED, ERR_PERMISSION,
                      "open the address that cairn printed: it holds the access token");
    case ACCESS_GRANTED:
        break;
    }
    return MHD_NO;
}

// What an answer depends on: its tag is the same as long as all of that is.
static struct etag
tag_of(const struct http *http, const struct snapshot *snapshot, const char *target)
{
    const struct opened *old = snapshot->sides[SIDE_OLD];
    const uint64_t parts[] = {
        snapshot->generation,
        snapshot->sides[SIDE_NEW]->identity,
        old != NULL ? old->identity : 0,
        content_hash(target, strlen(target)),
        content_hash(http->settings.tool_version, strlen(http->settings.tool_version)),
        http->settings.editor != NULL
            ? content_hash(http->settings.editor, strlen(http->settings.editor))
            : 0,
        http->settings.hides_sources,
    };
    return etag_of(content_hash(parts, sizeof(parts)));
}

// The connection's socket; -1, on which nothing ever happens, if the library does not tell.
static int client_socket(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *told =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return told != NULL ? told->connect_fd : -1;
}

// Answers a client, as long as it waits, and in the time that an answer may take.
static MUST_USE enum err answer_in_time(struct http *http,
                                        struct MHD_Connection *connection,
                                        const struct route *route,
                                        struct snapshot *snapshot,
                                        const char *target,
                                        struct strbuf *out,
                                        struct problem *problem)
{
    struct answer_watch watch = {.client_fd = client_socket(connection),
                                 .is_closing = &http->is_closing,
                                 .deadline_ms = monotonic_ms() + ANSWER_TIME_MS};
    struct cancel cancel = {.ask = answer_watch_ask, .context = &watch};
    const struct answer_source source = {.settings = &http->settings,
                                         .snapshot = snapshot,
                                         .trees = &http->trees,
                                         .cancel = &cancel};
    TRY(answer_watch_ask(&watch)); // it may have left while it waited for its turn
    enum err outcome = answer_write(&source, route, target, out, problem);
    if (outcome == ERR_OK || problem->info.code != ERR_OK) {
        return outcome;
    }
    if (watch.is_late) {
        problem->status = MHD_HTTP_SERVICE_UNAVAILABLE;
        return err_set(&problem->info, ERR_LIMIT, "the answer takes too long");
    }
    if (outcome == ERR_CANCELLED) {
        return outcome;
    }
    return err_set(&problem->info, outcome, "not enough memory for the answer");
}

static bool wait_for_turn(struct http *http)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until); // cannot fail
    until.tv_sec += ANSWER_WAIT_S;
    return sem_timedwait(&http->answering, &until) == 0;
}

static enum MHD_Result send_json(struct MHD_Connection *connection,
                                 const struct route *route,
                                 const struct etag *tag,
                                 struct strbuf *body)
{
    CLEANUP(strbuf_release) struct strbuf packed = {0};
    struct reply reply = {
        .status = MHD_HTTP_OK,
        .type = "application/json",
        .etag = route->is_volatile ? NULL : tag->text,
        .cache = route->is_volatile ? NULL : "private, no-cache",
    };
    reply.is_gzip = body->len >= COMPRESS_FROM_BYTES &&
                    accepts_gzip(header_of(connection, MHD_HTTP_HEADER_ACCEPT_ENCODING)) &&
                    gzip_compress(strbuf_bytes(body), GZIP_FAST, &packed) == ERR_OK;
    return reply_send(connection, &reply, reply.is_gzip ? &packed : body);
}

static enum MHD_Result
send_unchanged(struct MHD_Connection *connection, const char *tag, const char *cache)
{
    CLEANUP(strbuf_release) struct strbuf nothing = {0};
    strbuf_append_text(&nothing, "");
    struct reply reply = {.status = MHD_HTTP_NOT_MODIFIED, .etag = tag, .cache = cache};
    return reply_send(connection, &reply, &nothing);
}

static enum MHD_Result handle_route(struct http *http,
                                    struct MHD_Connection *connection,
                                    const struct route *route,
                                    const char *target)
{
    CLEANUP(snapshot_unrefp) struct snapshot *snapshot = served_get(&http->served);
    CLEANUP(strbuf_release) struct strbuf body = {0};
    struct etag tag = tag_of(http, snapshot, target);
    const char *known = header_of(connection, MHD_HTTP_HEADER_IF_NONE_MATCH);
    if (!route->is_volatile && etag_is_in(&tag, known)) {
        return send_unchanged(connection, tag.text, "private, no-cache");
    }
    if (!wait_for_turn(http)) {
        return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, ERR_LIMIT,
                      "too many questions at once");
    }
    struct problem problem = {0};
    enum err outcome = answer_in_time(http, connection, route, snapshot, target, &body, &problem);
    (void)sem_post(&http->answering); // cannot overflow: it was waited for
    if (outcome == ERR_CANCELLED) {
        return MHD_NO; // nobody listens
    }
    return outcome == ERR_OK ? send_json(connection, route, &tag, &body)
                             : reply_problem(connection, &problem);
}

static enum MHD_Result handle_asset(struct http *http,
                                    struct MHD_Connection *connection,
                                    const struct asset *asset,
                                    const char *target)
{
    char tag[32];
    char cookie[128];
    (void)snprintf(tag, sizeof(tag), "W/\"%s\"", asset->hash); // fits: 16 digits
    (void)snprintf(cookie, sizeof(cookie), "%s=%s; HttpOnly; SameSite=Strict; Path=/",
                   http->cookie_name, http->token.text); // fits
    struct access_token given;
    find_token(target, &given);
    struct reply reply = {
        .status = MHD_HTTP_OK,
        .type = asset->type,
        .etag = tag,
        .cache = asset_is_immutable(asset) ? "private, max-age=31536000, immutable" : "no-cache",
        .cookie = given.text[0] != '\0' ? cookie : NULL,
        .is_gzip = accepts_gzip(header_of(connection, MHD_HTTP_HEADER_ACCEPT_ENCODING)),
    };
    const char *known = header_of(connection, MHD_HTTP_HEADER_IF_NONE_MATCH);
    if (known != NULL && strstr(known, asset->hash) != NULL && reply.cookie == NULL) {
        return send_unchanged(connection, tag, reply.cache);
    }
    struct bytes packed = {asset->begin, (size_t)(asset->end - asset->begin)};
    if (reply.is_gzip) {
        return reply_send_static(connection, &reply, packed);
    }
    CLEANUP(strbuf_release) struct strbuf plain = {0};
    return gzip_expand(packed, &plain) == ERR_OK ? reply_send(connection, &reply, &plain) : MHD_NO;
}

enum err http_format_state(const struct snapshot *snapshot, struct strbuf *out)
{
    const struct opened *opened = snapshot->sides[SIDE_NEW];
    strbuf_printf(out, "{\"generation\":%" PRIu64 ",\"state\":\"%s\",\"runtime_ms\":%" PRIu64 "}",
                  snapshot->generation, profile_state_name(opened->profile),
                  opened->whole.runtime_ms);
    return strbuf_result(out);
}

static ssize_t read_events(void *listener, uint64_t position, char *buffer, size_t max)
{
    (void)position;
    size_t len = event_listener_read(listener, buffer, max);
    return len > 0 ? (ssize_t)len : MHD_CONTENT_READER_END_OF_STREAM;
}

static void end_events(void *listener)
{
    event_listener_free(listener);
}

static enum MHD_Result handle_events(struct http *http, struct MHD_Connection *connection)
{
    enum {
        BLOCK_BYTES = 1024
    };
    CLEANUP(snapshot_unrefp) struct snapshot *snapshot = served_get(&http->served);
    CLEANUP(strbuf_release) struct strbuf state = {0};
    CLEANUP(strbuf_release) struct strbuf greeting = {0};
    if (http_format_state(snapshot, &state) != ERR_OK) {
        return MHD_NO;
    }
    event_format(&greeting, "hello", snapshot->generation, strbuf_text(&state));
    struct event_listener *listener =
        event_listener_new(&http->events, &greeting, client_socket(connection));
    if (listener == NULL) {
        return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, ERR_LIMIT,
                      "too many pages listen already");
    }
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_events, listener, end_events);
    if (response == NULL) {
        event_listener_free(listener);
    }
    struct reply reply = {.status = MHD_HTTP_OK, .type = "text/event-stream"};
    return reply_queue(connection, &reply, response);
}

// What a page shows of the new state: the answer of /meta.
static enum MHD_Result send_meta(struct http *http, struct MHD_Connection *connection)
{
    static const char target[] = "/api/v1/meta";
    CLEANUP(snapshot_unrefp) struct snapshot *snapshot = served_get(&http->served);
    CLEANUP(strbuf_release) struct strbuf body = {0};
    struct problem problem = {0};
    const struct route *route = route_find(target);
    struct etag tag = tag_of(http, snapshot, target);
    const struct answer_source source = {
        .settings = &http->settings, .snapshot = snapshot, .trees = &http->trees};
    if (answer_write(&source, route, target, &body, &problem) != ERR_OK) {
        return refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, ERR_NO_MEMORY,
                      "not enough memory for the answer");
    }
    return send_json(connection, route, &tag, &body);
}

static enum MHD_Result
change_baseline(struct http *http, struct MHD_Connection *connection, struct exchange *exchange)
{
    struct problem problem = {0};
    const char *parameter = NULL;
    CLEANUP(request_release) struct request request = {0};
    enum err outcome = request_parse(target_query(exchange->target),
                                     PARAM_BIT(PARAM_TOKEN) | PARAM_BIT(PARAM_NAME), &request,
                                     &parameter, &problem.info);
    if (outcome == ERR_OK && exchange->is_upload) {
        const char *name = request_text(&request, PARAM_NAME);
        outcome = baseline_upload_serve(&exchange->upload, &http->served,
                                        name != NULL ? name : "the second recording", &problem);
    } else if (outcome == ERR_OK) {
        outcome = served_set_baseline(&http->served, NULL, NULL, &problem.info);
    }
    if (outcome != ERR_OK) {
        problem.parameter = parameter;
        return reply_problem(connection, &problem);
    }
    char text[64];
    CLEANUP(snapshot_unrefp) struct snapshot *snapshot = served_get(&http->served);
    (void)snprintf(text, sizeof(text), "{\"generation\":%" PRIu64 "}", snapshot->generation);
    event_hub_send(&http->events, "baseline", snapshot->generation, text);
    return send_meta(http, connection);
}

static bool is_body_announced(struct MHD_Connection *connection)
{
    const char *length = header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return (length != NULL && strcmp(length, "0") != 0) ||
           header_of(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL;
}

// What there is to read at the target.
static enum MHD_Result
handle_read(struct http *http, struct MHD_Connection *connection, const char *target)
{
    const struct route *route = route_find(target);
    const struct asset *asset = asset_find(target);
    if (route != NULL) {
        return handle_route(http, connection, route, target);
    }
    if (target_has_path(target, events_path)) {
        return handle_events(http, connection);
    }
    if (asset != NULL) {
        return handle_asset(http, connection, asset, target);
    }
    if (target_has_path(target, "/") && !assets_have_viewer()) {
        return refuse(connection, MHD_HTTP_NOT_FOUND, ERR_NOT_FOUND,
                      "this build of cairn has no viewer; the API is there");
    }
    return refuse(connection, MHD_HTTP_NOT_FOUND, ERR_NOT_FOUND, "there is nothing here");
}

static enum method method_of(const char *method)
{
    static const struct {
        const char *name;
        enum method method;
    } methods[] = {{MHD_HTTP_METHOD_GET, METHOD_READ},
                   {MHD_HTTP_METHOD_HEAD, METHOD_READ},
                   {MHD_HTTP_METHOD_PUT, METHOD_PUT},
                   {MHD_HTTP_METHOD_DELETE, METHOD_DELETE}};
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        if (strcmp(methods[i].name, method) == 0) {
            return methods[i].method;
        }
    }
    return 0;
}

// The head of a request has arrived. Refuses what need not be heard out, which closes the
// connection; else the answer is given once the request is complete.
static enum MHD_Result
begin(struct http *http, struct MHD_Connection *connection, enum method method, const char *target)
{
    if (strlen(target) > REQUEST_TARGET_MAX) {
        return refuse(connection, MHD_HTTP_URI_TOO_LONG, ERR_LIMIT, "the address is too long");
    }
    enum access_verdict verdict = check_access(http, connection, target, method);
    if (verdict != ACCESS_GRANTED) {
        return refuse_access(connection, verdict);
    }
    bool is_baseline = target_has_path(target, baseline_path);
    if (is_baseline && method != METHOD_PUT && method != METHOD_DELETE) {
        return refuse_method(connection, "PUT, DELETE");
    }
    if (!is_baseline && method != METHOD_READ) {
        return refuse_method(connection, "GET, HEAD");
    }
    if (method != METHOD_PUT && is_body_announced(connection)) {
        return refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, ERR_LIMIT,
                      "only a recording may be sent, with PUT");
    }
    if (method == METHOD_PUT &&
        !baseline_upload_may_come(header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH))) {
        return refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, ERR_LIMIT,
                      "a recording that is sent must announce its length, of 1 GiB at most");
    }
    return MHD_YES;
}

static enum MHD_Result complete(struct http *http,
                                struct MHD_Connection *connection,
                                enum method method,
                                struct exchange *exchange)
{
    exchange->is_upload = method == METHOD_PUT;
    return method == METHOD_READ ? handle_read(http, connection, exchange->target)
                                 : change_baseline(http, connection, exchange);
}

// As libmicrohttpd wants it. NOLINTNEXTLINE(readability-function-size)
enum MHD_Result http_handle(void *context,
                            struct MHD_Connection *connection,
                            const char *url,
                            const char *method,
                            const char *version,
                            const char *data,
                            size_t *data_len,
                            void **context_of_request)
{
    (void)url;
    (void)version;
    struct http *http = context;
    struct exchange *exchange = *context_of_request;
    if (exchange == NULL || exchange->target == NULL) {
        return MHD_NO; // no memory
    }
    if (!exchange->is_begun) {
        exchange->is_begun = true;
        return begin(http, connection, method_of(method), exchange->target);
    }
    if (*data_len > 0) {
        baseline_upload_add(&exchange->upload, (struct bytes){(const uint8_t *)data, *data_len});
        *data_len = 0;
        return MHD_YES;
    }
    return complete(http, connection, method_of(method), exchange);
}
