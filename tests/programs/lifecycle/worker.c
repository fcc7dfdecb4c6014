// SPDX-License-Identifier: MIT
// worker BEFORE AFTER: makes BEFORE pairs of blocks over 4096 distinct stacks, says "started
// <pid>", waits for a line on its stdin, makes AFTER more, says "finished" and exits with 0. For
// tests that kill the recorder in the middle or take its disk away.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    LEVELS = 12
};

static void even(unsigned path, int level);
static void odd(unsigned path, int level);

static void descend(unsigned path, int level)
{
    if (level == LEVELS) {
        free(malloc(24));
        return;
    }
    (path & 1 ? odd : even)(path >> 1, level + 1);
}

static __attribute__((noinline)) void even(unsigned path, int level)
{
    descend(path, level);
}

static __attribute__((noinline)) void odd(unsigned path, int level)
{
    descend(path, level);
}

static void work(long pairs)
{
    for (long i = 0; i < pairs; i++) {
        descend((unsigned)i % (1u << LEVELS), 0);
    }
}

int main(int count, char **arguments)
{
    if (count != 3) {
        return 2;
    }
    char line[64];
    work(strtol(arguments[1], NULL, 10));
    const int length = snprintf(line, sizeof(line), "started %d\n", (int)getpid());
    (void)!write(STDOUT_FILENO, line, (size_t)length);
    if (read(STDIN_FILENO, line, 1) != 1) {
        return 3;
    }
    work(strtol(arguments[2], NULL, 10));
    (void)!write(STDOUT_FILENO, "finished\n", 9);
    return 0;
}
