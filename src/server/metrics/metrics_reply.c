// SPDX-License-Identifier: MIT
// metrics_reply: see metrics_reply.h.
#include "server/metrics/metrics_reply.h"

#include <string.h>

#include "base/compiler.h"
#include "host/text/number.h"
#include "server/http/connection.h"
#include "server/http/reply.h"

static const char index_page[] =
    "<!doctype html>\n<meta charset=\"utf-8\">\n<title>/debug/pprof/</title>\n"
    "<h1>cairn</h1>\n<ul>\n"
    "<li><a href=\"/debug/pprof/heap\">heap</a>: memory in use, for <code>go tool pprof</code>\n"
    "<li><a href=\"/debug/pprof/allocs\">allocs</a>: all allocations so far\n"
    "<li><a href=\"/metrics\">metrics</a>: for Prometheus\n"
    "<li><a href=\"/ready\">ready</a>: whether there is data\n"
    "</ul>\n";

static enum MHD_Result
send_static(struct MHD_Connection *connection, unsigned status, const char *type, const char *text)
{
    const struct reply reply = {.status = status, .type = type};
    return reply_send_static(connection, &reply,
                             (struct bytes){(const uint8_t *)text, strlen(text)});
}

static enum MHD_Result send_ready(struct metrics_source *source, struct MHD_Connection *connection)
{
    const bool is_ready = metrics_source_is_ready(source);
    return send_static(connection, is_ready ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE,
                       "text/plain; charset=utf-8", is_ready ? "ready\n" : "no checkpoint yet\n");
}

static int status_of(enum err err)
{
    return err == ERR_NOT_FOUND ? MHD_HTTP_SERVICE_UNAVAILABLE
           : err == ERR_INVALID ? MHD_HTTP_NOT_FOUND
                                : MHD_HTTP_INTERNAL_SERVER_ERROR;
}

// Send a document. A Go program can also serve differences and a text for people; collectors do not
// ask for them.
static enum MHD_Result send_document(struct metrics_source *source,
                                     enum metrics_document document,
                                     struct MHD_Connection *connection)
{
    const char *seconds = http_argument(connection, "seconds");
    const char *debug = http_argument(connection, "debug");
    const char *process = http_argument(connection, "process");
    uint64_t pid = 0;
    struct err_info info = {0};
    enum MHD_Result result;
    if (document != METRICS_PROMETHEUS &&
        (seconds != NULL || (debug != NULL && strcmp(debug, "0") != 0))) {
        return reply_refuse(connection, MHD_HTTP_BAD_REQUEST, ERR_UNSUPPORTED,
                            "only the profile since the start is served, without 'seconds' and "
                            "'debug'; 'go tool pprof -diff_base' subtracts two of them");
    }
    if (process != NULL && (!number_parse(process, UINT32_MAX, &pid) || pid == 0)) {
        return reply_refuse(connection, MHD_HTTP_BAD_REQUEST, ERR_INVALID,
                            "'process' takes a process id");
    }
    const enum err err =
        metrics_source_send(source, document, (uint32_t)pid, connection, &result, &info);
    return err == ERR_OK ? result : reply_refuse(connection, status_of(err), err, err_text(&info));
}

enum MHD_Result
metrics_reply(struct metrics_source *source, struct MHD_Connection *connection, const char *target)
{
    static const struct {
        const char *path;
        enum metrics_document document;
    } documents[] = {{"/metrics", METRICS_PROMETHEUS},
                     {"/debug/pprof/heap", METRICS_HEAP},
                     {"/debug/pprof/allocs", METRICS_ALLOCS}};
    for (size_t i = 0; i < ARRAY_LEN(documents); i++) {
        if (target_has_path(target, documents[i].path)) {
            return send_document(source, documents[i].document, connection);
        }
    }
    if (target_has_path(target, METRICS_REPLY_READY)) {
        return send_ready(source, connection);
    }
    if (target_has_path(target, "/debug/pprof/") || target_has_path(target, "/")) {
        return send_static(connection, MHD_HTTP_OK, "text/html; charset=utf-8", index_page);
    }
    return reply_refuse(connection, MHD_HTTP_NOT_FOUND, ERR_NOT_FOUND, "not found");
}
