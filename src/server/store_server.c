// SPDX-License-Identifier: MIT
// store_server: see store_server.h.
#include "server/store_server.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/compiler.h"
#include "server/generation.h"
#include "server/http/http_library.h"

struct store_server {
    struct served_store served;
    struct store_service asked; // for tables
    struct listener listener;   // owned
    const char *tls_file;       // borrowed; NULL: no TLS
    struct generation *now;     // owned; NULL: not started
    struct generation *older;   // owned; before the last reload; NULL: none
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

static void set_roles(struct http *http,
                      const struct listener *listener,
                      const struct access_token *const roles[STORE_ROLE_COUNT])
{
    const struct access_policy policy = {
        .is_open = listener->is_unix,
        .has_any_name = listener->is_unix || !listener->is_loopback,
        .needs_header = true, // addresses are in the logs of proxies
    };
    http->credentials.policy = policy;
    for (int role = 0; role < STORE_ROLE_COUNT; role++) {
        http->roles.has_role[role] =
            roles[role] != NULL || (listener->is_unix && role == STORE_ROLE_ADMIN);
        http->roles.roles[role].policy = policy;
        if (roles[role] != NULL) {
            http->roles.roles[role].token = *roles[role];
        }
    }
}

// Serve with these tokens, and with the certificate as its file is now.
static MUST_USE enum err start_generation(struct store_server *server,
                                          const struct access_token *const roles[STORE_ROLE_COUNT],
                                          struct err_info *info)
{
    struct generation *next = calloc(1, sizeof(*next));
    if (next == NULL) {
        return ERR_NO_MEMORY;
    }
    next->http.store = &server->asked;
    next->http.served_store = &server->served;
    set_roles(&next->http, &server->listener, roles);
    const enum err problem = generation_start(next, server->tls_file, server->listener.fd, info);
    if (problem != ERR_OK) {
        generation_free(next);
        return problem;
    }
    server->now = next;
    return ERR_OK;
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
    server->tls_file = options->tls_file;
    TRY(try_store(options->place, info));
    TRY(listener_open(options->address, &server->listener, info));
    TRY(check_secrecy(options, &server->listener, info));
    if (sem_init(&server->served.turns, 0, processors > 1 ? (unsigned)processors : 1) != 0) {
        return err_set_errno(info, errno, "cannot make a semaphore");
    }
    server->has_turns = true;
    TRY(store_intake_start(&server->served.intake, info));
    TRY(http_library_load(info));
    return start_generation(server, options->roles, info);
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

enum err store_server_reload(struct store_server *server,
                             const struct access_token *const roles[STORE_ROLE_COUNT],
                             struct err_info *info)
{
    struct generation *old = server->now;
    TRY(start_generation(server, roles, info));
    store_server_end_older(server);
    generation_retire(old);
    server->older = old;
    return ERR_OK;
}

void store_server_end_older(struct store_server *server)
{
    generation_free(server->older);
    server->older = NULL;
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
    store_server_end_older(server);
    generation_free(server->now);
    if (server->has_turns) {
        (void)sem_destroy(&server->served.turns); // no thread is left
    }
    listener_remove(&server->listener);
    listener_release(&server->listener);
    free(server);
}
