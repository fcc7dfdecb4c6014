// SPDX-License-Identifier: MIT
// growth_shapes WORD: holds memory with a named pattern, for six seconds of wall-clock time, beside
// requests that allocate and free at random.
//
//   array       one array, reallocated a little larger each 20 ms
//   buffers     20 buffers, each replaced by a larger one each 50 ms
//   table       a table that is replaced by one twice as large when it is full
//   queue       two blocks are appended each millisecond, and one is removed
//   load        a block each millisecond, kept, and no work at all in the last 40 % of the time
//   day         a block each millisecond, kept, without any work from 35 % to 65 % of the time
//   ring        each block replaces the one of 300 ms before
//   sessions    blocks that live for up to half a second
//   filled      a block each millisecond, kept, for the first four tenths
//   array_full  as array, for the first four tenths
//   bursts      300 blocks for an eighth of each tenth of the time
//   last        500 blocks in the last 3 % of the time
//
// The program catches up with the clock when it is late: on a busy machine the blocks come in
// larger steps, and the pattern stays.
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    RUN_MS = 6000,
    BLOCK_BYTES = 500,
    BUFFERS = 20,
    RING = 300,
    BURST = 300,
    LAST = 500,
};

static void *g_blocks[2 * RUN_MS];
static int g_frees_at[2 * RUN_MS];
static long g_count;
static long g_first;
static unsigned long g_random = 1;

static unsigned below(unsigned limit)
{
    g_random = g_random * 6364136223846793005UL + 1442695040888963407UL;
    return (unsigned)(g_random >> 33) % limit;
}

static long now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// The test searches its name.
static void *keep(void *old, size_t bytes)
{
    return realloc(old, bytes);
}

// The noise: blocks that other parts of the program use for a while.
static void request(void)
{
    static void *pending[64];
    for (unsigned i = 0; i < 1 + below(4); i++) {
        const unsigned slot = below(64);
        free(pending[slot]);
        pending[slot] = malloc(10 + below(2000));
    }
}

static void append(void)
{
    g_blocks[g_count++] = keep(NULL, BLOCK_BYTES);
}

static void drop(void)
{
    free(g_blocks[g_first]);
    g_blocks[g_first++] = NULL;
}

static bool is(const char *word, const char *name)
{
    return strcmp(word, name) == 0;
}

static void hold_alone(const char *word, long at)
{
    if (is(word, "array") || (is(word, "array_full") && at < RUN_MS * 4 / 10)) {
        g_blocks[0] = at % 20 == 0 ? keep(g_blocks[0], 1000 + 50 * (size_t)at) : g_blocks[0];
    } else if (is(word, "table")) {
        const size_t full = g_count == 0 ? 1 : (size_t)g_count;
        if (g_count == 0 || 40 * (size_t)at > full) {
            g_count = (long)(2 * full);
            g_blocks[0] = keep(g_blocks[0], (size_t)g_count);
        }
    } else if (is(word, "buffers") && at % 50 == 0) {
        for (int i = 0; i < BUFFERS; i++) {
            free(g_blocks[i]);
            g_blocks[i] = keep(NULL, 500 + 3 * (size_t)at);
        }
    }
}

static void hold_many(const char *word, long at)
{
    const long phase = at % (RUN_MS / 10);
    if (is(word, "load") || is(word, "day") || (is(word, "filled") && at < RUN_MS * 4 / 10)) {
        append();
    } else if (is(word, "queue")) {
        append();
        append();
        drop();
    } else if (is(word, "ring")) {
        append();
        if (at >= RING) {
            drop();
        }
    } else if (is(word, "sessions")) {
        g_frees_at[g_count] = (int)at + (int)below(500);
        append();
        for (long i = g_count > 600 ? g_count - 600 : 0; i < g_count; i++) {
            if (g_blocks[i] != NULL && g_frees_at[i] <= at) {
                free(g_blocks[i]);
                g_blocks[i] = NULL;
            }
        }
    } else if (is(word, "bursts") && phase * 8 >= RUN_MS / 10 * 7) {
        while (g_count < BURST) {
            append();
        }
    } else if (is(word, "bursts") && phase > 20) {
        while (g_first < g_count) {
            drop();
        }
        g_first = g_count = 0;
    } else if (is(word, "last") && at >= RUN_MS * 97 / 100) {
        for (int i = 0; i < 4 && g_count < LAST; i++) {
            append();
        }
    }
}

static bool is_idle(const char *word, long at)
{
    return (is(word, "load") && at >= RUN_MS * 6 / 10) ||
           (is(word, "day") && at >= RUN_MS * 35 / 100 && at < RUN_MS * 65 / 100);
}

int main(int count, char **arguments)
{
    const char *word = count > 1 ? arguments[1] : "array";
    const long began = now_ms();
    for (long done = 0; done < RUN_MS;) {
        const long due = now_ms() - began;
        for (; done < due && done < RUN_MS; done++) {
            if (!is_idle(word, done)) {
                request();
                hold_alone(word, done);
                hold_many(word, done);
            }
        }
        const struct timespec pause = {.tv_nsec = 2000000};
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}
