// SPDX-License-Identifier: MIT
// foreign: recorded by other tools for the tests of import: several stacks, inlined functions,
// passing time, a second thread, leaked blocks, and rules for LeakSanitizer. With an argument it
// ends by the signal of that number.
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

extern "C" const char *__lsan_default_suppressions()
{
    return "leak:keep_forever\n# a comment\nleak:no_such_function\n";
}

static void wait_a_moment()
{
    timespec moment = {0, 30 * 1000 * 1000};
    nanosleep(&moment, nullptr);
}

static volatile char *g_kept;

__attribute__((noinline)) static void keep_forever(size_t bytes)
{
    g_kept = static_cast<char *>(malloc(bytes));
    g_kept[0] = 1;
}

static inline __attribute__((always_inline)) void *inlined_block(size_t bytes)
{
    return malloc(bytes);
}

__attribute__((noinline)) static void churn(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        std::string text(100 + i % 50, 'x');
        volatile char first = text[0];
        (void)first;
    }
}

__attribute__((noinline)) static void deep(int depth, std::vector<void *> &blocks)
{
    if (depth == 0) {
        for (int i = 0; i < 500; i++) {
            blocks.push_back(inlined_block(i));
        }
        return;
    }
    deep(depth - 1, blocks);
    if (depth % 2 == 0) {
        blocks.push_back(malloc(depth * 100));
    }
}

int main(int argc, char **argv)
{
    {
        std::vector<void *> blocks;
        keep_forever(77);
        deep(8, blocks);
        churn(2000);
        wait_a_moment();
        for (size_t i = 0; i < blocks.size(); i += 2) {
            free(blocks[i]);
        }
        wait_a_moment();
        for (size_t i = 1; i < blocks.size(); i += 2) {
            free(blocks[i]);
        }
    }
    std::thread(churn, 1000).join();
    void *grown = malloc(1000);
    grown = realloc(grown, 1 << 20);
    wait_a_moment();
    if (argc > 1) {
        raise(atoi(argv[1]));
    }
    free(grown);
    return 0;
}
