// SPDX-License-Identifier: MIT
// live_walk over maps that change in its pauses, and of processes that go.
#include "aggregate/live_blocks/live_walk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/compiler.h"

enum {
    STAYING = 120000,
    RECENT = 1000, // the newest of them, which are not in the table yet
    PASSING = 100000,
    STEP = 48, // between two addresses
};

#define STAYING_START UINT64_C(0x7f0000000000)

static uint64_t staying_address(uint64_t i)
{
    return STAYING_START + i * STEP;
}

// A walk, and what others do to its map meanwhile.
struct changing {
    struct live_map map;
    uint8_t visits[STAYING];
    unsigned pauses;
    unsigned last_pause; // the process goes in this one; 0: it stays
    uint64_t others;     // blocks that come in each pause, and go in the next but one
    uint64_t first;      // number of the oldest of them
    uint64_t next;       // of the next one
    bool is_over;        // nothing may be asked any more
};

static void count_visit(void *context, uint64_t address, const struct live_block *block)
{
    struct changing *c = context;
    assert_false(c->is_over);
    if (address >= STAYING_START) {
        assert_int_equal(address, staying_address(block->row));
        c->visits[block->row]++;
    }
}

static uint64_t other_address(uint64_t number)
{
    return 0x10000000 + number * STEP;
}

static uint64_t change(void *context)
{
    struct changing *c = context;
    assert_false(c->is_over);
    uint64_t changes = 0;
    for (; c->first + c->others < c->next; c->first++) {
        struct live_block gone;
        assert_true(live_map_take(&c->map, other_address(c->first), &gone));
        changes++;
    }
    for (uint64_t i = 0; i < c->others; i++) {
        const struct live_block block = {.size_bytes = 24};
        assert_int_equal(live_map_add(&c->map, other_address(c->next++), &block), ERR_OK);
        changes++;
    }
    c->pauses++;
    c->is_over = c->pauses == c->last_pause;
    return c->is_over ? LIVE_WALK_GONE : changes;
}

static struct changing *open_changing(void)
{
    struct changing *c = calloc(1, sizeof(*c));
    assert_non_null(c);
    live_map_init(&c->map, 5);
    struct live_block block = {0};
    for (uint32_t i = 0; i < STAYING; i++) {
        block.row = i;
        // Before the newest ones come, many blocks die young, so that new ones are kept apart.
        for (uint64_t k = 0; i == STAYING - RECENT && k < PASSING; k++) {
            struct live_block gone;
            assert_int_equal(live_map_add(&c->map, other_address(k), &block), ERR_OK);
            assert_true(live_map_take(&c->map, other_address(k), &gone));
        }
        assert_int_equal(live_map_add(&c->map, staying_address(i), &block), ERR_OK);
    }
    assert_non_null(c->map.recent);
    return c;
}

static void close_changing(struct changing *c)
{
    live_map_release(&c->map);
    free(c);
}

static struct live_walk walk_of(struct changing *c)
{
    return (struct live_walk){
        .visit = count_visit, .context = c, .pause = change, .pause_context = c};
}

static uint64_t grow(void *context)
{
    enum {
        GROWTH = 10 * LIVE_WALK_STEP,
        PAUSES_MAX = 20,
    };
    struct changing *c = context;
    for (uint64_t i = 0; i < GROWTH; i++) {
        const struct live_block block = {.size_bytes = 24};
        assert_int_equal(live_map_add(&c->map, other_address(c->next++), &block), ERR_OK);
    }
    c->pauses++;
    assert_true(c->pauses < PAUSES_MAX);
    return GROWTH;
}

// The process allocates ten times as many blocks in a pause as are visited between two at first.
static void the_walk_of_a_process_that_grows_ends(void **state)
{
    (void)state;
    struct changing *c = open_changing();
    struct live_walk walk = walk_of(c);
    c->next = PASSING;
    walk.pause = grow;
    assert_int_equal(live_walk_run(&walk, &c->map), ERR_OK);
    assert_true(c->pauses > 0);
    for (uint32_t k = 0; k < STAYING; k++) {
        assert_int_equal(c->visits[k], 1);
    }
    close_changing(c);
}

// Segments grow, split and shrink in the pauses, and blocks leave the recent ones.
static void what_stays_is_visited_once(void **state)
{
    (void)state;
    static const uint64_t others[] = {0, 1, 5000, 60000};
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct changing *c = open_changing();
        c->others = others[i];
        struct live_walk walk = walk_of(c);
        assert_int_equal(live_walk_run(&walk, &c->map), ERR_OK);
        for (uint32_t k = 0; k < STAYING; k++) {
            assert_int_equal(c->visits[k], 1);
        }
        assert_false(walk.is_gone);
        assert_in_range(c->pauses, 1, walk.block_count / LIVE_WALK_STEP);
        assert_true(others[i] > 1 || c->pauses == walk.block_count / LIVE_WALK_STEP);
        assert_int_equal(walk.changed_count, c->first + c->next);
        assert_true(live_map_check(&c->map));
        close_changing(c);
    }
}

static void nothing_is_touched_after_a_process_has_gone(void **state)
{
    (void)state;
    static const unsigned pauses[] = {1, 2, 13, STAYING / LIVE_WALK_STEP};
    for (size_t i = 0; i < ARRAY_LEN(pauses); i++) {
        struct changing *c = open_changing();
        c->others = 2000;
        c->last_pause = pauses[i];
        struct live_walk walk = walk_of(c);
        assert_int_equal(live_walk_run(&walk, &c->map), ERR_OK);
        assert_true(walk.is_gone);
        assert_int_equal(walk.block_count, (uint64_t)pauses[i] * LIVE_WALK_STEP);
        close_changing(c);
    }
}

// All blocks of one address are in one part, so that their queue does not change while it is read.
static void an_address_is_visited_as_a_whole(void **state)
{
    (void)state;
    enum {
        QUEUE = 10000
    };
    struct changing *c = open_changing();
    const struct live_block block = {.size_bytes = 8};
    for (uint32_t i = 0; i < QUEUE; i++) {
        assert_int_equal(live_map_add(&c->map, 0x1003, &block), ERR_OK);
    }
    c->others = 100;
    struct live_walk walk = walk_of(c);
    assert_int_equal(live_walk_run(&walk, &c->map), ERR_OK);
    assert_true(walk.block_count >= STAYING + QUEUE);
    close_changing(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stays_is_visited_once),
        cmocka_unit_test(the_walk_of_a_process_that_grows_ends),
        cmocka_unit_test(nothing_is_touched_after_a_process_has_gone),
        cmocka_unit_test(an_address_is_visited_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
