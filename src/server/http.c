// SPDX-License-Identifier: MIT
#include "server/http.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "server/http/connection.h"
#include "server/http/event_hub.h"
#include "server/http/reply.h"
#include "server/metrics/metrics_reply.h"
#include "server/pages/assets.h"
#include "server/state/baseline_upload.h"
#include "server/store/prometheus_reply.h"

// One request, from its first line to the end of its response.
struct exchange {
    char *target; // owned; as sent
    bool is_begun;
    bool is_upload;
    struct baseline_upload upload;
};

enum {
    SILENCE_DEFAULT_MAX_S = 30,
    // For libmicrohttpd. A disconnected client counts until its thread ended. Beyond this number
    // libmicrohttpd refuses all clients, with or without a token.
    CONNECTIONS_MAX = 8 * VISITORS_MAX,
    HEADER_MAX_BYTES = 32 * 1024, // and other memory of a connection
};

// Methods that are handled alike share a value.
enum method {
    METHOD_READ = 1 << 0, // GET, HEAD
    METHOD_PUT = 1 << 1,
    METHOD_DELETE = 1 << 2,
};

static const char events_path[] = "/api/v1/events";
static const char work_path[] = "/api/v1/work";
static const char baseline_path[] = "/api/v1/baseline";
static const char ready_path[] = "/ready"; // of a served store

// One client's connection. libmicrohttpd refuses some requests itself (a target with more arguments
// than its memory holds) and then calls http_begin without http_end, so the connection owns what
// the latest request allocated.
struct visit {
    struct exchange *exchange; // owned; NULL between requests
};

static void exchange_free(struct exchange *exchange)
{
    if (exchange != NULL) {
        baseline_upload_release(&exchange->upload);
        free(exchange->target);
        free(exchange);
    }
}

static struct visit *visit_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

// Begin a request: allocate its state, from the raw target.
static void *http_begin(void *http, const char *target, struct MHD_Connection *connection)
{
    (void)http;
    struct visit *visit = visit_of(connection);
    if (visit == NULL) {
        return NULL; // no memory
    }
    exchange_free(visit->exchange);
    visit->exchange = calloc(1, sizeof(*visit->exchange));
    if (visit->exchange != NULL) {
        visit->exchange->target = strdup(target);
    }
    return visit->exchange;
}

// End a request. Without this, the next http_begin or the end of the connection frees its state.
static void http_end(void *http,
                     struct MHD_Connection *connection,
                     void **exchange,
                     enum MHD_RequestTerminationCode code)
{
    (void)http;
    (void)code;
    struct visit *visit = visit_of(connection);
    if (visit != NULL) {
        exchange_free(visit->exchange);
        visit->exchange = NULL;
    }
    *exchange = NULL;
}

// A connection was opened, or is about to be closed: allocate or free its state.
static void http_visit(void *context,
                       struct MHD_Connection *connection,
                       void **socket_context,
                       enum MHD_ConnectionNotificationCode code)
{
    struct http *http = context;
    const int fd = http_client_socket(connection);
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *socket_context = calloc(1, sizeof(struct visit));
        visitors_enter(&http->visitors, fd);
        return;
    }
    visitors_leave(&http->visitors, fd);
    struct visit *visit = *socket_context;
    if (visit != NULL) {
        exchange_free(visit->exchange);
        free(visit);
        *socket_context = NULL;
    }
}

// The endless response that sends the events of event_hub to one page; its thread sleeps between
// two events.

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

// Greet the page with the event `greeting`, formatted by event_format, and send it every later one.
static enum MHD_Result
send_events(struct event_hub *hub, struct MHD_Connection *connection, const struct strbuf *greeting)
{
    enum {
        BLOCK_BYTES = 1024
    };
    struct event_listener *listener =
        event_listener_new(hub, greeting, http_client_socket(connection));
    if (listener == NULL) {
        return reply_refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, ERR_LIMIT,
                            "too many pages are open");
    }
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_events, listener, end_events);
    if (response == NULL) {
        event_listener_free(listener);
    }
    struct reply reply = {.status = MHD_HTTP_OK, .type = "text/event-stream"};
    return reply_queue(connection, &reply, response);
}

static enum MHD_Result refuse_method(struct MHD_Connection *connection, const char *allow)
{
    struct problem problem = {.allow = allow};
    (void)problem_set(&problem, MHD_HTTP_METHOD_NOT_ALLOWED, PARAM_COUNT, ERR_INVALID,
                      "method not allowed"); // sent at once
    return reply_problem(connection, &problem);
}

// Tell the pages that the baseline has changed.
static void send_baseline(struct http *http)
{
    CLEANUP(snapshot_unrefp) struct snapshot *snapshot = served_get(&http->answers.served);
    char text[48];
    (void)snprintf(text, sizeof(text), "{\"generation\":%" PRIu64 "}",
                   snapshot->generation); // fits
    event_hub_send(&http->events, "baseline", snapshot->generation, text);
}

// Listen to the events after one that describes the recording as it is now.
static enum MHD_Result listen_to_events(struct http *http, struct MHD_Connection *connection)
{
    CLEANUP(snapshot_unrefp) struct snapshot *snapshot = served_get(&http->answers.served);
    CLEANUP(strbuf_release) struct strbuf state = {0};
    CLEANUP(strbuf_release) struct strbuf greeting = {0};
    if (snapshot_write_state(snapshot, &state) != ERR_OK) {
        return MHD_NO;
    }
    event_format(&greeting, "hello", snapshot->generation, strbuf_text(&state));
    return send_events(&http->events, connection, &greeting);
}

static enum MHD_Result
change_baseline(struct http *http, struct MHD_Connection *connection, struct exchange *exchange)
{
    struct problem problem = {0};
    const char *parameter = NULL;
    struct request request;
    struct request_args args;
    http_arguments(connection, &args);
    enum err outcome = request_parse(&args, PARAM_BIT(PARAM_TOKEN) | PARAM_BIT(PARAM_NAME),
                                     &request, &parameter, &problem.info);
    if (outcome == ERR_OK && exchange->is_upload) {
        const char *name = request_text(&request, PARAM_NAME);
        outcome = baseline_upload_serve(&exchange->upload, &http->answers.served,
                                        name != NULL ? name : "the second recording", &problem);
    } else if (outcome == ERR_OK) {
        outcome = served_set_baseline(&http->answers.served, NULL, NULL, &problem.info);
    }
    if (outcome != ERR_OK) {
        problem.parameter = parameter;
        return reply_problem(connection, &problem);
    }
    send_baseline(http);
    return answer_reply_send_meta(&http->answers, connection);
}

static bool is_body_announced(struct MHD_Connection *connection)
{
    const char *length = http_header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return (length != NULL && strcmp(length, "0") != 0) ||
           http_header(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL;
}

// Answer a GET or HEAD of the target that every viewer has.
static enum MHD_Result
read_shared(struct http *http, struct MHD_Connection *connection, const char *target)
{
    const struct asset *asset = asset_find(target);
    if (target_has_path(target, AUTHENTICATION_TOKEN_PATH)) {
        return authentication_send_token(&http->credentials, connection);
    }
    if (target_has_path(target, work_path)) {
        return answer_reply_send_work(&http->answers, connection);
    }
    if (asset != NULL) {
        return asset_send(connection, asset);
    }
    return reply_refuse(connection, MHD_HTTP_NOT_FOUND, ERR_NOT_FOUND, "not found");
}

static enum MHD_Result
read_recording(struct http *http, struct MHD_Connection *connection, const char *target)
{
    const struct route *route = route_find(target);
    if (route != NULL) {
        return answer_reply_send(&http->answers, connection, route, target);
    }
    return target_has_path(target, events_path) ? listen_to_events(http, connection)
                                                : read_shared(http, connection, target);
}

static enum MHD_Result
read_store(struct http *http, struct MHD_Connection *connection, const char *target)
{
    return strncmp(target, STORE_REPLY_PREFIX, strlen(STORE_REPLY_PREFIX)) == 0
               ? store_reply_send(http->store, connection, target)
               : read_shared(http, connection, target);
}

static enum MHD_Result
open_recording(struct http *http, struct MHD_Connection *connection, struct exchange *exchange)
{
    (void)exchange;
    return store_reply_open(http->store, connection);
}

static enum MHD_Result
read_metrics(struct http *http, struct MHD_Connection *connection, const char *target)
{
    return metrics_reply(http->metrics, connection, target);
}

static enum MHD_Result
read_served_store(struct http *http, struct MHD_Connection *connection, const char *target)
{
    if (prometheus_has(target)) {
        return prometheus_reply(http->store->place, connection, target);
    }
    if (strcmp(target, ready_path) == 0) {
        const struct reply reply = {.status = MHD_HTTP_OK, .type = "text/plain; charset=utf-8"};
        return reply_send_static(connection, &reply,
                                 (struct bytes){(const uint8_t *)"ready\n", strlen("ready\n")});
    }
    return strncmp(target, STORE_REPLY_PREFIX, strlen(STORE_REPLY_PREFIX)) == 0
               ? store_reply_send(http->store, connection, target)
               : reply_refuse(connection, MHD_HTTP_NOT_FOUND, ERR_NOT_FOUND, "not found");
}

static enum MHD_Result
change_store(struct http *http, struct MHD_Connection *connection, struct exchange *exchange)
{
    return exchange->is_upload
               ? store_changes_add(http->served_store, connection, &exchange->upload)
               : store_changes_remove(http->served_store, connection);
}

// What a server does with a request, by what it serves.
static const struct service {
    const char *written; // the path that can be changed; NULL: none
    enum method writes;  // the methods that change it
    const char *allowed; // their names
    bool takes_uploads;  // PUT has a body
    bool has_viewer;     // whose files are public: the page needs them before it can send the token
    const char *probed;  // the path that health checks ask for, which cannot send a token; or NULL
    enum MHD_Result (*read)(struct http *http,
                            struct MHD_Connection *connection,
                            const char *target);
    enum MHD_Result (*write)(struct http *http,
                             struct MHD_Connection *connection,
                             struct exchange *exchange); // NULL: it is only read
} service_of_recording = {.written = baseline_path,
                          .writes = METHOD_PUT | METHOD_DELETE,
                          .allowed = "PUT, DELETE",
                          .takes_uploads = true,
                          .has_viewer = true,
                          .read = read_recording,
                          .write = change_baseline},
  service_of_store = {.written = STORE_REPLY_RECORDING,
                      .writes = METHOD_PUT,
                      .allowed = "PUT",
                      .has_viewer = true,
                      .read = read_store,
                      .write = open_recording},
  service_of_served_store = {.written = STORE_CHANGES_PATH,
                             .writes = METHOD_PUT | METHOD_DELETE,
                             .allowed = "PUT, DELETE",
                             .takes_uploads = true,
                             .probed = ready_path,
                             .read = read_served_store,
                             .write = change_store},
  service_of_metrics = {.probed = METRICS_REPLY_READY, .read = read_metrics};

static const struct service *service_of(const struct http *http)
{
    return http->metrics != NULL        ? &service_of_metrics
           : http->served_store != NULL ? &service_of_served_store
           : http->store != NULL        ? &service_of_store
                                        : &service_of_recording;
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

// Return whether the target says nothing about the recording, so that it needs no token.
static bool is_public(const struct service *service, enum method method, const char *target)
{
    return method == METHOD_READ &&
           ((service->has_viewer && asset_find(target) != NULL) ||
            (service->probed != NULL && strcmp(target, service->probed) == 0));
}

// Judge who asks. A served store has a token for each role.
static enum access_verdict judge_access(struct http *http,
                                        struct MHD_Connection *connection,
                                        enum method method,
                                        const char *target)
{
    return http->served_store == NULL
               ? authentication_check(&http->credentials, connection, target)
               : store_changes_judge(&http->roles,
                                     method == METHOD_PUT      ? STORE_ROLE_ADD
                                     : method == METHOD_DELETE ? STORE_ROLE_ADMIN
                                                               : STORE_ROLE_READ,
                                     connection, target);
}

// Handle the head of a request. Refusing here closes the connection before the body is read.
// Accepted requests are answered when they are complete.
static enum MHD_Result begin_request(struct http *http,
                                     struct MHD_Connection *connection,
                                     enum method method,
                                     const char *target)
{
    if (strlen(target) > REQUEST_TARGET_MAX) {
        return reply_refuse(connection, MHD_HTTP_URI_TOO_LONG, ERR_LIMIT,
                            "the address is too long");
    }
    const struct service *service = service_of(http);
    enum access_verdict verdict = judge_access(http, connection, method, target);
    const bool is_free = (verdict == ACCESS_NO_TOKEN || verdict == ACCESS_WRONG_ROLE) &&
                         is_public(service, method, target);
    if (verdict != ACCESS_GRANTED && !is_free) {
        return authentication_refuse(&http->credentials, connection, verdict);
    }
    // Without tokens no client has shown one, and the oldest connection makes room for the newest.
    if (verdict == ACCESS_GRANTED && !http->credentials.policy.is_open) {
        visitors_trust(&http->visitors, http_client_socket(connection));
    }
    if (!target_is_encoded(target)) {
        return reply_refuse(connection, MHD_HTTP_BAD_REQUEST, ERR_INVALID,
                            "the address contains an invalid % escape");
    }
    const bool is_written = service->written != NULL && target_has_path(target, service->written);
    if ((method & (is_written ? service->writes : METHOD_READ)) == 0) {
        return refuse_method(connection, is_written ? service->allowed : "GET, HEAD");
    }
    const bool is_upload = method == METHOD_PUT && service->takes_uploads;
    if (!is_upload && is_body_announced(connection)) {
        return reply_refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, ERR_LIMIT,
                            "only PUT of a recording is allowed");
    }
    // The size of a chunked body is unbounded, whatever its Content-Length.
    if (is_upload &&
        (http_header(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL ||
         !baseline_upload_may_come(http_header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH)))) {
        return reply_refuse(connection, MHD_HTTP_CONTENT_TOO_LARGE, ERR_LIMIT,
                            "an upload must state its length, of at most 1 GiB");
    }
    return MHD_YES;
}

static enum MHD_Result complete_request(struct http *http,
                                        struct MHD_Connection *connection,
                                        enum method method,
                                        struct exchange *exchange)
{
    const struct service *service = service_of(http);
    exchange->is_upload = method == METHOD_PUT;
    return method == METHOD_READ || service->write == NULL
               ? service->read(http, connection, exchange->target)
               : service->write(http, connection, exchange);
}

// The callback's signature is libmicrohttpd's. NOLINTNEXTLINE(readability-function-size)
static enum MHD_Result http_handle(void *context,
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
        return MHD_NO; // out of memory
    }
    if (!exchange->is_begun) {
        exchange->is_begun = true;
        return begin_request(http, connection, method_of(method), exchange->target);
    }
    if (*data_len > 0) {
        baseline_upload_add(&exchange->upload, (struct bytes){(const uint8_t *)data, *data_len});
        *data_len = 0;
        return MHD_YES;
    }
    return complete_request(http, connection, method_of(method), exchange);
}

struct MHD_Daemon *
http_daemon_start(struct http *http, int fd, const char *pem, struct err_info *info)
{
    const struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)pem}, // it does not modify the text
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)pem},
        {MHD_OPTION_END, 0, NULL},
    };
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
            MHD_USE_ITC | // for MHD_quiesce_daemon
            (pem != NULL ? MHD_USE_TLS : 0),
        0, NULL, NULL, http_handle, http, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
        http->silence_max_s != 0 ? http->silence_max_s : (unsigned)SILENCE_DEFAULT_MAX_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_MAX_BYTES, MHD_OPTION_STRICT_FOR_CLIENT,
        1, MHD_OPTION_URI_LOG_CALLBACK, http_begin, http, MHD_OPTION_NOTIFY_COMPLETED, http_end,
        http, MHD_OPTION_NOTIFY_CONNECTION, http_visit, http, MHD_OPTION_ARRAY,
        pem != NULL ? tls : tls + 2, MHD_OPTION_END);
    if (daemon == NULL) {
        (void)err_set(info, ERR_IO, "cannot start the web server%s",
                      pem != NULL ? ": the file of --tls needs a certificate and its key" : "");
    }
    return daemon;
}
