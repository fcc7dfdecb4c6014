// SPDX-License-Identifier: MIT
// serve_store: `cairn store serve`: serves a store until a signal.
// Context: H; the caller has one thread.
#pragma once

#include "base/err.h"
#include "store/retention.h"

struct serve_settings {
    const char *place;                     // of the store, NULL: the user's own
    const char *address;                   // NULL: 127.0.0.1:9470
    const char *tls_file;                  // NULL: no TLS
    const char *read_token_file;           // NULL: only the administrator may read
    const char *add_token_file;            // likewise
    const char *admin_token_file;          // NULL: the token is drawn, and printed
    const struct retention_policy *policy; // NULL: nothing is removed
    const struct name_sources *names;
};

enum err serve_store(const struct serve_settings *settings, struct err_info *info) MUST_USE;
