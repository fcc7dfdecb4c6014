// SPDX-License-Identifier: MIT
// record_listen: the options of `cairn record --listen`, and the server that they ask for.
//
// Context: H. Prints nothing; the caller shows `said`.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "host/text/strbuf.h"
#include "profile/model/profile.h"
#include "server/metrics_server.h"

struct listen_settings {
    const char *address;    // NULL: serve nothing
    const char *token_file; // has the token, or gets one; NULL: a new token
    const char *tls_file;   // certificates and key as PEM; NULL: no TLS
    bool no_token;
};

// Refuse contradictory options. ERR_INVALID with a sentence.
enum err record_listen_check(const struct listen_settings *settings, struct err_info *info)
    MUST_USE;

// Start the server, if one is asked for. `said` becomes a sentence for the user, with the address
// and a new token. Call it before there are threads. Errors: those of metrics_server_start, and of
// the file of the token.
enum err record_listen_start(const struct listen_settings *settings,
                             const struct name_sources *names,
                             struct metrics_server *out,
                             struct strbuf *said,
                             struct err_info *info) MUST_USE;
