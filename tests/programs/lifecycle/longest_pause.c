// SPDX-License-Identifier: MIT
//
// longest_pause: allocates and frees without end, with a short sleep after every 200 blocks. At the
// end of its standard input it writes in microseconds how long such a group took at most, how long
// at most without the time in which it or the recorder waited for a processor, and the sum of its
// own waits. A line of the input names the recorder's process. It has no TRUTH, because it runs as
// long as the test wants.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    BLOCKS = 4096,
    GROUP = 200,
    SLEEP_NS = 1000000,
    THREADS_MAX = 64,
    SHORT_US = 2000, // of such a group nothing is subtracted that others have waited
};

static void *blocks[BLOCKS];

static uint64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

// By the kernel's account of a thread: "ran waited turns", in nanoseconds. 0: there is none.
static uint64_t waited_us(int account)
{
    char text[128];
    unsigned long long waited_ns = 0;
    const ssize_t len = pread(account, text, sizeof(text) - 1, 0);
    text[len > 0 ? len : 0] = '\0';
    return sscanf(text, "%*u %llu", &waited_ns) == 1 ? waited_ns / 1000 : 0;
}

// How long threads have waited so far.
struct waits {
    int count;
    struct {
        long tid;
        uint64_t waited_us;
    } threads[THREADS_MAX];
};

static void read_waits(long pid, struct waits *out)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%ld/task", pid);
    DIR *threads = pid > 0 ? opendir(path) : NULL;
    out->count = 0;
    for (const struct dirent *one;
         threads != NULL && out->count < THREADS_MAX && (one = readdir(threads)) != NULL;) {
        const long tid = strtol(one->d_name, NULL, 10);
        (void)snprintf(path, sizeof(path), "/proc/%ld/task/%ld/schedstat", pid, tid);
        const int account = tid > 0 ? open(path, O_RDONLY) : -1;
        if (account >= 0) {
            out->threads[out->count].tid = tid;
            out->threads[out->count++].waited_us = waited_us(account);
            (void)close(account);
        }
    }
    if (threads != NULL) {
        (void)closedir(threads);
    }
}

// Return how long the threads that are in `after` have waited since `before`, together.
static uint64_t waited_between(const struct waits *before, const struct waits *after)
{
    uint64_t sum_us = 0;
    for (int i = 0; i < after->count; i++) {
        uint64_t first_us = 0;
        for (int k = 0; k < before->count; k++) {
            first_us = before->threads[k].tid == after->threads[i].tid
                           ? before->threads[k].waited_us
                           : first_us;
        }
        sum_us += after->threads[i].waited_us - first_us;
    }
    return sum_us;
}

// Read which process the recorder is, if that was said. Return whether the input goes on.
static bool hear(long *recorder)
{
    char line[32];
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&input, 1, 0) == 0) {
        return true;
    }
    const ssize_t len = read(STDIN_FILENO, line, sizeof(line) - 1);
    line[len > 0 ? len : 0] = '\0';
    *recorder = strtol(line, NULL, 10);
    return len > 0;
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
    long recorder = 0;
    uint32_t count = 0;
    while (hear(&recorder)) {
        static struct waits before;
        static struct waits after;
        read_waits(recorder, &before);
        const uint64_t before_us = waited_us(account);
        const uint64_t begin_us = now_us();
        for (int i = 0; i < GROUP; i++, count++) {
            void **block = &blocks[count * 7919u % BLOCKS];
            free(*block);
            *block = malloc(16 + count % 500);
        }
        const uint64_t took_us = now_us() - begin_us;
        uint64_t in_queue_us = waited_us(account) - before_us;
        if (took_us > SHORT_US) {
            read_waits(recorder, &after);
            in_queue_us += waited_between(&before, &after);
        }
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
