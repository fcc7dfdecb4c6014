// SPDX-License-Identifier: MIT
#include "cli/report/package_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/containers/vec.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/text/strbuf.h"

enum {
    PATIENCE_MS = 2000,
    PATIENCE_MAX_MS = 20000, // with a tool that works, or lacks a processor
    LOOK_MS = 50,
    OUTPUT_BYTES_MAX = 64 * 1024,
    READ_BYTES = 4096,
};

DEFINE_VEC(argument_vec, char *);

static void argument_vec_free(struct argument_vec *arguments)
{
    for (size_t i = 0; i < arguments->len; i++) {
        free(arguments->items[i]);
    }
    argument_vec_release(arguments);
}

static MUST_USE enum err add_argument(struct argument_vec *arguments, const char *text)
{
    char *copy = text != NULL ? strdup(text) : NULL;
    if (text != NULL && copy == NULL) {
        return ERR_NO_MEMORY;
    }
    const enum err problem = argument_vec_push(arguments, copy);
    if (problem != ERR_OK) {
        free(copy);
    }
    return problem;
}

static void destroy_actions(posix_spawn_file_actions_t *actions)
{
    (void)posix_spawn_file_actions_destroy(actions); // cannot fail
}

// Start the tool with its stdout at `out_fd` and the rest at /dev/null. Return -1 on failure.
static pid_t start_tool(char *const *arguments, int out_fd)
{
    CLEANUP(destroy_actions) posix_spawn_file_actions_t actions;
    pid_t pid = -1;
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return -1;
    }
    const bool is_started =
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0 &&
        posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO) == 0 &&
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
        posix_spawnp(&pid, arguments[0], &actions, NULL, arguments, environ) == 0;
    return is_started ? pid : -1;
}

// Whether a process works, or would if it had a processor or its data from a disk.
static bool is_working(pid_t pid)
{
    const char state = proc_file_state(pid);
    return state == 'R' || state == 'D';
}

// Append the output of the tool at `fd` until its end, the end of the patience, or the limit.
static void read_output(pid_t pid, int fd, struct strbuf *out)
{
    const uint64_t begin_ms = clock_monotonic_ms();
    while (out->len < OUTPUT_BYTES_MAX && strbuf_reserve(out, READ_BYTES)) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        const bool is_quiet = poll(&wait, 1, LOOK_MS) == 0;
        const uint64_t waited_ms = clock_monotonic_ms() - begin_ms;
        if (waited_ms >= PATIENCE_MAX_MS ||
            (is_quiet && waited_ms >= PATIENCE_MS && !is_working(pid))) {
            return;
        }
        if (is_quiet) {
            continue;
        }
        const ssize_t got = read(fd, out->data + out->len, READ_BYTES);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return;
        }
        out->len += got > 0 ? (size_t)got : 0;
        out->data[out->len] = '\0';
    }
}

// Run the tool and append its output. The exit status is ignored: dpkg-query fails if it does not
// know one of several paths.
static void run_tool(char *const *arguments, struct strbuf *out)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return;
    }
    const pid_t pid = start_tool(arguments, ends[1]);
    (void)close(ends[1]);
    if (pid > 0) {
        read_output(pid, ends[0], out);
        (void)kill(pid, SIGKILL); // it has closed its output, or taken too long
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    (void)close(ends[0]);
}

// Return whether the path is a pattern that matches only itself, and is not an option.
static bool is_plain(const char *path)
{
    return path[0] == '/' && strpbrk(path, "*?[]\\\n") == NULL;
}

// Return the path without /usr. Where / and /usr are one, dpkg knows a file by its packaged path.
static const char *without_usr(const char *path)
{
    return strncmp(path, "/usr/", 5) == 0 ? path + 4 : path;
}

static void
take_name(struct package_owner *owner, enum package_system system, const char *name, size_t len)
{
    if (len > 0 && len < sizeof(owner->name) && memchr(name, ' ', len) == NULL) {
        owner->system = system;
        memcpy(owner->name, name, len);
        owner->name[len] = '\0';
    }
}

// Parse a line of dpkg-query: "libc6:amd64, libc6:i386: /lib/x/libc.so.6".
static void
take_line(char *line, const char *const *paths, size_t count, struct package_owner *owners)
{
    char *path = strstr(line, ": /");
    if (path == NULL) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (owners[i].system == PACKAGE_NONE &&
            strcmp(without_usr(paths[i]), without_usr(path + 2)) == 0) {
            take_name(&owners[i], PACKAGE_DPKG, line, strcspn(line, ":,"));
        }
    }
}

static MUST_USE enum err
ask_dpkg(const char *const *paths, size_t count, struct package_owner *owners)
{
    CLEANUP(argument_vec_free) struct argument_vec arguments = {0};
    CLEANUP(strbuf_release) struct strbuf said = {0};
    CLEANUP(strbuf_release) struct strbuf usr = {0};
    TRY(add_argument(&arguments, "dpkg-query"));
    TRY(add_argument(&arguments, "--search"));
    for (size_t i = 0; i < count; i++) {
        if (is_plain(paths[i])) {
            strbuf_clear(&usr);
            strbuf_printf(&usr, "/usr%s", without_usr(paths[i]));
            TRY(strbuf_result(&usr));
            TRY(add_argument(&arguments, without_usr(paths[i])));
            TRY(add_argument(&arguments, strbuf_text(&usr)));
        }
    }
    TRY(add_argument(&arguments, NULL));
    if (arguments.len > 3) {
        run_tool(arguments.items, &said);
    }
    TRY(strbuf_result(&said));
    char *rest = said.data;
    for (char *line = NULL; rest != NULL && (line = strsep(&rest, "\n")) != NULL;) {
        take_line(line, paths, count, owners);
    }
    return ERR_OK;
}

static MUST_USE enum err ask_rpm(const char *path, struct package_owner *owner)
{
    CLEANUP(argument_vec_free) struct argument_vec arguments = {0};
    CLEANUP(strbuf_release) struct strbuf said = {0};
    static const char *const words[] = {"rpm", "-qf", "--queryformat", "%{NAME}\n"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        TRY(add_argument(&arguments, words[i]));
    }
    TRY(add_argument(&arguments, path));
    TRY(add_argument(&arguments, NULL));
    run_tool(arguments.items, &said);
    TRY(strbuf_result(&said));
    take_name(owner, PACKAGE_RPM, strbuf_text(&said), strcspn(strbuf_text(&said), "\n"));
    return ERR_OK;
}

enum err package_owners_find(const char *const *paths, size_t count, struct package_owner *owners)
{
    for (size_t i = 0; i < count; i++) {
        owners[i] = (struct package_owner){0};
    }
    if (file_is_in_path("dpkg-query")) {
        return ask_dpkg(paths, count, owners);
    }
    for (size_t i = 0; i < count && file_is_in_path("rpm"); i++) {
        TRY(is_plain(paths[i]) ? ask_rpm(paths[i], &owners[i]) : ERR_OK);
    }
    return ERR_OK;
}
