// SPDX-License-Identifier: MIT
// live: many small blocks alive at once, then freed in another order than allocated.
//
// Measures what a profiler keeps per live block. `blocks` blocks of 16 to 47 bytes are linked into
// chains. They are freed chain by chain, newest first, so that the frees jump through memory like
// the frees of a real program's maps. A pair is one block's malloc and free.

#include "workload.h"

#include <stdlib.h>

#define CHAINS 1021u // prime: blocks allocated in sequence are in different chains

struct block {
    struct block *next;
};

int main(int argc, char **argv)
{
    uint64_t blocks = 20000000;
    const struct workload_param params[] = {
        {"blocks", &blocks, 1, 1000000000, "blocks alive at the peak"},
        {0},
    };
    workload_args(argc, argv, params);

    static struct block *chains[CHAINS];
    struct workload_random random = workload_random_from(1);
    uint64_t begin = workload_now_ns();
    for (uint64_t i = 0; i < blocks; i++) {
        struct block *block = workload_alloc(16 + workload_random_below(&random, 32));
        struct block **chain = &chains[i % CHAINS];
        block->next = *chain;
        *chain = block;
    }
    uint64_t filled = workload_now_ns();
    for (uint32_t i = 0; i < CHAINS; i++) {
        while (chains[i]) {
            struct block *block = chains[i];
            chains[i] = block->next;
            free(block);
        }
    }
    uint64_t end = workload_now_ns();
    const struct workload_figure figures[] = {
        {"fill_ns", filled - begin}, {"drain_ns", end - filled}, {NULL, 0}};
    workload_report("live", blocks, end - begin, figures);
    return 0;
}
