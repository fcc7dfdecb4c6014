// SPDX-License-Identifier: MIT
// behaviour WORD: holds memory with a named pattern, for four seconds of wall-clock time.
//
//   leak      a block each millisecond, kept
//   hoard     as leak, but frees all at the end
//   late      a block each millisecond, kept, from the middle of the run on
//   warm_up   a block each millisecond, kept, for the first three tenths: then it idles
//   cache     a block each millisecond; keeps the latest 320
//   teeth     a block each millisecond; frees all each 540 ms
//
// The program catches up with the clock when it is late: on a busy machine the blocks come in
// larger steps, and the pattern stays.
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    RUN_MS = 4000,
    BLOCK_BYTES = 1000,
    CACHE_BLOCKS = 320,
    TOOTH_MS = 540,
};

static void *g_blocks[RUN_MS];

static long now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// The test searches its name.
static void *keep(void)
{
    return malloc(BLOCK_BYTES);
}

static void give_back(long first, long end)
{
    for (long i = first; i < end; i++) {
        free(g_blocks[i]);
        g_blocks[i] = NULL;
    }
}

// Do the step for millisecond `at` of the run.
static void step(const char *word, long at)
{
    if (strcmp(word, "leak") == 0 || strcmp(word, "hoard") == 0 ||
        (strcmp(word, "late") == 0 && at >= RUN_MS / 2) ||
        (strcmp(word, "warm_up") == 0 && at < RUN_MS * 3 / 10)) {
        g_blocks[at] = keep();
    } else if (strcmp(word, "cache") == 0) {
        g_blocks[at] = keep();
        if (at >= CACHE_BLOCKS) {
            give_back(at - CACHE_BLOCKS, at - CACHE_BLOCKS + 1);
        }
    } else if (strcmp(word, "teeth") == 0) {
        if (at % TOOTH_MS == 0) {
            give_back(0, at);
        }
        g_blocks[at] = keep();
    }
}

int main(int count, char **arguments)
{
    const char *word = count > 1 ? arguments[1] : "leak";
    const long began = now_ms();
    for (long done = 0; done < RUN_MS;) {
        const long due = now_ms() - began;
        for (; done < due && done < RUN_MS; done++) {
            step(word, done);
        }
        const struct timespec pause = {.tv_nsec = 2000000};
        (void)nanosleep(&pause, NULL);
    }
    if (strcmp(word, "hoard") == 0) {
        give_back(0, RUN_MS);
    }
    return 0;
}
