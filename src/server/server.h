// SPDX-License-Identifier: MIT
// server: `cairn analyze`: a recording on 127.0.0.1, for a browser.
//
//   server_open -> server_run (until told to stop) -> server_close
//
// Every connection has its own thread (libmicrohttpd); the thread in server_run watches the file
// and reads it again when it is rewritten. What is let in: access.h. What is answered: routes.c,
// assets.c, and the few targets in http.c that are not plain questions.
// Bounds: 64 connections, as many answers at once as there are processors, 30 s without progress.
// Context: H. The library never prints.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/model/profile.h"

// Texts are borrowed and must outlive the server.
struct server_options {
    const char *path;          // of the recording
    const char *baseline_path; // of the one to compare it with, NULL: none
    const char *tool_version;
    const char *editor; // pattern of a link that opens an editor, NULL: none
    uint16_t port;      // 0: any that is free
    bool hides_sources;
    const struct name_sources *sources; // of names; may be NULL
};

struct server;

// Reads the recordings and listens. Errors: those of input_open_profile; ERR_INVALID for an editor
// pattern that is no link; ERR_IO with a sentence if the port cannot be had.
enum err server_open(const struct server_options *options,
                     struct server **out,
                     struct err_info *info) MUST_USE;

uint16_t server_port(const struct server *server);

// The token that is good for as long as the server runs.
const char *server_token(const struct server *server);

// A token that opens the page once: for the command line of a browser, which others can see.
const char *server_launch_token(const struct server *server);

// Watches the file until `stop_fd` can be read.
void server_run(struct server *server, int stop_fd);

void server_close(struct server *server); // accepts NULL
void server_closep(struct server **server);
