// SPDX-License-Identifier: MIT
// leaky: a server with one fault, which the viewer's first page must name. Allocations by function,
// all through the wrapper my_alloc:
//   remember_client  120 blocks of 8192 bytes, one for each request, never freed
//   fill_cache       8 blocks of 1 MiB at once after half of the requests, freed before the end
//   parse_request    12000 temporary blocks of 100 bytes: 100 for each request
// Each request takes 10 ms, so that the run lasts longer than the second that findings about growth
// need.
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    REQUESTS = 120,
    BLOCKS = 8
};

static void *volatile sink;

__attribute__((noinline)) static void *my_alloc(size_t bytes)
{
    void *block = malloc(bytes);
    if (block == NULL) {
        abort();
    }
    memset(block, 1, bytes);
    return block;
}

__attribute__((noinline)) static void remember_client(void)
{
    sink = my_alloc(8192);
}

__attribute__((noinline)) static void fill_cache(void **cache)
{
    for (int i = 0; i < BLOCKS; i++) {
        cache[i] = my_alloc(1 << 20);
    }
}

__attribute__((noinline)) static void parse_request(void)
{
    for (int i = 0; i < 100; i++) {
        void *word = my_alloc(100);
        sink = word;
        free(word);
    }
}

int main(void)
{
    void *cache[BLOCKS] = {0};
    const struct timespec pause = {.tv_nsec = 10000000};
    for (int i = 0; i < REQUESTS; i++) {
        parse_request();
        remember_client();
        if (i == REQUESTS / 2) {
            fill_cache(cache);
        }
        for (int k = 0; k < BLOCKS && i == REQUESTS - 20; k++) {
            free(cache[k]);
        }
        nanosleep(&pause, NULL);
    }
    return 0;
}
