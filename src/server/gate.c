// SPDX-License-Identifier: MIT
// gate: see gate.h.
#include "server/gate.h"

#include <string.h>

#include "server/reply.h"

void gate_find_token(const char *target, struct access_token *out)
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

enum access_verdict
gate_check(struct http *http, struct MHD_Connection *connection, const char *target, bool is_write)
{
    struct access_token token;
    gate_find_token(target, &token);
    struct access_headers headers = {
        .host = http_header(connection, MHD_HTTP_HEADER_HOST),
        .origin = http_header(connection, "Origin"),
        .fetch_site = http_header(connection, "Sec-Fetch-Site"),
        .cookie = http_header(connection, MHD_HTTP_HEADER_COOKIE),
        .authorization = http_header(connection, MHD_HTTP_HEADER_AUTHORIZATION),
        .token = token.text[0] != '\0' ? token.text : NULL,
        .is_write = is_write,
        .is_page = target_has_path(target, "/"),
    };
    enum access_verdict verdict = access_check(&http->token, http->cookie_name, &headers);
    if (verdict == ACCESS_NO_TOKEN && headers.is_page && takes_launch_token(http, &token)) {
        return ACCESS_GRANTED;
    }
    return verdict;
}

// For a person who opened an old address, or one without its token.
static enum MHD_Result send_no_token_page(struct MHD_Connection *connection)
{
    static const char page[] =
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>cairn</title>"
        "<h1>This address has no valid access token</h1>"
        "<p>Open the address that <code>cairn analyze</code> printed. "
        "Its token is new each time it starts.</p></html>\n";
    static const struct reply reply = {
        .status = MHD_HTTP_UNAUTHORIZED, .type = "text/html; charset=utf-8", .cache = "no-store"};
    return reply_send_static(connection, &reply,
                             (struct bytes){(const uint8_t *)page, sizeof(page) - 1});
}

enum MHD_Result
gate_refuse(struct MHD_Connection *connection, enum access_verdict verdict, const char *target)
{
    enum {
        MISDIRECTED = 421 // newer than the library's names
    };
    switch (verdict) {
    case ACCESS_WRONG_HOST:
        return reply_refuse(connection, MISDIRECTED, ERR_PERMISSION,
                            "only 127.0.0.1 and localhost are served");
    case ACCESS_WRONG_ORIGIN:
        return reply_refuse(connection, MHD_HTTP_FORBIDDEN, ERR_PERMISSION,
                            "requests of other sites are not answered");
    case ACCESS_NO_TOKEN:
        if (target_has_path(target, "/")) {
            return send_no_token_page(connection);
        }
        return reply_refuse(connection, MHD_HTTP_UNAUTHORIZED, ERR_PERMISSION,
                            "open the address that cairn printed: it holds the access token");
    case ACCESS_GRANTED:
        break;
    }
    return MHD_NO;
}
