// SPDX-License-Identifier: MIT
#include "server/metrics_server.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/os/file.h"
#include "server/access/access.h"
#include "server/generation.h"
#include "server/http/http_library.h"

enum {
    RETIRE_S = 1,
};

// --- the server's process -----------------------------------------------------------------------

struct serving {
    const struct metrics_server_options *options; // borrowed
    const struct listener *listener;              // borrowed
    struct metrics_source *source;                // borrowed
    struct generation *now;                       // owned; NULL until it serves
};

static void generation_freep(struct generation **generation)
{
    generation_free(*generation);
}

// Serve with the token, and with the certificate as its file is now.
static MUST_USE enum err start_generation(struct serving *serving,
                                          const struct access_token *token,
                                          struct generation **out,
                                          struct err_info *info)
{
    const struct metrics_server_options *options = serving->options;
    const struct listener *listener = serving->listener;
    CLEANUP(generation_freep) struct generation *next = calloc(1, sizeof(*next));
    if (next == NULL) {
        return ERR_NO_MEMORY;
    }
    next->http.metrics = serving->source;
    next->http.credentials.policy.has_any_name = listener->is_unix || !listener->is_loopback;
    next->http.credentials.policy.is_open = listener->is_unix || token == NULL;
    next->http.credentials.policy.needs_header = true; // only the viewer opens addresses
    if (token != NULL) {
        next->http.credentials.token = *token;
    }
    TRY(generation_start(next, options->tls_file, listener->fd, info));
    *out = TAKE(next);
    return ERR_OK;
}

static enum err begin_to_serve(void *context, struct err_info *info)
{
    struct serving *serving = context;
    TRY(http_library_load(info));
    return start_generation(serving, serving->options->token, &serving->now, info);
}

// Start another generation on the same socket. The old one accepts no more when this returns, so a
// client that then hears of the reload gets the new certificate.
static MUST_USE enum err
reload_generation(struct serving *serving, struct generation **old, struct err_info *info)
{
    const struct metrics_server_options *options = serving->options;
    struct access_token token = serving->now->http.credentials.token;
    struct generation *next = NULL;
    if (options->token_file != NULL) {
        TRY(token_file_read(options->token_file, &token, info));
    }
    TRY(start_generation(serving, options->token != NULL ? &token : NULL, &next, info));
    *old = serving->now;
    serving->now = next;
    generation_retire(*old);
    return ERR_OK;
}

// Let the answers under way end, then the connections of the old certificate and token.
static void end_generation(struct generation *old)
{
    clock_sleep_ns(RETIRE_S * NS_PER_S); // its signals are ignored
    generation_free(old);
}

// Take the path of the recording, and requests, from the recorder, until it ends. Threads serve
// meanwhile.
static void follow_recorder(void *context, int channel)
{
    struct serving *serving = context;
    struct side_message message;
    while (side_process_receive(channel, &message)) {
        if (!message.is_reload) {
            // Without memory, it is never ready.
            (void)!metrics_source_set_path(serving->source, &message);
            continue;
        }
        struct err_info result = {0};
        struct generation *old = NULL;
        const enum err err = reload_generation(serving, &old, &result);
        result.code = err;
        side_process_reply(channel, &result);
        if (err == ERR_OK) {
            end_generation(old);
        }
    }
    listener_remove(serving->listener);
}

// --- the recorder's side ------------------------------------------------------------------------

static void forget_server(struct metrics_server *server)
{
    listener_remove(&server->listener);
    listener_release(&server->listener);
    *server = (struct metrics_server){.side.channel = -1};
}

// A token must not cross a network in clear text.
static MUST_USE enum err check_secrecy(const struct metrics_server_options *options,
                                       const struct listener *listener,
                                       struct err_info *info)
{
    const bool is_near = listener->is_unix || listener->is_loopback;
    if (is_near || options->token == NULL || options->tls_file != NULL) {
        return ERR_OK;
    }
    return err_set(info, ERR_INVALID,
                   "--listen: beyond the loopback the token needs --tls; --no-token serves "
                   "anyone who can reach the port");
}

enum err metrics_server_start(const struct metrics_server_options *options,
                              struct metrics_server *out,
                              struct err_info *info)
{
    struct metrics_source source = METRICS_SOURCE_INIT;
    struct metrics_server server = {
        .side.channel = -1, .has_files = options->tls_file != NULL || options->token_file != NULL};
    TRY(listener_open(options->address, &server.listener, info));
    source.names = options->names;
    source.recorder = getpid();
    struct serving serving = {.options = options, .listener = &server.listener, .source = &source};
    const struct side_process_work work = {.name = "cairn-metrics",
                                           .what = "the server of --listen",
                                           .context = &serving,
                                           .begin = begin_to_serve,
                                           .run = follow_recorder};
    enum err err = check_secrecy(options, &server.listener, info);
    if (err == ERR_OK) {
        err = side_process_start(&work, &server.side, info);
    }
    fd_closep(&server.listener.fd); // the server has it
    if (err != ERR_OK) {
        forget_server(&server);
        return err;
    }
    *out = server;
    return ERR_OK;
}

enum err metrics_server_reload(struct metrics_server *server, struct err_info *info)
{
    if (server->side.process == 0) {
        return err_set(info, ERR_INVALID, "this recording has no --listen");
    }
    if (!server->has_files) {
        return err_set(info, ERR_INVALID,
                       "there is nothing to read: --listen has neither --tls nor --token-file");
    }
    TRY(side_process_ask_reload(&server->side, info));
    server->reloads++;
    return ERR_OK;
}

bool metrics_server_has_reloaded(struct metrics_server *server, struct err_info *result)
{
    while (server->results < server->reloads &&
           side_process_take_result(&server->side, &server->result)) {
        server->results++;
    }
    *result = server->result;
    return server->results == server->reloads;
}

bool metrics_server_stop(struct metrics_server *server)
{
    if (server->side.process == 0) {
        return true;
    }
    // It writes nothing, and a client must not delay the end.
    const bool has_run = side_process_stop(&server->side, 0);
    forget_server(server);
    return has_run;
}
