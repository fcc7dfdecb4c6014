// SPDX-License-Identifier: MIT
#include "server/api/answer_reply.h"

#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/text/json_writer.h"
#include "server/api/answer.h"
#include "server/http/connection.h"
#include "server/http/encoding.h"
#include "server/http/reply.h"
#include "server/state/answer_limits.h"
#include "views_json/layout/view.h"

enum {
    COMPRESS_FROM_BYTES = 1024,
    ANSWER_WAIT_MS = 30000,
    ANSWER_TIME_MS = 300000,
};

// The tag of an answer: a hash of everything that the answer depends on.
static struct etag
tag_of(const struct answer_service *service, const struct snapshot *snapshot, const char *target)
{
    const struct opened *old = snapshot->sides[SIDE_OLD];
    const uint64_t parts[] = {
        snapshot->generation,
        snapshot->sides[SIDE_NEW]->identity,
        old != NULL ? old->identity : 0,
        content_hash(target, strlen(target)),
        content_hash(service->settings.tool_version, strlen(service->settings.tool_version)),
        service->settings.editor != NULL
            ? content_hash(service->settings.editor, strlen(service->settings.editor))
            : 0,
        service->settings.hides_sources,
    };
    return etag_of(content_hash(parts, sizeof(parts)));
}

// An answer in progress.
struct turn {
    struct answer_service *service;
    struct MHD_Connection *connection;
    const struct route *route;
    struct snapshot *snapshot;
};

static void count(atomic_uint_fast64_t *sum)
{
    (void)atomic_fetch_add_explicit(sum, 1, memory_order_relaxed);
}

// Compute an answer while the client waits, within the time limit.
static MUST_USE enum err
answer_in_time(const struct turn *turn, struct strbuf *out, struct problem *problem)
{
    struct answer_service *service = turn->service;
    struct disconnect_watch watch = {.client_fd = http_client_socket(turn->connection),
                                     .is_closing = &service->is_closing,
                                     .deadline_ms = clock_monotonic_ms() + ANSWER_TIME_MS};
    struct cancel cancel = {.ask = disconnect_watch_ask, .context = &watch};
    const struct answer_source source = {.settings = &service->settings,
                                         .snapshot = turn->snapshot,
                                         .trees = &service->trees,
                                         .cancel = &cancel};
    TRY(disconnect_watch_ask(&watch)); // the client may have left while it waited for its turn
    count(&service->begun);
    struct request_args args;
    http_arguments(turn->connection, &args);
    enum err outcome = answer_write(&source, turn->route, &args, out, problem);
    if (outcome != ERR_OK && problem->info.code == ERR_OK && watch.is_late) {
        problem->status = MHD_HTTP_SERVICE_UNAVAILABLE;
        outcome = err_set(&problem->info, ERR_LIMIT, "the answer takes too long");
    }
    count(outcome == ERR_CANCELLED ? &service->abandoned : &service->finished);
    return outcome;
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
                    accepts_gzip(http_header(connection, MHD_HTTP_HEADER_ACCEPT_ENCODING)) &&
                    gzip_compress(strbuf_bytes(body), GZIP_FAST, &packed) == ERR_OK;
    return reply_send(connection, &reply, reply.is_gzip ? &packed : body);
}

// Compute the answer once there is capacity, and send it.
static enum MHD_Result take_turn(const struct turn *turn, const struct etag *tag)
{
    struct answer_service *service = turn->service;
    if (!turns_take(&service->turns, ANSWER_WAIT_MS)) {
        return reply_refuse(turn->connection, MHD_HTTP_SERVICE_UNAVAILABLE, ERR_LIMIT,
                            "too many queries at once");
    }
    CLEANUP(strbuf_release) struct strbuf body = {0};
    struct problem problem = {0};
    enum err outcome = answer_in_time(turn, &body, &problem);
    (void)sem_post(&service->turns); // cannot overflow: it was taken
    if (outcome == ERR_CANCELLED) {
        return MHD_NO; // the client left
    }
    return outcome == ERR_OK ? send_json(turn->connection, turn->route, tag, &body)
                             : reply_problem(turn->connection, &problem);
}

enum MHD_Result answer_reply_send(struct answer_service *service,
                                  struct MHD_Connection *connection,
                                  const struct route *route,
                                  const char *target)
{
    CLEANUP(snapshot_unrefp) struct snapshot *snapshot = served_get(&service->served);
    struct etag tag = tag_of(service, snapshot, target);
    const char *known = http_header(connection, MHD_HTTP_HEADER_IF_NONE_MATCH);
    if (!route->is_volatile && etag_is_in(&tag, known)) {
        return reply_unchanged(connection, tag.text, "private, no-cache");
    }
    const struct turn turn = {
        .service = service, .connection = connection, .route = route, .snapshot = snapshot};
    return take_turn(&turn, &tag);
}

enum MHD_Result answer_reply_send_meta(struct answer_service *service,
                                       struct MHD_Connection *connection)
{
    static const char target[] = "/api/v1/meta";
    CLEANUP(snapshot_unrefp) struct snapshot *snapshot = served_get(&service->served);
    CLEANUP(strbuf_release) struct strbuf body = {0};
    struct problem problem = {0};
    const struct route *route = route_find(target);
    struct etag tag = tag_of(service, snapshot, target);
    const struct answer_source source = {
        .settings = &service->settings, .snapshot = snapshot, .trees = &service->trees};
    const struct request_args none = {0};
    if (answer_write(&source, route, &none, &body, &problem) != ERR_OK) {
        return reply_refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, ERR_NO_MEMORY,
                            "not enough memory for the answer");
    }
    return send_json(connection, route, &tag, &body);
}

static uint64_t sum_of(atomic_uint_fast64_t *sum)
{
    return atomic_load_explicit(sum, memory_order_relaxed);
}

enum MHD_Result answer_reply_send_work(struct answer_service *service,
                                       struct MHD_Connection *connection)
{
    CLEANUP(strbuf_release) struct strbuf body = {0};
    struct reply reply = {.status = MHD_HTTP_OK, .type = "application/json"};
    struct json_writer w;
    json_to_strbuf(&w, &body, JSON_COMPACT);
    json_key_u64(&w, "version", VIEW_JSON_VERSION);
    json_key_u64(&w, "begun", sum_of(&service->begun));
    json_key_u64(&w, "finished", sum_of(&service->finished));
    json_key_u64(&w, "abandoned", sum_of(&service->abandoned));
    return json_finish(&w) == ERR_OK ? reply_send(connection, &reply, &body) : MHD_NO;
}
