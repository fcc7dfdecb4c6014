// SPDX-License-Identifier: MIT
// crowded: a program with more than a page has room for: 400 marks, and with an argument 300
// processes. keep() holds 50 blocks of 3000 bytes to the end.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cairn.h"

enum {
    MARKS = 400,
    PROCESSES = 300,
    BLOCKS = 50,
    BLOCK_BYTES = 3000
};

static void *volatile sink;

__attribute__((noinline)) static void keep(void)
{
    sink = malloc(BLOCK_BYTES);
}

__attribute__((noinline)) static void serve(int request)
{
    char text[64];
    (void)snprintf(text, sizeof(text), "request %d", request);
    cairn_mark(text);
    sink = malloc(100 + (size_t)request);
    free(sink);
}

int main(int argc, char **argv)
{
    (void)argv;
    for (int i = 0; i < BLOCKS; i++) {
        keep();
    }
    for (int i = 0; i < MARKS; i++) {
        serve(i);
    }
    for (int i = 0; argc > 1 && i < PROCESSES; i++) {
        if (fork() == 0) {
            sink = malloc(64);
            _exit(0);
        }
        (void)wait(NULL);
    }
    return 0;
}
