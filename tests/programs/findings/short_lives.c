// SPDX-License-Identifier: MIT
// short_lives young|old: 120,000 blocks of 100 bytes, freed in the order of their allocation.
//
//   young   each is freed after the next allocation: within a millisecond, and not by the next call
//   old     all are freed after 300 ms
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    BLOCKS = 120000,
    BLOCK_BYTES = 100,
};

static void *g_blocks[BLOCKS];

// The test searches its name.
static void *parse(void)
{
    return malloc(BLOCK_BYTES);
}

int main(int argc, char **argv)
{
    const size_t held = argc == 2 && strcmp(argv[1], "young") == 0 ? 1 : BLOCKS;
    for (size_t i = 0; i < BLOCKS; i++) {
        g_blocks[i] = parse();
        if (i >= held) {
            free(g_blocks[i - held]);
        }
    }
    const struct timespec pause = {.tv_nsec = 300000000};
    (void)nanosleep(&pause, NULL);
    for (size_t i = BLOCKS - held; i < BLOCKS; i++) {
        free(g_blocks[i]);
    }
    return 0;
}
