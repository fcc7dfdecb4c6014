// SPDX-License-Identifier: MIT
// store_server: serves a store to agents that add recordings, and to Grafana, which reads series
// (`cairn store serve`).
//
//   PUT, DELETE /api/v1/recordings   store/store_changes.h
//   GET /api/v1/query ...            store/prometheus_reply.h
//   GET /api/v1/store/QUERY          store/store_reply.h
//   GET /ready                       needs no token
//
// With new certificates and tokens another generation takes over the listening socket
// (generation.h). The old one ends a while later, because agents may be sending to it.
//
// Context: H. It serves from start to stop in threads of its own.
#pragma once

#include "base/err.h"
#include "server/access/access.h"
#include "server/http/listener.h"
#include "server/store/store_changes.h"

struct store_server_options {
    const char *address;                                // listener.h
    const char *tls_file;                               // certificates and key as PEM; NULL: no TLS
    const char *place;                                  // of the store, NULL: the user's own
    const struct retention_policy *policy;              // borrowed; NULL: nothing is removed
    const struct access_token *roles[STORE_ROLE_COUNT]; // borrowed; NULL: the role has no token
    enum err (*make_rows)(void *context,
                          const char *path,
                          const struct recording_source *source,
                          struct recording_rows *out,
                          struct err_info *info);
    void *context; // of make_rows; borrowed
};

struct store_server;

// Start to serve. The store is made if it does not exist. ERR_INVALID: the address, or tokens that
// would cross the network in clear text; ERR_IO: the address is in use, or the certificate is
// unusable; or what store_open() says. `info` has a sentence.
enum err store_server_start(const struct store_server_options *options,
                            struct store_server **out,
                            struct err_info *info) MUST_USE;

// Serve new connections with the certificate as its file is now, and with these tokens. A failure
// leaves all as it was, with a sentence.
enum err store_server_reload(struct store_server *server,
                             const struct access_token *const roles[STORE_ROLE_COUNT],
                             struct err_info *info) MUST_USE;

// End the connections that are older than the last reload.
void store_server_end_older(struct store_server *server);

// The address as clients name it.
const char *store_server_name(const struct store_server *server);

// Answer what is under way, add what waits, and end. Accepts NULL.
void store_server_stop(struct store_server *server);
