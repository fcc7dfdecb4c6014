// SPDX-License-Identifier: MIT
#include "cli/store/serve_store.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/store/add_recordings.h"
#include "server/store_server.h"

#define ADDRESS_DEFAULT "127.0.0.1:9470"

enum {
    OLDER_MAX_S = 30, // for uploads under way at a reload
};

static enum err make_rows(void *context,
                          const char *path,
                          const struct recording_source *source,
                          struct recording_rows *out,
                          struct err_info *info)
{
    return add_recordings_read(path, context, source, out, NULL, info);
}

// The tokens of the roles; `given` has those that a role needs.
struct role_tokens {
    const char *files[STORE_ROLE_COUNT]; // borrowed; NULL: none
    struct access_token tokens[STORE_ROLE_COUNT];
    const struct access_token *given[STORE_ROLE_COUNT];
    bool has_drawn; // that of the administrator
};

static MUST_USE enum err role_tokens_begin(struct role_tokens *roles, struct err_info *info)
{
    for (int role = 0; role < STORE_ROLE_COUNT; role++) {
        if (roles->files[role] != NULL) {
            TRY(token_file_read_or_make(roles->files[role], &roles->tokens[role], info));
            roles->given[role] = &roles->tokens[role];
        }
    }
    roles->has_drawn = roles->files[STORE_ROLE_ADMIN] == NULL;
    if (roles->has_drawn) {
        TRY(access_new_token(&roles->tokens[STORE_ROLE_ADMIN], info));
        roles->given[STORE_ROLE_ADMIN] = &roles->tokens[STORE_ROLE_ADMIN];
    }
    return ERR_OK;
}

// Read the files once more. A token that was drawn stays.
static MUST_USE enum err role_tokens_reload(struct role_tokens *roles, struct err_info *info)
{
    struct access_token next[STORE_ROLE_COUNT];
    for (int role = 0; role < STORE_ROLE_COUNT; role++) {
        next[role] = roles->tokens[role];
        if (roles->files[role] != NULL) {
            TRY(token_file_read(roles->files[role], &next[role], info));
        }
    }
    memcpy(roles->tokens, next, sizeof(next));
    return ERR_OK;
}

static void reload(struct store_server *server, struct role_tokens *roles)
{
    struct err_info info = {0};
    const struct role_tokens before = *roles;
    enum err problem = role_tokens_reload(roles, &info);
    if (problem == ERR_OK) {
        problem = store_server_reload(server, roles->given, &info);
    }
    if (problem == ERR_OK) {
        (void)fprintf(stderr, "cairn: reloaded\n");
        return;
    }
    memcpy(roles->tokens, before.tokens, sizeof(before.tokens));
    (void)fprintf(stderr, "cairn: not reloaded: %s\n", err_text(&info));
}

// Block the signals that the server waits for. Threads that start later inherit that.
static MUST_USE enum err block_signals(sigset_t *out, struct err_info *info)
{
    (void)sigemptyset(out); // these cannot fail
    (void)sigaddset(out, SIGINT);
    (void)sigaddset(out, SIGTERM);
    (void)sigaddset(out, SIGHUP);
    const int status = pthread_sigmask(SIG_BLOCK, out, NULL);
    return status == 0 ? ERR_OK : err_set_errno(info, status, "cannot block signals");
}

// Return whether the end of the terminal is to end the server; nohup ignores its signal.
static bool heeds_its_terminal(void)
{
    struct sigaction action;
    return sigaction(SIGHUP, NULL, &action) != 0 || action.sa_handler != SIG_IGN;
}

// Serve until a signal ends it. At a SIGHUP that somebody sent, files are read again, and older
// connections end a while after that; the kernel sends it at the end of the terminal.
static void
serve_until_signal(struct store_server *server, struct role_tokens *roles, const sigset_t *signals)
{
    const bool heeds_terminal = heeds_its_terminal();
    const struct timespec patience = {.tv_sec = OLDER_MAX_S};
    bool has_older = false;
    for (;;) {
        siginfo_t signal;
        const int number =
            has_older ? sigtimedwait(signals, &signal, &patience) : sigwaitinfo(signals, &signal);
        if (number == SIGHUP && signal.si_code != SI_KERNEL) {
            reload(server, roles);
            has_older = true;
        } else if (number > 0 && (number != SIGHUP || heeds_terminal)) {
            return;
        } else if (number < 0 && errno == EAGAIN) {
            store_server_end_older(server);
            has_older = false;
        }
    }
}

enum err serve_store(const struct serve_settings *settings, struct err_info *info)
{
    struct role_tokens roles = {.files = {
                                    [STORE_ROLE_READ] = settings->read_token_file,
                                    [STORE_ROLE_ADD] = settings->add_token_file,
                                    [STORE_ROLE_ADMIN] = settings->admin_token_file,
                                }};
    struct store_server *server = NULL;
    sigset_t signals;
    TRY(role_tokens_begin(&roles, info));
    struct store_server_options options = {
        .address = settings->address != NULL ? settings->address : ADDRESS_DEFAULT,
        .tls_file = settings->tls_file,
        .place = settings->place,
        .policy = settings->policy,
        .make_rows = make_rows,
        .context = (void *)(uintptr_t)settings->names, // make_rows only reads it
    };
    memcpy(options.roles, roles.given, sizeof(options.roles));
    TRY(block_signals(&signals, info));
    TRY(store_server_start(&options, &server, info));
    (void)fprintf(stderr, "cairn: serving the store at %s%s%s\n", store_server_name(server),
                  roles.has_drawn ? ", token of the administrator " : "",
                  roles.has_drawn ? roles.tokens[STORE_ROLE_ADMIN].text : "");
    serve_until_signal(server, &roles, &signals);
    store_server_stop(server);
    return ERR_OK;
}
