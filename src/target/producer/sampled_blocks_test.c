// SPDX-License-Identifier: MIT
// sampled_blocks: no block is ever missed, few others are looked up, and a full line gives up
// safely.
#include "target/producer/sampled_blocks.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/hash.h"

#define BASE ((uint64_t)0x7f0000000000)

static struct sampled_blocks *new_blocks(void)
{
    struct sampled_blocks *blocks = aligned_alloc(64, SAMPLED_BLOCKS_BYTES);
    assert_non_null(blocks);
    memset(blocks, 0, sizeof(*blocks)); // no copy on the stack
    sampled_blocks_init(blocks);
    return blocks;
}

static uint64_t mask_of(struct sampled_blocks *blocks)
{
    return sampled_blocks_filter(blocks)->mask;
}

static void blocks_come_and_go(void **state)
{
    (void)state;
    enum {
        BLOCKS = 40000,
        OTHERS = 100000
    };
    struct sampled_blocks *blocks = new_blocks();
    const uint64_t smallest = mask_of(blocks);
    const struct block_filter *kept = sampled_blocks_filter(blocks); // by a thread, too long
    for (uint64_t i = 0; i < BLOCKS; i++) {
        sampled_blocks_add(blocks, BASE + i * 4112);
    }
    assert_true(mask_of(blocks) > smallest);
    uint32_t in_vain = 0;
    for (uint64_t i = 0; i < OTHERS; i++) {
        in_vain += sampled_blocks_may_have(blocks, BASE * 2 + i * 48);
    }
    assert_true(in_vain <= OTHERS / 10);
    for (uint64_t i = 0; i < BLOCKS; i++) {
        assert_true(sampled_blocks_may_have(blocks, BASE + i * 4112));
        assert_true(block_filter_may_have(kept, BASE + i * 4112));
        assert_true(sampled_blocks_take(blocks, BASE + i * 4112));
        assert_false(sampled_blocks_take(blocks, BASE + i * 4112));
    }
    assert_int_equal(atomic_load(&blocks->count), 0);
    assert_int_equal(mask_of(blocks), smallest);
    // Counters of the smaller levels may have reached their maximum; none of the largest has.
    for (uint64_t i = 0; i < OTHERS; i++) {
        assert_false(sampled_blocks_take(blocks, BASE + i * 16));
    }
    free(blocks);
}

// Addresses of one line: the ninth is not in the table, and its free is sent all the same.
static void a_full_line_misses_no_free(void **state)
{
    (void)state;
    enum {
        BLOCKS = SAMPLED_BLOCKS_WAYS + 3
    };
    struct sampled_blocks *blocks = new_blocks();
    uint64_t addresses[BLOCKS];
    uint32_t count = 0;
    const uint64_t wanted = sampled_blocks_hash(BASE) % SAMPLED_BLOCKS_LINES;
    for (uint64_t address = BASE; count < BLOCKS; address += 16) {
        if (sampled_blocks_hash(address) % SAMPLED_BLOCKS_LINES == wanted) {
            addresses[count++] = address;
            sampled_blocks_add(blocks, address);
        }
    }
    assert_int_equal(atomic_load(&blocks->count), SAMPLED_BLOCKS_WAYS);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        assert_true(sampled_blocks_may_have(blocks, addresses[i]));
        assert_true(sampled_blocks_take(blocks, addresses[i]));
    }
    free(blocks);
}

enum {
    THREADS = 4,
    ROUNDS = 100000,
    SHARED = 64
};

struct worker {
    struct sampled_blocks *blocks;
    uint64_t first;
};

// Each thread adds and takes its own addresses; their counters are shared with other threads.
static void *work(void *context)
{
    const struct worker *worker = context;
    uint64_t missed = 0;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        const uint64_t address = BASE + (worker->first + i % SHARED * THREADS) * 16;
        sampled_blocks_add(worker->blocks, address);
        missed += !sampled_blocks_may_have(worker->blocks, address);
        missed += !sampled_blocks_take(worker->blocks, address);
    }
    return (void *)missed; // NOLINT(performance-no-int-to-ptr)
}

static void threads_lose_no_count(void **state)
{
    (void)state;
    struct sampled_blocks *blocks = new_blocks();
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.blocks = blocks, .first = i};
        assert_int_equal(pthread_create(threads + i, NULL, work, workers + i), 0);
    }
    for (uint64_t i = 0; i < THREADS; i++) {
        void *missed;
        assert_int_equal(pthread_join(threads[i], &missed), 0);
        assert_null(missed);
    }
    assert_int_equal(atomic_load(&blocks->count), 0);
    for (uint64_t i = 0; i < (uint64_t)SHARED * THREADS; i++) {
        assert_false(sampled_blocks_may_have(blocks, BASE + i * 16));
    }
    free(blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_and_go),
        cmocka_unit_test(a_full_line_misses_no_free),
        cmocka_unit_test(threads_lose_no_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
