// SPDX-License-Identifier: MIT
//
// longest_pause: allocates and frees without end, with a short sleep after every 200 blocks. At the
// end of its standard input it writes the longest time in microseconds that such a group took. It
// has no TRUTH, because it runs as long as the test wants.
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    BLOCKS = 4096,
    GROUP = 200,
    SLEEP_NS = 200000,
};

static void *blocks[BLOCKS];

static uint64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int main(void)
{
    uint64_t longest_us = 0;
    uint32_t count = 0;
    for (struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN}; poll(&input, 1, 0) == 0;) {
        const uint64_t begin_us = now_us();
        for (int i = 0; i < GROUP; i++, count++) {
            void **block = &blocks[count * 7919u % BLOCKS];
            free(*block);
            *block = malloc(16 + count % 500);
        }
        const uint64_t took_us = now_us() - begin_us;
        longest_us = took_us > longest_us ? took_us : longest_us;
        (void)nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
    }
    (void)printf("%llu\n", (unsigned long long)longest_us);
    return 0;
}
