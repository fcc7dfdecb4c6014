// SPDX-License-Identifier: MIT
//
// longest_pause: allocates and frees without end, with a short sleep after every 200 blocks. At the
// end of its standard input it writes in microseconds how long such a group took at most, how long
// at most without the time in which it waited for a processor, and the sum of these waits. It has
// no TRUTH, because it runs as long as the test wants.
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    BLOCKS = 4096,
    GROUP = 200,
    SLEEP_NS = 1000000,
};

static void *blocks[BLOCKS];

static uint64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

// By the kernel's account of this thread: "ran waited turns", in nanoseconds. 0: there is none.
static uint64_t waited_us(int account)
{
    char text[128];
    unsigned long long waited_ns = 0;
    const ssize_t len = pread(account, text, sizeof(text) - 1, 0);
    text[len > 0 ? len : 0] = '\0';
    return sscanf(text, "%*u %llu", &waited_ns) == 1 ? waited_ns / 1000 : 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

int main(void)
{
    uint64_t longest_us = 0;
    uint64_t longest_held_us = 0;
    const int account = open("/proc/thread-self/schedstat", O_RDONLY);
    const uint64_t first_us = waited_us(account);
    uint32_t count = 0;
    for (struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN}; poll(&input, 1, 0) == 0;) {
        const uint64_t before_us = waited_us(account);
        const uint64_t begin_us = now_us();
        for (int i = 0; i < GROUP; i++, count++) {
            void **block = &blocks[count * 7919u % BLOCKS];
            free(*block);
            *block = malloc(16 + count % 500);
        }
        const uint64_t took_us = now_us() - begin_us;
        const uint64_t in_queue_us = waited_us(account) - before_us;
        longest_us = larger(longest_us, took_us);
        longest_held_us =
            larger(longest_held_us, took_us > in_queue_us ? took_us - in_queue_us : 0);
        (void)nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
    }
    (void)printf("%llu %llu %llu\n", (unsigned long long)longest_us,
                 (unsigned long long)longest_held_us,
                 (unsigned long long)(waited_us(account) - first_us));
    return 0;
}
