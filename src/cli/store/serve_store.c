// SPDX-License-Identifier: MIT
#include "cli/store/serve_store.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "base/compiler.h"
#include "cli/store/add_recordings.h"
#include "server/store_server.h"

#define ADDRESS_DEFAULT "127.0.0.1:9470"

static enum err make_rows(void *context,
                          const char *path,
                          const struct recording_source *source,
                          struct recording_rows *out,
                          struct err_info *info)
{
    return add_recordings_read(path, context, source, out, NULL, info);
}

// Block the signals that end the server. Threads that start later inherit that.
static MUST_USE enum err block_signals(sigset_t *out, struct err_info *info)
{
    (void)sigemptyset(out); // these cannot fail
    (void)sigaddset(out, SIGINT);
    (void)sigaddset(out, SIGTERM);
    (void)sigaddset(out, SIGHUP);
    const int status = pthread_sigmask(SIG_BLOCK, out, NULL);
    return status == 0 ? ERR_OK : err_set_errno(info, status, "cannot block signals");
}

enum err serve_store(const struct serve_settings *settings, struct err_info *info)
{
    const char *const files[STORE_ROLE_COUNT] = {
        [STORE_ROLE_READ] = settings->read_token_file,
        [STORE_ROLE_ADD] = settings->add_token_file,
        [STORE_ROLE_ADMIN] = settings->admin_token_file,
    };
    struct access_token tokens[STORE_ROLE_COUNT];
    struct store_server *server = NULL;
    sigset_t signals;
    int number = 0;
    struct store_server_options options = {
        .address = settings->address != NULL ? settings->address : ADDRESS_DEFAULT,
        .tls_file = settings->tls_file,
        .place = settings->place,
        .policy = settings->policy,
        .make_rows = make_rows,
        .context = (void *)(uintptr_t)settings->names, // make_rows only reads it
    };
    for (int role = 0; role < STORE_ROLE_COUNT; role++) {
        if (files[role] != NULL) {
            TRY(token_file_read_or_make(files[role], &tokens[role], info));
            options.roles[role] = &tokens[role];
        }
    }
    const bool draws = files[STORE_ROLE_ADMIN] == NULL;
    if (draws) {
        TRY(access_new_token(&tokens[STORE_ROLE_ADMIN], info));
        options.roles[STORE_ROLE_ADMIN] = &tokens[STORE_ROLE_ADMIN];
    }
    TRY(block_signals(&signals, info));
    TRY(store_server_start(&options, &server, info));
    (void)fprintf(stderr, "cairn: serving the store at %s%s%s\n", store_server_name(server),
                  draws ? ", token of the administrator " : "",
                  draws ? tokens[STORE_ROLE_ADMIN].text : "");
    while (sigwait(&signals, &number) != 0) { // it fails for a set that is none only
    }
    store_server_stop(server);
    return ERR_OK;
}
