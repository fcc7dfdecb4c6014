// SPDX-License-Identifier: MIT
// server: the server of `cairn analyze`: serves a recording on 127.0.0.1 to a browser, or a store.
//
// The server of a store opens recordings of it in servers of their own, SERVER_OPENED_MAX at most:
// beyond that the oldest ends.
//
//   server_open -> server_run (until it is stopped) -> server_closep
//
// Every connection has its own thread (libmicrohttpd). The thread in server_run watches the file
// and reads it again when it is rewritten. access.h decides about access. Requests are answered by
// routes.c, assets.c, and http.c for a few targets.
// Bounds: 64 connections; as many concurrent answers as processors; 30 s without progress.
// Context: H. The library never prints.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/model/profile.h"
#include "profile/select/suppressions.h"

// Texts are borrowed and must outlive the server.
struct server_options {
    const char *path;          // of the recording; NULL: serve a store
    const char *store_place;   // of the store; NULL: the user's own
    const char *baseline_path; // of the recording to compare with; NULL: none
    const char *tool_version;
    const char *editor; // pattern of a link that opens an editor; NULL: none
    uint16_t port;      // 0: any free port
    bool hides_sources;
    struct suppression_choice rules;    // for leaks
    const struct name_sources *sources; // of names; may be NULL
    struct progress *progress;          // of server_open; NULL: silent
};

struct server;

enum {
    SERVER_OPENED_MAX = 8,
};

// Read the recordings and listen. Errors: those of input_open_profile; ERR_INVALID if the editor
// pattern is not a link; ERR_IO with a sentence if the port is unavailable.
enum err server_open(const struct server_options *options,
                     struct server **out,
                     struct err_info *info) MUST_USE;

uint16_t server_port(const struct server *server);

// The token that is valid until the server ends.
const char *server_token(const struct server *server);

// A token that opens the page once. Other users can see it on a browser's command line.
const char *server_launch_token(const struct server *server);

// Watch the file until `stop_fd` is readable.
void server_run(struct server *server, int stop_fd);

void server_closep(struct server **server); // accepts a pointer to NULL
