// SPDX-License-Identifier: MIT
// http: handles a connection: authentication, dispatch, and the response.
//
//   access -> method -> [ /api/v1/events | /api/v1/baseline | a route | an asset | 404 ]
//
// Context: H; libmicrohttpd's threads, one for each connection. Trust: all input is hostile.
#pragma once

#include <microhttpd.h>

#include "server/access/authentication.h"
#include "server/access/visitors.h"
#include "server/api/answer_reply.h"
#include "server/http/event_hub.h"

// The state that all connections share.
struct http {
    struct credentials credentials;
    struct answer_service answers;
    struct event_hub events;
    struct visitors visitors;
};

// Callbacks for MHD_start_daemon; each takes the struct http. http_visit allocates the state of a
// connection. http_begin allocates the state of a request, from the raw target. http_end frees the
// latter; without http_end, the next http_begin or the end of the connection does.
void *http_begin(void *http, const char *target, struct MHD_Connection *connection);
enum MHD_Result http_handle(void *http,
                            struct MHD_Connection *connection,
                            const char *url,
                            const char *method,
                            const char *version,
                            const char *data,
                            size_t *data_len,
                            void **exchange);
void http_end(void *http,
              struct MHD_Connection *connection,
              void **exchange,
              enum MHD_RequestTerminationCode code);

// A connection was opened, or is about to be closed.
void http_visit(void *http,
                struct MHD_Connection *connection,
                void **visit,
                enum MHD_ConnectionNotificationCode code);
