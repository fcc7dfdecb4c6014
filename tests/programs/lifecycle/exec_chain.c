// SPDX-License-Identifier: MIT
// TRUTH: allocations=30 frees=15 allocated_bytes=1200 temporary=15
// TRUTH: live_bytes=600 live_blocks=15
// TRUTH(exec): peak_bytes=240
// TRUTH(vfork): peak_bytes=640 processes=3
// TRUTH(spawn): peak_bytes=640 processes=3
//
// exec_chain HOW LEVEL: three images, each with its own heap, five leaked blocks of 40 bytes and
// five temporary ones. `exec` replaces the image twice; `vfork` and `spawn` start a child that way
// and wait for it, so that all three heaps live at once.
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int wait_for(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}

static int run_next(char **arguments)
{
    pid_t child = -1;
    if (strcmp(arguments[1], "exec") == 0) {
        execv(arguments[0], arguments);
        return 98;
    }
    if (strcmp(arguments[1], "vfork") == 0) {
        child = vfork();
        if (child == 0) {
            execv(arguments[0], arguments);
            _exit(97);
        }
        return wait_for(child);
    }
    if (posix_spawn(&child, arguments[0], NULL, NULL, arguments, environ) != 0) {
        return 96;
    }
    return wait_for(child);
}

int main(int count, char **arguments)
{
    if (count != 3) {
        return 95;
    }
    for (int i = 0; i < 5; i++) {
        if (malloc(40) == NULL) {
            return 94;
        }
        free(malloc(40));
    }
    const char level = arguments[2][0];
    if (level == '3') {
        return 7;
    }
    char next[2] = {(char)(level + 1), 0};
    char *again[4] = {"/proc/self/exe", arguments[1], next, NULL};
    return run_next(again);
}
