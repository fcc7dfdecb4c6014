// SPDX-License-Identifier: MIT
// unsampled_blocks: the table of unsampled blocks, and the sampler's reports about them.
#include "session/unsampled_blocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "recorder/ingest/test_session.h"
#include "target/producer/sampler.h"

static struct unsampled_blocks *new_table(void)
{
    struct unsampled_blocks *table = aligned_alloc(64, UNSAMPLED_BYTES);
    assert_non_null(table);
    memset(table, 0, UNSAMPLED_BYTES);
    return table;
}

// A block that no table follows leaves the balance, and counts as forgotten.
static void what_is_forgotten_leaves_the_balance(void **state)
{
    (void)state;
    enum {
        BLOCKS = 400,     // no balance is due, which would begin the counts anew
        BLOCK_BYTES = 10, // exact in the table
    };
    static const struct {
        bool has_table;
        uint64_t address;
        bool is_forgotten;
    } cases[] = {
        {false, 0x7f0000001010, true},
        {true, 0x7f0000001010, false},
        {true, (uint64_t)1 << UNSAMPLED_ADDRESS_BITS, true}, // does not fit an entry
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct test_session on;
        struct lane_producer producer;
        struct byte_sampler choice;
        struct sampler sampler;
        struct unsampled_blocks *table = cases[i].has_table ? new_table() : NULL;
        uint64_t unsampled = 0;
        test_session_open(&on, SESSION_OVERFLOW_SAMPLE);
        test_session_add_lane(&on, test_session_add_process(&on), &producer);
        byte_sampler_init(&choice, producer.lane, 0, 1);
        sampler_init(&sampler, &producer, &choice);
        for (uint64_t at = 0; at < BLOCKS; at++) {
            uint32_t level;
            producer.level = LANE_LEVEL_MAX;
            unsampled +=
                !sampler_takes(&sampler, table, cases[i].address + at * 48, BLOCK_BYTES, &level);
        }
        assert_true(unsampled > BLOCKS / 2);
        const struct lane_header *lane = producer.lane;
        assert_int_equal(atomic_load(&lane->unsampled_allocations), unsampled);
        assert_int_equal(atomic_load(&lane->unsampled_bytes), unsampled * BLOCK_BYTES);
        assert_int_equal(sampler.balance_bytes,
                         cases[i].is_forgotten ? 0 : unsampled * BLOCK_BYTES);
        assert_int_equal(sampler.forgotten_blocks, cases[i].is_forgotten ? unsampled : 0);
        assert_int_equal(sampler.forgotten_bytes,
                         cases[i].is_forgotten ? unsampled * BLOCK_BYTES : 0);
        assert_int_equal(atomic_load(&lane->unsampled_forgotten),
                         cases[i].is_forgotten ? unsampled : 0);
        test_session_close(&on);
        free(table);
    }
}

static void the_table_of_unsampled_blocks(void **state)
{
    (void)state;
    enum {
        COUNT = 1000000 // twice the capacity
    };
    struct unsampled_blocks *set = new_table();
    uint32_t found = 0;
    uint32_t kept = COUNT;
    for (uint64_t i = 1; i <= COUNT; i++) {
        uint64_t forgotten;
        if (!unsampled_blocks_add(set, unsampled_blocks_entry(i * 32, i), i, &forgotten)) {
            kept--;
            assert_true(unsampled_blocks_size(forgotten) <= i + (i >> UNSAMPLED_PRECISION_BITS));
        }
    }
    for (uint64_t i = 1; i <= COUNT; i++) {
        const uint64_t entry = unsampled_blocks_take(set, i * 32);
        found += entry != 0;
        const uint64_t off = i >> UNSAMPLED_PRECISION_BITS;
        assert_true(entry == 0 || (unsampled_blocks_size(entry) <= i + off &&
                                   unsampled_blocks_size(entry) >= i - off));
        assert_true(unsampled_blocks_take(set, i * 32) == 0);
        assert_true(unsampled_blocks_take(set, i * 32 + 16) == 0);
    }
    assert_int_equal(found, kept);
    assert_in_range(found, UNSAMPLED_LINES * UNSAMPLED_WAYS * 9 / 10,
                    UNSAMPLED_LINES * UNSAMPLED_WAYS);
    free(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_forgotten_leaves_the_balance),
        cmocka_unit_test(the_table_of_unsampled_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
