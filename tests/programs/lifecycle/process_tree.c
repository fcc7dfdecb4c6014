// SPDX-License-Identifier: MIT
// process_tree ROUNDS WORD...: processes that hold blocks one after the other, or at one time. Each
// round does each WORD, in turn:
//
//   exit kill exec vfork spawn   a child holds BURST bytes, ends in that way while it does, and is
//                                waited for; then the parent holds BURST bytes and frees them
//   beside                       parent and child hold BURST bytes at one time
//
//     child   +BURST ... ends
//     parent                  +BURST -BURST
//
// So the peak is BASE + BURST, or BASE + 2 * BURST for `beside`. The parent holds BASE throughout.
// exec: the child holds BURST in its first image, then becomes this program again with the word
// `hold`. Blocks are not touched; pipes and waitpid(2) order all steps.
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BASE_BLOCKS = 100,
    BURST_BLOCKS = 400,
    BLOCK_BYTES = 10000,
};

extern char **environ;
static void *g_base[BASE_BLOCKS];
static void *g_burst[BURST_BLOCKS];

static void hold(void)
{
    for (int i = 0; i < BURST_BLOCKS; i++) {
        g_burst[i] = malloc(BLOCK_BYTES);
    }
}

static void let_go(void)
{
    for (int i = 0; i < BURST_BLOCKS; i++) {
        free(g_burst[i]);
    }
}

static char *g_self[] = {"/proc/self/exe", "0", "hold", NULL};

static void await(pid_t child)
{
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        _exit(3);
    }
}

static void after(const char *word)
{
    pid_t child;
    if (strcmp(word, "spawn") == 0) {
        if (posix_spawn(&child, g_self[0], NULL, NULL, g_self, environ) != 0) {
            _exit(4);
        }
    } else if (strcmp(word, "vfork") == 0) {
        child = vfork();
        if (child == 0) {
            (void)execv(g_self[0], g_self);
            _exit(5);
        }
    } else {
        child = fork();
        if (child == 0) {
            hold();
            if (strcmp(word, "kill") == 0) {
                (void)raise(SIGKILL);
            }
            if (strcmp(word, "exec") == 0) {
                (void)execv(g_self[0], g_self);
            }
            _exit(0);
        }
    }
    await(child);
    hold();
    let_go();
}

static void beside(void)
{
    int holds[2];
    int go[2];
    char byte = 0;
    if (pipe(holds) != 0 || pipe(go) != 0) {
        _exit(6);
    }
    const pid_t child = fork();
    if (child == 0) {
        hold();
        (void)!write(holds[1], &byte, 1);
        (void)close(go[1]);
        (void)!read(go[0], &byte, 1);
        _exit(0);
    }
    (void)!read(holds[0], &byte, 1);
    hold();
    (void)!write(go[1], &byte, 1);
    await(child);
    let_go();
    for (int i = 0; i < 2; i++) {
        (void)close(holds[i]);
        (void)close(go[i]);
    }
}

int main(int count, char **arguments)
{
    if (count == 3 && strcmp(arguments[2], "hold") == 0) {
        hold();
        _exit(0);
    }
    for (int i = 0; i < BASE_BLOCKS; i++) {
        g_base[i] = malloc(BLOCK_BYTES);
    }
    const long rounds = count > 2 ? strtol(arguments[1], NULL, 10) : 0;
    for (long round = 0; round < rounds; round++) {
        for (int i = 2; i < count; i++) {
            if (strcmp(arguments[i], "beside") == 0) {
                beside();
            } else {
                after(arguments[i]);
            }
        }
    }
    return 0;
}
