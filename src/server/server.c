// SPDX-License-Identifier: MIT
// server: opens, watches and closes. See server.h.
//
// The file may be appended to or replaced. A watch on its folder detects both. The server also
// checks the file periodically, since some file systems do not notify. A file that changes all the
// time is read at most once a second, and for at most a fifth of the time. The pause is at most ten
// seconds: a long read may only mean that the machine was suspended.
#include "server/server.h"

#include <ctype.h>
#include <errno.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "host/os/file.h"
#include "host/text/json_writer.h"
#include "server/http.h"
#include "server/http/http_library.h"
#include "server/http/listener.h"
#include "store/store.h"

enum {
    ANSWERS_MIN = 2,
    CHECK_EVERY_MS = 2000,
    RELOAD_PAUSE_MIN_MS = 1000,
    RELOAD_PAUSE_MAX_MS = 10000,
    RELOAD_SHARE = 5,
};

struct server {
    struct MHD_Daemon *daemon; // owned
    struct http http;
    bool has_hub;
    bool has_semaphore;
    uint16_t port;
    int watch_fd; // owned; -1 if the folder cannot be watched
    struct server_options options;
    struct store_service store; // in use without options.path
    struct opened_server {
        char *path;              // owned
        struct server *server;   // owned
    } opened[SERVER_OPENED_MAX]; // recordings of the store, latest first
};

uint16_t server_port(const struct server *server)
{
    return server->port;
}

const char *server_token(const struct server *server)
{
    return server->http.credentials.token.text;
}

const char *server_launch_token(const struct server *server)
{
    return server->http.credentials.launch.text;
}

// Check that a link begins with a scheme, and not with one that runs code in the page.
static MUST_USE enum err check_editor(const char *pattern, struct err_info *info)
{
    static const char *const refused[] = {"javascript", "data", "vbscript", "blob", "about"};
    if (pattern == NULL) {
        return ERR_OK;
    }
    size_t len = strcspn(pattern, ":");
    bool is_link = pattern[len] == ':' && isalpha((unsigned char)pattern[0]) != 0;
    for (size_t i = 0; i < len; i++) {
        is_link = is_link &&
                  (isalnum((unsigned char)pattern[i]) != 0 || strchr("+.-", pattern[i]) != NULL);
    }
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        is_link =
            is_link && !(strlen(refused[i]) == len && strncasecmp(refused[i], pattern, len) == 0);
    }
    if (!is_link) {
        return err_set(info, ERR_INVALID,
                       "the editor's pattern must be a link such as vscode://file/%%f:%%l, "
                       "not '%.100s'",
                       pattern);
    }
    return ERR_OK;
}

static void opened_server_close(struct opened_server *opened)
{
    server_closep(&opened->server);
    free(opened->path);
    *opened = (struct opened_server){0};
}

static MUST_USE enum err append_address(const struct server *server, struct strbuf *out)
{
    strbuf_printf(out, "http://127.0.0.1:%u/?token=%s", (unsigned)server->port,
                  server_token(server));
    return strbuf_result(out);
}

// Serve a recording of the store, unless it is served already. The caller holds store.asking.
static enum err
open_of_store(void *context, const char *path, struct strbuf *out_address, struct err_info *info)
{
    struct server *server = context;
    for (size_t i = 0; i < SERVER_OPENED_MAX; i++) {
        if (server->opened[i].path != NULL && strcmp(server->opened[i].path, path) == 0) {
            return append_address(server->opened[i].server, out_address);
        }
    }
    struct opened_server opened = {.path = strdup(path)};
    if (opened.path == NULL) {
        return ERR_NO_MEMORY;
    }
    struct server_options options = server->options;
    options.path = opened.path;
    options.port = 0;
    options.progress = NULL; // it is of the terminal that waited for the store
    enum err problem = server_open(&options, &opened.server, info);
    if (problem != ERR_OK) {
        opened_server_close(&opened);
        return problem;
    }
    opened_server_close(&server->opened[SERVER_OPENED_MAX - 1]);
    memmove(server->opened + 1, server->opened, sizeof(opened) * (SERVER_OPENED_MAX - 1));
    server->opened[0] = opened;
    return append_address(opened.server, out_address);
}

// Check that the store can be asked.
static MUST_USE enum err prepare_store(struct server *server, struct err_info *info)
{
    CLEANUP(store_closep) struct store *store = NULL;
    server->store = (struct store_service){.place = server->options.store_place,
                                           .asking = PTHREAD_MUTEX_INITIALIZER,
                                           .open = open_of_store,
                                           .context = server};
    server->http.store = &server->store;
    return store_open(server->options.store_place, false, &store, info);
}

static MUST_USE enum err
prepare_server(struct server *server, const struct server_options *options, struct err_info *info)
{
    struct http *http = &server->http;
    http->answers.settings = (struct server_settings){.tool_version = options->tool_version,
                                                      .editor = options->editor,
                                                      .hides_sources = options->hides_sources};
    http->answers.trees = (struct tree_cache)TREE_CACHE_INIT;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned answers = processors > ANSWERS_MIN ? (unsigned)processors : ANSWERS_MIN;
    TRY(access_new_token(&http->credentials.token, info));
    TRY(access_new_token(&http->credentials.launch, info));
    TRY(event_hub_init(&http->events));
    server->has_hub = true;
    if (sem_init(&http->answers.turns, 0, answers) != 0) {
        return err_set_errno(info, errno, "cannot make a semaphore");
    }
    server->has_semaphore = true;
    if (options->path == NULL) {
        return prepare_store(server, info);
    }
    const struct opening opening = {
        .sources = options->sources, .rules = options->rules, .progress = options->progress};
    return served_init(&http->answers.served, options->path, options->baseline_path, &opening,
                       info);
}

static MUST_USE enum err listen_on(struct server *server, uint16_t port, struct err_info *info)
{
    char address[sizeof("127.0.0.1:65535")];
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)port); // fits
    CLEANUP(listener_release) struct listener listener = {.fd = -1};
    TRY(listener_open(address, &listener, info));
    server->port = listener.port;
    server->daemon = http_daemon_start(&server->http, listener.fd, NULL, info);
    if (server->daemon == NULL) {
        return info->code;
    }
    listener.fd = -1; // owned by the daemon from here on
    return ERR_OK;
}

// Watch the folder of the file. Failure is not an error: the file is checked periodically.
static int watch_folder(const char *path)
{
    CLEANUP(fd_closep) int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    CLEANUP(text_freep) char *copy = strdup(path);
    if (fd < 0 || copy == NULL ||
        inotify_add_watch(fd, dirname(copy), IN_MOVED_TO | IN_CLOSE_WRITE | IN_MODIFY) < 0) {
        return -1;
    }
    int watched = fd;
    fd = -1;
    return watched;
}

enum err
server_open(const struct server_options *options, struct server **out, struct err_info *info)
{
    CLEANUP(server_closep) struct server *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        return ERR_NO_MEMORY;
    }
    server->watch_fd = -1;
    server->options = *options;
    TRY(check_editor(options->editor, info));
    TRY(prepare_server(server, options, info));
    TRY(http_library_load(info));
    TRY(listen_on(server, options->port, info));
    server->watch_fd = options->path != NULL ? watch_folder(options->path) : -1;
    *out = TAKE(server);
    return ERR_OK;
}

static void send_state(struct http *http)
{
    CLEANUP(snapshot_unrefp) struct snapshot *snapshot = served_get(&http->answers.served);
    CLEANUP(strbuf_release) struct strbuf state = {0};
    if (snapshot_write_state(snapshot, &state) == ERR_OK) {
        event_hub_send(&http->events, "recording", snapshot->generation, strbuf_text(&state));
    }
}

static void send_problem(struct http *http, const struct err_info *info)
{
    CLEANUP(snapshot_unrefp) struct snapshot *snapshot = served_get(&http->answers.served);
    CLEANUP(strbuf_release) struct strbuf text = {0};
    struct json_writer w;
    json_to_strbuf(&w, &text, JSON_COMPACT);
    json_key_string(&w, "message", err_text(info));
    if (json_finish(&w) == ERR_OK) {
        event_hub_send(&http->events, "problem", snapshot->generation, strbuf_text(&text));
    }
}

static void note_changed_file(struct http *http)
{
    struct err_info info = {0};
    bool has_changed = false;
    if (served_reload(&http->answers.served, &has_changed, &info) != ERR_OK) {
        send_problem(http, &info);
    } else if (has_changed) {
        send_state(http);
    }
}

// Discard the notifications: the file itself is checked. A busy folder's remaining notifications
// are read after the next pause.
static void drain_descriptor(int fd)
{
    char buffer[16384];
    if (fd >= 0) {
        (void)!read(fd, buffer, sizeof(buffer)); // having nothing to read is fine
    }
}

static uint64_t pause_after(uint64_t reading_ms)
{
    uint64_t pause_ms = reading_ms * RELOAD_SHARE;
    pause_ms = max_u64(pause_ms, RELOAD_PAUSE_MIN_MS);
    return pause_ms < RELOAD_PAUSE_MAX_MS ? pause_ms : RELOAD_PAUSE_MAX_MS;
}

void server_run(struct server *server, int stop_fd)
{
    struct pollfd fds[] = {{.fd = stop_fd, .events = POLLIN},
                           {.fd = server->watch_fd, .events = POLLIN}};
    uint64_t not_before = 0;
    for (;;) {
        uint64_t now = clock_monotonic_ms();
        bool may_check = now >= not_before;
        // The watch is ignored during the pause, since it may be readable all the time.
        fds[1].fd = may_check ? server->watch_fd : -1;
        int wait_ms = may_check ? CHECK_EVERY_MS : (int)(not_before - now);
        int ready = poll(fds, ARRAY_LEN(fds), wait_ms);
        if (ready > 0 && fds[0].revents != 0) {
            return;
        }
        uint64_t begin = clock_monotonic_ms();
        if (begin < not_before) {
            continue;
        }
        drain_descriptor(server->watch_fd);
        if (server->options.path != NULL) {
            note_changed_file(&server->http);
        }
        not_before = clock_monotonic_ms() + pause_after(clock_monotonic_ms() - begin);
    }
}

void server_closep(struct server **closing)
{
    struct server *server = *closing;
    if (server == NULL) {
        return;
    }
    // Relaxed: answers in progress poll it and end.
    atomic_store_explicit(&server->http.answers.is_closing, true, memory_order_relaxed);
    if (server->has_hub) {
        event_hub_end(&server->http.events);
    }
    if (server->daemon != NULL) {
        MHD_stop_daemon(server->daemon); // waits until all connections ended
    }
    for (size_t i = 0; i < SERVER_OPENED_MAX; i++) {
        opened_server_close(&server->opened[i]);
    }
    if (server->has_hub) {
        event_hub_release(&server->http.events);
    }
    if (server->has_semaphore) {
        (void)sem_destroy(&server->http.answers.turns); // cannot fail: no thread waits
    }
    tree_cache_release(&server->http.answers.trees);
    served_release(&server->http.answers.served);
    fd_closep(&server->watch_fd);
    free(server);
}
