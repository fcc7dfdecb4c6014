// SPDX-License-Identifier: MIT
#include "server/http/reply.h"

#include "base/compiler.h"
#include "host/text/json_writer.h"
#include "views_json/layout/view.h"

static const char no_store[] = "no-store";

static const struct {
    const char *name;
    const char *value;
} common_headers[] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
     "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; "
     "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"X-Frame-Options", "DENY"},
    {"Vary", "Accept-Encoding"},
};

static bool add_header(struct MHD_Response *response, const char *name, const char *value)
{
    return value == NULL || MHD_add_response_header(response, name, value) == MHD_YES;
}

bool reply_add_headers(struct MHD_Response *response, const struct reply *reply)
{
    bool is_well =
        add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->type) &&
        add_header(response, MHD_HTTP_HEADER_ETAG, reply->etag) &&
        add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL,
                   reply->cache != NULL ? reply->cache : no_store) &&
        add_header(response, MHD_HTTP_HEADER_ALLOW, reply->allow) &&
        add_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, reply->is_gzip ? "gzip" : NULL);
    for (size_t i = 0; i < ARRAY_LEN(common_headers); i++) {
        is_well = is_well && add_header(response, common_headers[i].name, common_headers[i].value);
    }
    return is_well;
}

enum MHD_Result reply_queue(struct MHD_Connection *connection,
                            const struct reply *reply,
                            struct MHD_Response *response)
{
    if (response == NULL) {
        return MHD_NO; // out of memory: the connection is closed
    }
    enum MHD_Result result = reply_add_headers(response, reply)
                                 ? MHD_queue_response(connection, reply->status, response)
                                 : MHD_NO;
    MHD_destroy_response(response);
    return result;
}

struct MHD_Response *reply_of(struct strbuf *body)
{
    const size_t len = body->len;
    char *data = strbuf_take(body);
    struct MHD_Response *response =
        data != NULL ? MHD_create_response_from_buffer(len, data, MHD_RESPMEM_MUST_FREE) : NULL;
    if (response == NULL) {
        free(data);
    }
    return response;
}

enum MHD_Result
reply_send(struct MHD_Connection *connection, const struct reply *reply, struct strbuf *body)
{
    return reply_queue(connection, reply, reply_of(body));
}

enum MHD_Result
reply_send_static(struct MHD_Connection *connection, const struct reply *reply, struct bytes body)
{
    // libmicrohttpd does not modify the data, although its parameter is not const.
    void *data = (void *)(uintptr_t)body.data;
    return reply_queue(connection, reply,
                       MHD_create_response_from_buffer(body.len, data, MHD_RESPMEM_PERSISTENT));
}

static unsigned status_of(const struct problem *problem)
{
    if (problem->status != 0) {
        return (unsigned)problem->status;
    }
    switch (problem->info.code) {
    case ERR_INVALID:
    case ERR_UNSUPPORTED:
    case ERR_LIMIT:
        return MHD_HTTP_BAD_REQUEST;
    case ERR_NOT_FOUND:
        return MHD_HTTP_NOT_FOUND;
    case ERR_PERMISSION:
        return MHD_HTTP_FORBIDDEN;
    case ERR_OK:
    case ERR_NO_MEMORY:
    case ERR_IO:
    case ERR_CORRUPT:
    case ERR_TRUNCATED:
    case ERR_DEAD:
    case ERR_CANCELLED:
        break;
    }
    return MHD_HTTP_INTERNAL_SERVER_ERROR;
}

enum MHD_Result reply_problem(struct MHD_Connection *connection, const struct problem *problem)
{
    struct reply reply = {
        .status = status_of(problem), .type = "application/json", .allow = problem->allow};
    const enum err code = problem->info.code != ERR_OK ? problem->info.code : ERR_NO_MEMORY;
    CLEANUP(strbuf_release) struct strbuf body = {0};
    struct json_writer w;
    json_to_strbuf(&w, &body, JSON_COMPACT);
    json_key_u64(&w, "version", VIEW_JSON_VERSION);
    json_key_u64(&w, "status", reply.status);
    json_key_object(&w, "error");
    json_key_string(&w, "code", err_name(code));
    json_key_string(&w, "parameter", problem->parameter);
    json_key_string(&w, "message", err_text(&problem->info));
    json_end_object(&w);
    return json_finish(&w) == ERR_OK ? reply_send(connection, &reply, &body) : MHD_NO;
}

enum MHD_Result
reply_refuse(struct MHD_Connection *connection, int status, enum err code, const char *message)
{
    struct problem problem = {.status = status};
    (void)err_set(&problem.info, code, "%s", message); // sent at once
    return reply_problem(connection, &problem);
}

enum MHD_Result
reply_unchanged(struct MHD_Connection *connection, const char *tag, const char *cache)
{
    CLEANUP(strbuf_release) struct strbuf nothing = {0};
    strbuf_append_text(&nothing, "");
    struct reply reply = {.status = MHD_HTTP_NOT_MODIFIED, .etag = tag, .cache = cache};
    return reply_send(connection, &reply, &nothing);
}
