// SPDX-License-Identifier: MIT
// generation: a daemon on a listening socket, with the certificate and the tokens that it began
// with.
//
// A server that gets new ones starts another generation on the same socket, and retires the old
// one: it accepts no more, and its connections end when it is stopped.
//
//   socket --> old     --start, retire-->     socket --> new
//                                             old: only its connections
//
// Owners: the one who started it; its descriptor of the socket is its own. Context: H.
#pragma once

#include "server/http.h"

struct generation {
    struct http http;          // the caller fills it in
    struct strbuf pem;         // owned; empty: no TLS
    struct MHD_Daemon *daemon; // owned; NULL: not started
};

// Serve the socket, with the certificate and key of a file as it is now; NULL: no TLS. `generation`
// must not move until it is stopped. A failure leaves it as it was, with a sentence.
enum err generation_start(struct generation *generation,
                          const char *tls_file,
                          int listener,
                          struct err_info *info) MUST_USE;

// Accept no more connections.
void generation_retire(struct generation *generation);

// End all connections, and free it. Accepts NULL, and one that was not started.
void generation_free(struct generation *generation);
