// SPDX-License-Identifier: MIT
#include "server/access/authentication.h"

#include <string.h>
#include <strings.h>

#include "host/text/json_writer.h"
#include "server/http/connection.h"
#include "server/http/reply.h"
#include "views_json/layout/view.h"

static bool takes_launch_token(struct credentials *credentials, const char *token)
{
    return token != NULL && access_is_token(&credentials->launch, token, strlen(token)) &&
           // Relaxed: only one exchange may succeed; it publishes nothing else.
           !atomic_exchange_explicit(&credentials->is_launch_spent, true, memory_order_relaxed);
}

static enum MHD_Result
count_hosts(void *count, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    (void)value;
    *(unsigned *)count += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
    return MHD_YES;
}

// The Host header; NULL if it is missing or repeated: any of several could be the true one.
static const char *only_host(struct MHD_Connection *connection)
{
    unsigned count = 0;
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, count_hosts, &count); // a count
    return count == 1 ? http_header(connection, MHD_HTTP_HEADER_HOST) : NULL;
}

enum access_verdict authentication_check(struct credentials *credentials,
                                         struct MHD_Connection *connection,
                                         const char *target)
{
    const char *token = http_argument(connection, "token");
    struct access_headers headers = {
        .host = only_host(connection),
        .origin = http_header(connection, "Origin"),
        .fetch_site = http_header(connection, "Sec-Fetch-Site"),
        .authorization = http_header(connection, MHD_HTTP_HEADER_AUTHORIZATION),
        .token = token,
        .is_page = target_has_path(target, "/"),
    };
    enum access_verdict verdict = access_check(&credentials->token, credentials->policy, &headers);
    if (verdict == ACCESS_NO_TOKEN && target_has_path(target, AUTHENTICATION_TOKEN_PATH) &&
        takes_launch_token(credentials, token)) {
        return ACCESS_GRANTED;
    }
    return verdict;
}

enum MHD_Result authentication_send_token(const struct credentials *credentials,
                                          struct MHD_Connection *connection)
{
    CLEANUP(strbuf_release) struct strbuf body = {0};
    const struct reply reply = {.status = MHD_HTTP_OK, .type = "application/json"};
    struct json_writer w;
    json_to_strbuf(&w, &body, JSON_COMPACT);
    json_key_u64(&w, "version", VIEW_JSON_VERSION);
    json_key_string(&w, "token", credentials->token.text);
    return json_finish(&w) == ERR_OK ? reply_send(connection, &reply, &body) : MHD_NO;
}

enum MHD_Result authentication_refuse(const struct credentials *credentials,
                                      struct MHD_Connection *connection,
                                      enum access_verdict verdict)
{
    enum {
        MISDIRECTED = 421 // missing in older versions of libmicrohttpd
    };
    switch (verdict) {
    case ACCESS_WRONG_HOST:
        return reply_refuse(connection, MISDIRECTED, ERR_PERMISSION,
                            "only 127.0.0.1 and localhost are served");
    case ACCESS_WRONG_ORIGIN:
        return reply_refuse(connection, MHD_HTTP_FORBIDDEN, ERR_PERMISSION,
                            "requests from other sites are refused");
    case ACCESS_NO_TOKEN:
        return reply_refuse(connection, MHD_HTTP_UNAUTHORIZED, ERR_PERMISSION,
                            credentials->policy.needs_header
                                ? "send the token as 'Authorization: Bearer TOKEN'"
                                : "open the address that cairn printed; it contains the access "
                                  "token");
    case ACCESS_WRONG_ROLE:
        return reply_refuse(connection, MHD_HTTP_FORBIDDEN, ERR_PERMISSION,
                            "the token is for another role");
    case ACCESS_GRANTED:
        break;
    }
    return MHD_NO;
}
