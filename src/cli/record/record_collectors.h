// SPDX-License-Identifier: MIT
// record_collectors: what collectors get of a recording that runs: the options of `cairn record`
// --listen and --push, and the server and the process that they ask for.
//
// Context: H. Prints nothing; the caller shows `said`.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "cli/options/options.h"
#include "host/text/strbuf.h"
#include "push/push_process.h"
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

// What push_options borrows.
struct push_inputs {
    char *credentials;   // owned
    const char **labels; // owned; the texts are those of argv
};

void push_inputs_release(struct push_inputs *inputs);

// Check the options and complete them. `labels`: uses of --label; `auth`: the file of --push-auth,
// or NULL. ERR_INVALID and the errors of reading the file, with a sentence.
enum err record_push_prepare(const struct option_word_vec *labels,
                             const char *auth,
                             struct push_options *options,
                             struct push_inputs *out,
                             struct err_info *info) MUST_USE;

// Start to push, if it is asked for. Call it before there are threads. Errors: those of
// push_process_start.
enum err record_push_start(const struct push_options *options,
                           const struct name_sources *names,
                           struct push_process *out,
                           struct err_info *info) MUST_USE;

// Send what is left, and end. `said` becomes a sentence if profiles were not delivered.
void record_push_stop(struct push_process *push,
                      const struct push_options *options,
                      struct strbuf *said);
