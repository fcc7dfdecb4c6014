// SPDX-License-Identifier: MIT
// Which blocks need stamps of their own once several threads record.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "recorder/session/test_nursery.h"

enum {
    ALLOWED_BYTES = 100, // that each thread may hold
    STAMPED_WORDS = 3,
    BARE_WORDS = 2,
};

// What happens between the thread's latest stamp and the block.
enum before {
    NOTHING,
    SAME_SIZE_BEFORE, // another block of the thread, without a stamp
    OTHER_FREES,      // another thread frees a block at this address
    OWN_FREES,        // the thread itself does
    TICK,
    REWIND,   // a hook was left half way
    GIVEN,    // the block's stamp was taken before
    NO_TABLE, // of freed addresses
};

static const struct {
    const char *name;
    enum before before;
    uint64_t size_bytes;
    size_t words;
} cases[] = {
    {"a small block", NOTHING, 60, BARE_WORDS},
    {"as much as allowed", NOTHING, ALLOWED_BYTES, BARE_WORDS},
    {"more than that", NOTHING, ALLOWED_BYTES + 1, STAMPED_WORDS},
    {"no bytes", NOTHING, 0, STAMPED_WORDS},
    {"the second fits", SAME_SIZE_BEFORE, 50, BARE_WORDS},
    {"the second does not", SAME_SIZE_BEFORE, 51, STAMPED_WORDS},
    {"where the thread freed", OWN_FREES, 60, BARE_WORDS},
    {"where another thread freed", OTHER_FREES, 60, STAMPED_WORDS},
    {"in the next tick", TICK, 60, STAMPED_WORDS},
    {"after a hook was left half way", REWIND, 60, STAMPED_WORDS},
    {"its stamp is known", GIVEN, 60, STAMPED_WORDS},
    {"frees are not noted", NO_TABLE, 60, STAMPED_WORDS},
    {"frees are not noted, no bytes", NO_TABLE, 0, STAMPED_WORDS},
};

static void allocate(struct lane_producer *p, uint32_t at, uint64_t size_bytes)
{
    assert_true(nursery_begin(p) && nursery_allocate(p, test_address(at), size_bytes, 0));
}

static void prepare(struct test_nursery *f, struct lane_producer *p, size_t i)
{
    switch (cases[i].before) {
    case NOTHING:
        break;
    case SAME_SIZE_BEFORE:
        allocate(p, 2, cases[i].size_bytes);
        break;
    case OTHER_FREES:
        assert_true(nursery_begin(f->lanes + 1) && nursery_free(f->lanes + 1, test_address(1)));
        break;
    case OWN_FREES:
        assert_true(nursery_begin(p) && nursery_free(p, test_address(1)));
        break;
    case TICK:
        test_nursery_advance(f, 1);
        assert_true(nursery_begin(p));
        break;
    case REWIND:
        lane_producer_rewind(p);
        assert_true(nursery_begin(p));
        break;
    case GIVEN:
        p->given_stamp = stamp_now(p->session);
        break;
    case NO_TABLE:
        p->freed = NULL;
        test_nursery_advance(f, 1);
        assert_true(nursery_begin(p));
        allocate(p, 2, 10);
        break;
    }
}

static void small_blocks_do_without_stamps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("%s\n", cases[i].name);
        static struct test_nursery f;
        struct lane_producer *p = f.lanes;
        test_nursery_open(&f, 2, SESSION_NO_NURSERY);
        allocate(f.lanes + 1, 1, 10); // so that there are several threads
        atomic_store(&f.on.session.header->hold_bytes, ALLOWED_BYTES);
        test_nursery_advance(&f, 1);
        allocate(p, 0, 10);
        assert_true(p->is_ordered);
        prepare(&f, p, i);
        const uint64_t pos = p->pos;
        assert_true(nursery_allocate(p, test_address(1), cases[i].size_bytes, 0));
        assert_int_equal(p->pos - pos, cases[i].words * sizeof(uint64_t));
        test_nursery_close(&f);
    }
}

// What a thread held in a tick needs one stamp.
static void held_blocks_share_a_stamp(void **state)
{
    (void)state;
    static struct test_nursery f;
    struct lane_producer *p = f.lanes;
    test_nursery_open(&f, 2, SESSION_ALWAYS_HOLD);
    allocate(f.lanes + 1, 10, 10);
    atomic_store(&f.on.session.header->hold_bytes, ALLOWED_BYTES);
    test_nursery_advance(&f, 1);
    allocate(p, 0, 10); // sent with a stamp, as the first block of each tick
    allocate(p, 1, 10);
    allocate(p, 2, 10);
    assert_int_equal(p->lane->nursery.hold_count, 2);
    const uint64_t pos = p->pos;
    assert_true(nursery_flush(p));
    assert_int_equal(p->pos - pos, 6 * sizeof(uint64_t));
    test_nursery_pass(&f, true);
    assert_int_equal(f.on.aggregator.totals.sums.live_bytes, 40);
    test_nursery_close(&f);
}

// Another thread had the address until just before. By the thread's latest stamp the block would
// come before that one's: the wrong block would be freed, and the temporary allocation be missed.
static void a_held_block_follows_the_former_one_at_its_address(void **state)
{
    (void)state;
    static struct test_nursery f;
    struct lane_producer *p = f.lanes;
    struct lane_producer *other = f.lanes + 1;
    test_nursery_open(&f, 2, SESSION_ALWAYS_HOLD);
    allocate(other, 10, 10);
    atomic_store(&f.on.session.header->hold_bytes, ALLOWED_BYTES);
    test_nursery_advance(&f, 1);
    allocate(p, 0, 10); // its stamp is the latest one
    allocate(other, 12, 10);
    allocate(other, 1, ALLOWED_BYTES + 1); // too large to be held
    allocate(other, 11, 10);
    assert_true(nursery_begin(other) && nursery_free(other, test_address(1)));
    allocate(p, 1, 10);
    assert_int_equal(p->lane->nursery.hold_count, 1);
    test_nursery_advance(&f, 1);
    assert_true(nursery_begin(p) && nursery_free(p, test_address(1)));
    test_nursery_pass(&f, true);
    assert_int_equal(f.on.aggregator.totals.sums.temporary, 1);
    assert_int_equal(f.on.aggregator.totals.sums.live_bytes, 40);
    test_nursery_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_blocks_do_without_stamps),
        cmocka_unit_test(held_blocks_share_a_stamp),
        cmocka_unit_test(a_held_block_follows_the_former_one_at_its_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
