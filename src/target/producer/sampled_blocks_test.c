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
#include <sys/mman.h>
#include <sys/prctl.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/page_alloc.h"

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

// Addresses of one line in each level: those that find no room are not in the table, and their
// frees are sent all the same.
static void a_full_line_misses_no_free(void **state)
{
    (void)state;
    enum {
        ROOM = SAMPLED_LEVELS * SAMPLED_BLOCKS_WAYS,
        BLOCKS = ROOM + 3
    };
    struct sampled_blocks *blocks = new_blocks();
    uint64_t addresses[BLOCKS];
    uint32_t count = 0;
    const uint64_t lines = SAMPLED_LEVEL_SIZE(SAMPLED_LINES_BITS, SAMPLED_LEVELS - 1);
    const uint64_t wanted = sampled_blocks_hash(BASE) % lines;
    for (uint64_t address = BASE; count < BLOCKS; address += 16) {
        if (sampled_blocks_hash(address) % lines == wanted) {
            addresses[count++] = address;
            sampled_blocks_add(blocks, address);
        }
    }
    assert_int_equal(atomic_load(&blocks->count), ROOM);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        assert_true(sampled_blocks_may_have(blocks, addresses[i]));
        assert_true(sampled_blocks_take(blocks, addresses[i]));
    }
    free(blocks);
}

// Most programs have few chosen blocks at a time, however many come and go.
static void few_blocks_touch_few_pages(void **state)
{
    (void)state;
    enum {
        BLOCKS = 200,
        TURNS = 20000,
        PAGES_MAX = 4 // filter, table, header
    };
    // A kernel with huge pages everywhere would make 2 MiB of the first one.
    assert_int_equal(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
    struct sampled_blocks *blocks = page_alloc(SAMPLED_BLOCKS_BYTES);
    assert_non_null(blocks);
    sampled_blocks_init(blocks);
    for (uint64_t i = 0; i < BLOCKS + TURNS; i++) {
        sampled_blocks_add(blocks, BASE + i * 4112);
        if (i >= BLOCKS) {
            assert_true(sampled_blocks_take(blocks, BASE + (i - BLOCKS) * 4112));
        }
    }
    static unsigned char resident[SAMPLED_BLOCKS_BYTES / PAGE_GRAIN + 1];
    assert_int_equal(mincore(blocks, SAMPLED_BLOCKS_BYTES, resident), 0);
    uint32_t pages = 0;
    for (size_t i = 0; i < sizeof(resident); i++) {
        pages += resident[i] & 1;
    }
    assert_in_range(pages, 1, PAGES_MAX);
    page_free(blocks, SAMPLED_BLOCKS_BYTES);
}

enum {
    THREADS = 4,
    ROUNDS = 100000,
    SHARED = 64,
    CROWD = 3000,
    CROWD_ROUNDS = 20
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

static void run_threads(struct sampled_blocks *blocks, void *(*body)(void *))
{
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.blocks = blocks, .first = i};
        assert_int_equal(pthread_create(threads + i, NULL, body, workers + i), 0);
    }
    for (uint64_t i = 0; i < THREADS; i++) {
        void *missed;
        assert_int_equal(pthread_join(threads[i], &missed), 0);
        assert_null(missed);
    }
}

static void threads_lose_no_count(void **state)
{
    (void)state;
    struct sampled_blocks *blocks = new_blocks();
    run_threads(blocks, work);
    assert_int_equal(atomic_load(&blocks->count), 0);
    for (uint64_t i = 0; i < (uint64_t)SHARED * THREADS; i++) {
        assert_false(sampled_blocks_may_have(blocks, BASE + i * 16));
    }
    free(blocks);
}

// Each thread adds its blocks while the levels grow, and frees every second one at once.
static void *crowd(void *context)
{
    const struct worker *worker = context;
    uint64_t missed = 0;
    for (uint64_t i = 0; i < CROWD; i++) {
        const uint64_t address = BASE + (worker->first + i * THREADS) * 16;
        sampled_blocks_add(worker->blocks, address);
        missed += !sampled_blocks_may_have(worker->blocks, address);
        missed += i % 2 == 0 && !sampled_blocks_take(worker->blocks, address);
    }
    return (void *)missed; // NOLINT(performance-no-int-to-ptr)
}

static void threads_miss_no_block_while_levels_grow(void **state)
{
    (void)state;
    for (uint32_t round = 0; round < CROWD_ROUNDS; round++) {
        struct sampled_blocks *blocks = new_blocks();
        run_threads(blocks, crowd);
        const uint32_t ready = atomic_load(&blocks->ready);
        assert_in_range(ready, 1, SAMPLED_LEVELS - 1);
        for (uint64_t i = 0; i < (uint64_t)CROWD * THREADS; i++) {
            for (uint32_t level = 0; i / THREADS % 2 == 1 && level <= ready; level++) {
                assert_true(block_filter_may_have(blocks->levels + level, BASE + i * 16));
            }
            assert_int_equal(sampled_blocks_take(blocks, BASE + i * 16), i / THREADS % 2);
        }
        assert_int_equal(atomic_load(&blocks->count), 0);
        free(blocks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_and_go),
        cmocka_unit_test(a_full_line_misses_no_free),
        cmocka_unit_test(few_blocks_touch_few_pages),
        cmocka_unit_test(threads_lose_no_count),
        cmocka_unit_test(threads_miss_no_block_while_levels_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
