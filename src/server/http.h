// SPDX-License-Identifier: MIT
// http: handles a connection: authentication, dispatch, and the response.
//
//   access -> method -> [ /api/v1/events | /api/v1/baseline | a route | an asset | 404 ]
//                       [ metrics_reply.h ]
//                       [ store_reply.h | an asset | 404 ]
//                       [ store_changes.h | prometheus_reply.h | store_reply.h | 404 ]
//
// A server is for the viewer of a recording, for that of a store, for collectors of metrics, or for
// agents and dashboards of a store. The first and the last take uploads, and the last two have no
// page.
// Context: H; libmicrohttpd's threads, one for each connection. Trust: all input is hostile.
#pragma once

#include <microhttpd.h>

#include "server/access/authentication.h"
#include "server/access/visitors.h"
#include "server/api/answer_reply.h"
#include "server/http/event_hub.h"
#include "server/metrics/metrics_source.h"
#include "server/store/store_changes.h"
#include "server/store/store_reply.h"

// The state that all connections share.
struct http {
    struct credentials credentials;
    struct metrics_source *metrics;    // borrowed; NULL: the server of a viewer
    struct store_service *store;       // borrowed; NULL: not the server of a store
    struct served_store *served_store; // borrowed; NULL: the store has a viewer, and takes nothing
    struct store_access roles;         // of a served store
    struct answer_service answers;
    struct event_hub events;
    struct visitors visitors;
    unsigned silence_max_s; // a connection on which nothing moves for longer is closed; 0: 30 s
};

// Serve the connections of a listening socket, which then belongs to the result. `pem` has
// certificates and a key for TLS, NULL for none; it must outlive the result. The library must be
// loaded. Return NULL with a sentence after a failure.
struct MHD_Daemon *
http_daemon_start(struct http *http, int fd, const char *pem, struct err_info *info);
