// SPDX-License-Identifier: MIT
// browser: see browser.h.
//
// xdg-open gets a process group of its own, so that Ctrl-C does not end a browser that it started.
// Its output goes to /dev/null.
#include "cli/commands/browser.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"

static const char opener[] = "xdg-open";

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0';
}

bool browser_is_there(void)
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

static bool spawn(char *const *arguments)
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

bool browser_open(const char *url)
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
    return sigaction(SIGCHLD, &forget, NULL) == 0 && spawn(arguments);
}
