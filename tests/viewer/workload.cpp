// SPDX-License-Identifier: MIT
// workload: what the viewer's tests record. Known amounts, by functions of their own:
//   keep_cache    1000 blocks of 4000 bytes, alive until the peak and freed after it
//   leak_receipt  50 blocks of 1000 bytes, never freed, one after the other over the whole run;
//                 each is an event "receipts" of weight 1000, too
//   churn         20000 temporary blocks of 64 bytes
//   helper        on a thread called "helper", 100 blocks of 2000 bytes, freed at once together
//   fibonacci     calls itself; 1 block of 333 bytes in each of 8 levels, freed with the cache
// With the argument "wait" it does none of this: each byte that it reads leaks 5 receipts, until
// its input ends. The run takes about a second, so that there are several time slices.
#include <cairn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#define KEEP __attribute__((noinline, noclone))

static std::vector<void *> kept;
static void *volatile sink;

KEEP void keep_cache()
{
    for (int i = 0; i < 1000; i++) {
        kept.push_back(malloc(4000));
    }
    sink = kept.back();
}

KEEP void leak_receipt()
{
    sink = malloc(1000);
    cairn_event("receipts", 1000);
    asm volatile("" ::: "memory");
}

KEEP void churn(int count)
{
    for (int i = 0; i < count; i++) {
        void *block = malloc(64);
        sink = block;
        free(block);
    }
}

KEEP int fibonacci(int levels)
{
    kept.push_back(malloc(333));
    int below = levels > 1 ? fibonacci(levels - 1) : 0;
    asm volatile("" ::: "memory");
    return below + 1;
}

KEEP void helper()
{
    pthread_setname_np(pthread_self(), "helper");
    std::vector<void *> blocks;
    blocks.reserve(100);
    for (int i = 0; i < 100; i++) {
        blocks.push_back(malloc(2000));
    }
    for (void *block : blocks) {
        free(block);
    }
}

static int leak_on_demand()
{
    char byte;
    while (read(STDIN_FILENO, &byte, 1) == 1) {
        for (int i = 0; i < 5; i++) {
            leak_receipt();
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "wait") == 0) {
        return leak_on_demand();
    }
    kept.reserve(2000);
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 5; i++) {
            leak_receipt();
        }
        churn(2000);
        if (round == 4) {
            keep_cache();
            fibonacci(8);
        }
        if (round == 7) {
            for (void *block : kept) {
                free(block);
            }
            kept.clear();
            std::thread(helper).join();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    if (argc > 1) { // the changed program of the comparison
        for (int i = 0; i < 25; i++) {
            leak_receipt();
        }
    }
    return 0;
}
