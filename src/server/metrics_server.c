// SPDX-License-Identifier: MIT
// metrics_server: see metrics_server.h.
#include "server/metrics_server.h"

#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "server/http.h"
#include "server/http/http_library.h"

enum {
    TLS_FILE_MAX_BYTES = 1 << 20,
};

// --- the server's process -----------------------------------------------------------------------

struct serving {
    struct http *http;               // borrowed
    const struct listener *listener; // borrowed
    const char *pem;                 // borrowed; NULL: no TLS
};

static enum err begin_to_serve(void *context, struct err_info *info)
{
    const struct serving *serving = context;
    TRY(http_library_load(info));
    return http_daemon_start(serving->http, serving->listener->fd, serving->pem, info) != NULL
               ? ERR_OK
               : info->code;
}

// Take the path of the recording from the recorder, until it ends. Threads serve meanwhile.
static void follow_recorder(void *context, int channel)
{
    const struct serving *serving = context;
    struct side_message message;
    while (side_process_hear(channel, &message)) {
        // Without memory, it is never ready.
        (void)!metrics_source_set_path(serving->http->metrics, &message);
    }
    listener_remove(serving->listener);
}

// --- the recorder's side ------------------------------------------------------------------------

static void forget(struct metrics_server *server)
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
    CLEANUP(strbuf_release) struct strbuf pem = {0};
    struct metrics_source source = METRICS_SOURCE_INIT;
    struct http http = {.metrics = &source};
    struct metrics_server server = {.side.channel = -1};
    TRY(listener_open(options->address, &server.listener, info));
    source.names = options->names;
    source.recorder = getpid();
    http.credentials.policy.has_any_name = server.listener.is_unix || !server.listener.is_loopback;
    http.credentials.policy.is_open = server.listener.is_unix || options->token == NULL;
    if (options->token != NULL) {
        http.credentials.token = *options->token;
    }
    enum err err = check_secrecy(options, &server.listener, info);
    if (err == ERR_OK && options->tls_file != NULL) {
        err = file_read(options->tls_file, TLS_FILE_MAX_BYTES, &pem, info);
    }
    if (err == ERR_OK) {
        struct serving serving = {&http, &server.listener,
                                  options->tls_file != NULL ? strbuf_text(&pem) : NULL};
        const struct side_process_work work = {.name = "cairn-metrics",
                                               .what = "the server of --listen",
                                               .context = &serving,
                                               .begin = begin_to_serve,
                                               .run = follow_recorder};
        err = side_process_start(&work, &server.side, info);
    }
    fd_closep(&server.listener.fd); // the server has it
    if (err != ERR_OK) {
        forget(&server);
        return err;
    }
    *out = server;
    return ERR_OK;
}

bool metrics_server_stop(struct metrics_server *server)
{
    if (server->side.process == 0) {
        return true;
    }
    // It writes nothing, and a client must not delay the end.
    const bool has_run = side_process_stop(&server->side, 0);
    forget(server);
    return has_run;
}
