// SPDX-License-Identifier: MIT
#include "server/metrics_server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/os/file.h"
#include "server/access/access.h"
#include "server/http.h"
#include "server/http/http_library.h"

enum {
    TLS_FILE_MAX_BYTES = 1 << 20,
    RETIRE_S = 1,
};

// --- the server's process -----------------------------------------------------------------------

// A daemon with the certificate and the token that it began with.
struct generation {
    struct http http;
    struct strbuf pem;         // owned; empty: no TLS
    struct MHD_Daemon *daemon; // owned
};

struct serving {
    const struct metrics_server_options *options; // borrowed
    const struct listener *listener;              // borrowed
    struct metrics_source *source;                // borrowed
    struct generation *now;                       // owned; NULL until it serves
};

// Free a generation whose daemon has been stopped.
static void generation_freep(struct generation **generation)
{
    if (*generation != NULL) {
        strbuf_release(&(*generation)->pem);
        free(*generation);
    }
}

// Close a descriptor of the listening socket, unless libmicrohttpd has done so after a failure.
static void close_unless_closed(int fd, int listener)
{
    struct stat own;
    struct stat ours;
    if (fstat(fd, &own) == 0 && fstat(listener, &ours) == 0 && own.st_ino == ours.st_ino) {
        (void)close(fd); // nothing was written to it
    }
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
    if (options->tls_file != NULL) {
        TRY(file_read(options->tls_file, TLS_FILE_MAX_BYTES, &next->pem, info));
    }
    const int fd = fcntl(listener->fd, F_DUPFD_CLOEXEC, 0); // the daemon's own
    if (fd < 0) {
        return err_set_errno(info, errno, "cannot start the web server");
    }
    next->daemon = http_daemon_start(
        &next->http, fd, options->tls_file != NULL ? strbuf_text(&next->pem) : NULL, info);
    if (next->daemon == NULL) {
        close_unless_closed(fd, listener->fd);
        return info->code;
    }
    *out = TAKE(next);
    return ERR_OK;
}

static enum err begin_to_serve(void *context, struct err_info *info)
{
    struct serving *serving = context;
    TRY(http_library_load(info));
    return start_generation(serving, serving->options->token, &serving->now, info);
}

// Start another generation on the same socket.
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
    return ERR_OK;
}

// Let the answers under way end, then the connections of the old certificate and token.
static void retire_generation(struct generation *old)
{
    const int fd = MHD_quiesce_daemon(old->daemon); // it accepts no more
    if (fd >= 0) {
        (void)close(fd); // the next daemon has another descriptor of it
    }
    clock_sleep_ns(RETIRE_S * NS_PER_S); // its signals are ignored
    MHD_stop_daemon(old->daemon);
    generation_freep(&old);
}

// Take the path of the recording, and requests, from the recorder, until it ends. Threads serve
// meanwhile.
static void follow_recorder(void *context, int channel)
{
    struct serving *serving = context;
    struct side_message message;
    while (side_process_hear(channel, &message)) {
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
            retire_generation(old);
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
                   "everybody who reaches the port");
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
