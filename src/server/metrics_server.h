// SPDX-License-Identifier: MIT
// metrics_server: serves collectors while a program is recorded (`cairn record --listen`).
//
// The server is a process of its own (side_process.h): one thread a connection, as for the viewer.
// It reads the checkpoints that the recorder writes anyway (metrics_source.h). With a new
// certificate or token another daemon takes over the listening socket:
//
//   socket --> daemon 1     --reload-->     socket --> daemon 2
//                                           daemon 1: its connections end after a second
//
// Context: H. metrics_server_start forks, so the caller must have one thread.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "host/os/side_process.h"
#include "profile/model/profile.h"
#include "server/access/access.h"
#include "server/http/listener.h"

struct metrics_server_options {
    const char *address;              // listener.h
    const char *tls_file;             // certificates and key as PEM; NULL: no TLS
    const char *token_file;           // has the token; NULL: the token has no file
    const struct access_token *token; // NULL: none is needed; a Unix socket never needs one
    const struct name_sources *names; // borrowed; may be NULL
};

struct metrics_server {
    struct side_process side; // tell it the path of the recording
    struct listener listener; // the name of the address
    bool has_files;           // a certificate or a token that may change
    uint64_t reloads;         // requests
    uint64_t results;         // of these
    struct err_info result;   // the latest
};

// Start to serve. ERR_INVALID: the address, or a token that would cross the network in clear text;
// ERR_IO: the address is in use, or the certificate is unusable. `info` has a sentence.
enum err metrics_server_start(const struct metrics_server_options *options,
                              struct metrics_server *out,
                              struct err_info *info) MUST_USE;

// Let the server read the files of its certificate and its token anew, without waiting for it. If
// they are usable, new connections get them, and old ones end. Else the old ones stay. ERR_INVALID:
// there is nothing to read; ERR_DEAD.
enum err metrics_server_reload(struct metrics_server *server, struct err_info *info) MUST_USE;

// Return whether all reloads have a result; *result is the latest.
bool metrics_server_has_reloaded(struct metrics_server *server, struct err_info *result);

// End the server at once. Accepts a zeroed one. Return whether it still ran.
bool metrics_server_stop(struct metrics_server *server);
