// SPDX-License-Identifier: MIT
// pool: a fixed-size pool that tells cairn about its blocks.
//
//   cc -I/usr/include examples/pool.c -o pool && cairn ./pool && cairn report cairn.pool.*.cairn
//
// The pool's memory is one block from malloc, the first pool block at the very same address; cairn
// counts both. A block that is given back or resized at once is temporary. TRUTH: allocations=5
// frees=3 allocated_bytes=4256 freed_bytes=4160 live_blocks=2 TRUTH: live_bytes=96
// peak_bytes=4192 temporary=2
#include <cairn.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    BLOCK_BYTES = 32,
    BLOCKS = 128
};

struct pool {
    char *memory;
    int used;
};

static void *pool_take(struct pool *pool)
{
    void *block = pool->memory + (size_t)BLOCK_BYTES * (size_t)pool->used++;
    cairn_report_alloc(block, BLOCK_BYTES);
    return block;
}

static void pool_grow_last(struct pool *pool, void *block)
{
    pool->used++; // two neighbours are one block now
    cairn_report_realloc(block, block, (size_t)2 * BLOCK_BYTES);
}

static void pool_give_back(struct pool *pool, void *block)
{
    cairn_report_free(block);
    (void)pool; // a real one would keep a list
}

int main(void)
{
    struct pool pool = {.memory = malloc((size_t)BLOCK_BYTES * BLOCKS)};
    cairn_phase("filling");
    pool_take(&pool); // stays
    void *second = pool_take(&pool);
    pool_give_back(&pool, second); // temporary
    void *third = pool_take(&pool);
    pool_grow_last(&pool, third); // stays too
    cairn_mark("filled");
    free(pool.memory);
    return 0;
}
