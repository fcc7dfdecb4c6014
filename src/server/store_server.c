// SPDX-License-Identifier: MIT
// store_server: see store_server.h.
#include "server/store_server.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "server/http.h"
#include "server/http/http_library.h"

enum {
    TLS_FILE_MAX_BYTES = 1 << 20,
};

struct store_server {
    struct http http;
    struct served_store served;
    struct store_service asked; // what `http` asks for tables
    struct listener listener;   // owned
    struct strbuf pem;          // owned; empty: no TLS
    struct MHD_Daemon *daemon;  // owned; NULL: not started
    bool has_turns;
};

// A token must not cross a network in clear text.
static MUST_USE enum err check_secrecy(const struct store_server_options *options,
                                       const struct listener *listener,
                                       struct err_info *info)
{
    return listener->is_unix || listener->is_loopback || options->tls_file != NULL
               ? ERR_OK
               : err_set(info, ERR_INVALID, "--listen: beyond the loopback the tokens need --tls");
}

static void set_roles(struct store_server *server, const struct store_server_options *options)
{
    const struct listener *listener = &server->listener;
    const struct access_policy policy = {
        .is_open = listener->is_unix,
        .has_any_name = listener->is_unix || !listener->is_loopback,
        .needs_header = true, // addresses are in the logs of proxies
    };
    server->http.credentials.policy = policy;
    for (int role = 0; role < STORE_ROLE_COUNT; role++) {
        server->served.has_role[role] =
            options->roles[role] != NULL || (listener->is_unix && role == STORE_ROLE_ADMIN);
        server->served.roles[role].policy = policy;
        if (options->roles[role] != NULL) {
            server->served.roles[role].token = *options->roles[role];
        }
    }
}

// Check that the store can be opened, and make it if it does not exist.
static MUST_USE enum err try_store(const char *place, struct err_info *info)
{
    CLEANUP(store_closep) struct store *store = NULL;
    return store_open(place, true, &store, info);
}

static MUST_USE enum err start_server(struct store_server *server,
                                      const struct store_server_options *options,
                                      struct err_info *info)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    server->served =
        (struct served_store){.place = options->place,
                              .intake = {.place = options->place, .policy = options->policy},
                              .make_rows = options->make_rows,
                              .context = options->context};
    server->asked =
        (struct store_service){.place = options->place, .asking = PTHREAD_MUTEX_INITIALIZER};
    server->http.store = &server->asked;
    server->http.served_store = &server->served;
    TRY(try_store(options->place, info));
    TRY(listener_open(options->address, &server->listener, info));
    TRY(check_secrecy(options, &server->listener, info));
    set_roles(server, options);
    if (options->tls_file != NULL) {
        TRY(file_read(options->tls_file, TLS_FILE_MAX_BYTES, &server->pem, info));
    }
    if (sem_init(&server->served.turns, 0, processors > 1 ? (unsigned)processors : 1) != 0) {
        return err_set_errno(info, errno, "cannot make a semaphore");
    }
    server->has_turns = true;
    TRY(store_intake_start(&server->served.intake, info));
    TRY(http_library_load(info));
    server->daemon =
        http_daemon_start(&server->http, server->listener.fd,
                          options->tls_file != NULL ? strbuf_text(&server->pem) : NULL, info);
    if (server->daemon == NULL) {
        return info->code;
    }
    server->listener.fd = -1; // owned by the daemon from here on
    return ERR_OK;
}

enum err store_server_start(const struct store_server_options *options,
                            struct store_server **out,
                            struct err_info *info)
{
    struct store_server *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        return ERR_NO_MEMORY;
    }
    server->listener.fd = -1;
    const enum err problem = start_server(server, options, info);
    if (problem != ERR_OK) {
        store_server_stop(server);
        return problem;
    }
    *out = server;
    return ERR_OK;
}

const char *store_server_name(const struct store_server *server)
{
    return strbuf_text(&server->listener.name);
}

void store_server_stop(struct store_server *server)
{
    if (server == NULL) {
        return;
    }
    store_intake_stop(&server->served.intake); // clients that wait get their answers
    if (server->daemon != NULL) {
        MHD_stop_daemon(server->daemon);
    }
    if (server->has_turns) {
        (void)sem_destroy(&server->served.turns); // no thread is left
    }
    listener_remove(&server->listener);
    listener_release(&server->listener);
    strbuf_release(&server->pem);
    free(server);
}
