// SPDX-License-Identifier: MIT
// TRUTH: allocations=100 frees=50 allocated_bytes=3200 temporary=0 peak_bytes=3200
// TRUTH: live_bytes=1600 live_blocks=50
//
// ending WAY [ignored...]: allocates and frees, writes a line to each of its streams, and ends in
// the given way. No way may lose an event.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void by_return(void)
{
}

static void by_exit(void)
{
    exit(3);
}

static void by_raw_exit(void)
{
    _exit(4);
}

static void by_quick_exit(void)
{
    quick_exit(5);
}

static void by_segv(void)
{
    *(volatile int *)8 = 1;
}

static void by_kill(void)
{
    kill(getpid(), SIGKILL);
}

static void by_interrupt(void)
{
    // Announce that the handler is ready, then wait.
    (void)!write(STDOUT_FILENO, "ready\n", 6);
    for (;;) {
        pause();
    }
}

static void on_interrupt(int number)
{
    (void)number;
}

static void by_caught_interrupt(void)
{
    // Blocked until sigsuspend, so that it cannot arrive too early.
    const struct sigaction action = {.sa_handler = on_interrupt};
    sigset_t blocked;
    sigset_t before;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    sigprocmask(SIG_BLOCK, &blocked, &before);
    sigaction(SIGINT, &action, NULL);
    (void)!write(STDOUT_FILENO, "ready\n", 6);
    sigsuspend(&before);
    exit(6);
}

static const struct {
    const char *name;
    void (*end)(void);
} g_ways[] = {
    {"return", by_return},
    {"exit", by_exit},
    {"_exit", by_raw_exit},
    {"quick_exit", by_quick_exit},
    {"abort", abort},
    {"segv", by_segv},
    {"kill", by_kill},
    {"interrupt", by_interrupt},
    {"caught", by_caught_interrupt},
};

int main(int count, char **arguments)
{
    void *blocks[100];
    for (int i = 0; i < 100; i++) {
        blocks[i] = malloc(32);
    }
    for (int i = 0; i < 100; i += 2) {
        free(blocks[i]);
    }
    (void)!write(STDOUT_FILENO, "to stdout\n", 10);
    (void)!write(STDERR_FILENO, "to stderr\n", 10);
    const char *way = count > 1 ? arguments[1] : "return";
    for (size_t i = 0; i < sizeof(g_ways) / sizeof(g_ways[0]); i++) {
        if (strcmp(way, g_ways[i].name) == 0) {
            g_ways[i].end();
        }
    }
    return 0;
}
