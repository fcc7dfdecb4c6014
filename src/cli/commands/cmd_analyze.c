// SPDX-License-Identifier: MIT
// cmd_analyze: `cairn analyze FILE`, `cairn --analyze FILE`, `cairn FILE`: opens a recording.
//
// Serves the viewer to a browser on this machine until a signal stops it. stdout gets only the
// address, which holds the access token; messages go to stderr. A build without a viewer prints the
// text report instead, unless only the API is wanted.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/commands/commands.h"
#include "cli/options/filter_options.h"
#include "cli/options/name_options.h"
#include "cli/text/screen_text.h"
#include "host/os/file.h"
#include "server/server.h"

struct analyze_fields {
    const char *baseline;
    const char *store; // NULL: not given; "": the user's own
    const char *editor;
    uint32_t port;
    bool no_browser;
    bool no_source;
    struct suppression_choice rules;
    struct name_words names;
};

#define FIELD(field) offsetof(struct analyze_fields, field)

// clang-format off
static const struct option_spec specs[] = {
    OPTION(0, "diff", NAME, "OLD", FIELD(baseline), "compare with the recording OLD"),
    OPTION(0, "store", TEXT, "URL", FIELD(store),
           "show a store of recordings (cairn store) in place of FILE; without URL $CAIRN_STORE, "
           "or your own", .when_alone = ""),
    OPTION(0, "port", COUNT, "N", FIELD(port),
           "port of 127.0.0.1 to listen on (default: any free port)", .minimum = 1),
    OPTION(0, "no-browser", FLAG, NULL, FIELD(no_browser),
           "print the address, do not open a browser"),
    OPTION(0, "editor", TEXT, "LINK", FIELD(editor),
           "URL that opens a source file; %f is the file, %l the line, %c the column: "
           "vscode://file/%f:%l:%c"),
    OPTION(0, "no-source", FLAG, NULL, FIELD(no_source), "do not show source files"),
    SUPPRESSION_OPTION_SPECS(analyze_fields, rules),
};
// clang-format on

static const char opener[] = "xdg-open";

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0';
}

// Return whether a browser can be opened: there is a display, and xdg-open exists.
static bool browser_is_there(void)
{
    return (is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) && file_is_in_path(opener);
}

static void destroy_attributes(posix_spawnattr_t *attributes)
{
    (void)posix_spawnattr_destroy(attributes); // cannot fail
}

static void destroy_actions(posix_spawn_file_actions_t *actions)
{
    (void)posix_spawn_file_actions_destroy(actions); // cannot fail
}

static bool spawn_browser(char *const *arguments)
{
    CLEANUP(destroy_attributes) posix_spawnattr_t attributes;
    CLEANUP(destroy_actions) posix_spawn_file_actions_t actions;
    sigset_t no_signals;
    pid_t pid;
    (void)sigemptyset(&no_signals); // cannot fail
    if (posix_spawnattr_init(&attributes) != 0 || posix_spawn_file_actions_init(&actions) != 0) {
        return false;
    }
    return posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK) ==
               0 &&
           posix_spawnattr_setpgroup(&attributes, 0) == 0 &&
           posix_spawnattr_setsigmask(&attributes, &no_signals) == 0 &&
           posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) ==
               0 &&
           posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) ==
               0 &&
           posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO) == 0 &&
           posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments, environ) == 0;
}

// Start the browser at `url` without waiting for it. Return false on failure.
static bool browser_open(const char *url)
{
    CLEANUP(strbuf_release) struct strbuf name = {0};
    CLEANUP(strbuf_release) struct strbuf address = {0};
    strbuf_append_text(&name, opener);
    strbuf_append_text(&address, url);
    if (name.failed || address.failed) {
        return false;
    }
    // The kernel reaps the child; this process does not wait for it.
    struct sigaction forget = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT};
    char *arguments[] = {name.data, address.data, NULL};
    return sigaction(SIGCHLD, &forget, NULL) == 0 && spawn_browser(arguments);
}

// Return a descriptor that becomes readable when a signal asks the server to stop, or -1. Threads
// that start later inherit the blocked signals.
static int catch_stop_signals(void)
{
    sigset_t signals;
    (void)sigemptyset(&signals); // these cannot fail
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGHUP);
    if (pthread_sigmask(SIG_BLOCK, &signals, NULL) != 0) {
        return -1;
    }
    return signalfd(-1, &signals, SFD_CLOEXEC);
}

static void say_how_to_get_there(const struct server *server, bool is_opened)
{
    char host[256] = "HOST";
    (void)gethostname(host, sizeof(host) - 1); // on failure the default name stays
    CLEANUP(strbuf_release) struct strbuf name = {0};
    screen_append(&name, host);
    (void)fprintf(stderr, "cairn: stop with Ctrl-C\n"); // no other place to report an error
    if (!is_opened) {
        (void)fprintf(stderr,
                      "cairn: from another machine: 'ssh -L %" PRIu16 ":127.0.0.1:%" PRIu16
                      " %s' there, then open the same address there\n",
                      server_port(server), server_port(server), strbuf_text(&name));
    }
}

// The address of the page with its token. The fragment names what the page opens.
struct page_address {
    char text[160];
};

static struct page_address
page_address_of(const struct server *server, const char *token, const struct analyze_fields *fields)
{
    struct page_address address;
    (void)snprintf(address.text, sizeof(address.text), "http://127.0.0.1:%" PRIu16 "/?token=%s%s",
                   server_port(server), token,
                   fields->store != NULL      ? "#/store"
                   : fields->baseline != NULL ? "#/summary?diff=1"
                                              : ""); // fits
    return address;
}

// Print the address. Return false if stdout cannot be written.
static bool announce_page(const struct server *server, const struct analyze_fields *fields)
{
    (void)puts(page_address_of(server, server_token(server), fields).text);
    if (command_finish_output(STATUS_OK) != STATUS_OK) {
        return false;
    }
    bool is_opened = false;
    if (!fields->no_browser && browser_is_there()) {
        is_opened = browser_open(page_address_of(server, server_launch_token(server), fields).text);
    }
    say_how_to_get_there(server, is_opened);
    return true;
}

static int serve_file(const char *path, const struct analyze_fields *fields)
{
    struct err_info info = {0};
    struct progress progress;
    progress_init(&progress, stderr);
    CLEANUP(name_places_release) struct name_places names = {0};
    CLEANUP(server_closep) struct server *server = NULL;
    CLEANUP(fd_closep) int stop_fd = catch_stop_signals();
    if (stop_fd < 0) {
        (void)err_set_errno(&info, errno, "cannot catch signals"); // printed below
        return command_error(&info);
    }
    const struct server_options options = {
        .path = path,
        .baseline_path = fields->baseline,
        .store_place = fields->store != NULL && fields->store[0] != '\0' ? fields->store : NULL,
        .tool_version = CAIRN_VERSION,
        .editor = fields->editor,
        .port = (uint16_t)fields->port,
        .hides_sources = fields->no_source,
        .rules = fields->rules,
        .sources = &names.sources,
        .progress = &progress};
    enum err problem = name_places_init(&names, &fields->names, &info);
    problem = problem == ERR_OK ? server_open(&options, &server, &info) : problem;
    progress_clear(&progress);
    if (problem != ERR_OK) {
        return command_error(&info);
    }
    if (!announce_page(server, fields)) {
        return STATUS_USAGE;
    }
    server_run(server, stop_fd);
    return STATUS_OK;
}

static int run(void *context, int count, char **operands)
{
    const struct analyze_fields *fields = context;
    if (fields->store != NULL && (count != 0 || fields->baseline != NULL)) {
        return command_refuse(&command_analyze, "--store takes neither a FILE nor --diff%s",
                              fields->store[0] == '\0' ? "; a store is named by --store=URL" : "");
    }
    if (fields->store == NULL && count != 1) {
        return command_refuse(&command_analyze,
                              count == 0 ? "no FILE given"
                                         : "only one FILE can be given; --diff OLD compares two");
    }
    if (fields->store == NULL && strcmp(operands[0], "-") == 0) {
        return command_refuse(&command_analyze,
                              "analyze cannot read standard input; write it to a file first");
    }
    if (fields->port > UINT16_MAX) {
        return command_refuse(&command_analyze, "--port: %u is not a port; write 1 to 65535",
                              fields->port);
    }
    return serve_file(fields->store == NULL ? operands[0] : NULL, fields);
}

const struct command command_analyze = {
    .name = "analyze",
    .summary = "open a recording in the browser",
    .synopsis = "[options] FILE | --store",
    .description =
        "Serve the recording FILE as a web page on 127.0.0.1 until Ctrl-C, and open it in\n"
        "the browser. The printed address contains an access token; the page cannot be\n"
        "read without it. If FILE is still being recorded, the page follows it. Use\n"
        "ssh -L to reach the page from another machine.\n\n"
        "With --store, the page lists the recordings of a store, answers its queries, and\n"
        "opens the recordings whose files are on this machine.\n",
    .examples = "cairn analyze run.cairn\n"
                "cairn analyze --diff old.cairn new.cairn\n"
                "cairn analyze --no-browser --port 8080 run.cairn\n",
    .options = {.specs = specs,
                .count = ARRAY_LEN(specs),
                .shared = {NAME_OPTIONS(analyze_fields, names)},
                .follows_operands = true},
    .fields_bytes = sizeof(struct analyze_fields),
    .run = run,
};
