// SPDX-License-Identifier: MIT
// mapping_map against a naive model: an array with an entry for each page. Random changes, applied
// in random order, must give the result of the order of their numbers.
#include "aggregate/tables/mapping_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/test_support/random_numbers.h"

#define PAGE ((uint64_t)4096)

enum {
    PAGES = 64,
    ROWS = 5,
};

struct account {
    uint64_t given[ROWS];
    uint64_t left[ROWS];
};

static void count_left(void *context, uint32_t row, uint64_t bytes)
{
    struct account *account = context;
    assert_true(row < ROWS);
    account->left[row] += bytes;
}

struct change {
    uint64_t start; // in pages
    uint64_t end;
    uint64_t number;
    uint32_t row; // ROWS: unmapped
};

static void apply(struct mapping_map *map, const struct change *change, struct account *account)
{
    const struct mapping_sink sink = {.left = count_left, .context = account};
    const struct mapped_range what = {.start = change->start * PAGE,
                                      .end = change->end * PAGE,
                                      .number = change->number,
                                      .row = change->row < ROWS ? change->row : REC_NONE};
    if (change->row < ROWS) {
        account->given[change->row] += what.end - what.start;
    }
    assert_int_equal(mapping_map_set(map, &what, &sink), ERR_OK);
    assert_true(mapping_map_check(map));
}

static void compare(const struct mapping_map *map,
                    const struct change pages[static PAGES],
                    const struct account *account)
{
    uint64_t held[ROWS] = {0};
    for (uint64_t page = 0; page < PAGES; page++) {
        const uint64_t address = page * PAGE;
        const struct mapped_range *range = mapping_map_at(map, address);
        const bool is_there = range != NULL && range->start <= address && range->row != REC_NONE;
        const uint32_t want = pages[page].number > 0 ? pages[page].row : ROWS;
        const uint32_t got = is_there ? range->row : ROWS;
        if (got != want) {
            fail_msg("page %u belongs to %u instead of %u", (unsigned)page, got, want);
        }
        if (want < ROWS) {
            held[want] += PAGE;
        }
    }
    for (size_t row = 0; row < ROWS; row++) {
        assert_int_equal(account->given[row] - account->left[row], held[row]);
    }
}

static void any_order_leaves_what_the_numbers_say(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        uint64_t random = seed;
        CLEANUP(mapping_map_release) struct mapping_map map = {0};
        struct change changes[40];
        struct change pages[PAGES] = {0};
        struct account account = {0};
        for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
            const uint64_t start = next_random(&random) % PAGES;
            changes[i] = (struct change){.start = start,
                                         .end = start + 1 + next_random(&random) % (PAGES - start),
                                         .number = i + 1,
                                         .row = (uint32_t)(next_random(&random) % (ROWS + 2))};
            for (uint64_t page = changes[i].start; page < changes[i].end; page++) {
                pages[page] = changes[i];
                pages[page].row = changes[i].row < ROWS ? changes[i].row : ROWS;
            }
        }
        for (size_t left = ARRAY_LEN(changes); left > 0; left--) {
            // Half of the seeds in order, the others in any.
            const size_t at = seed % 2 == 0 ? 0 : next_random(&random) % left;
            apply(&map, &changes[at], &account);
            memmove(changes + at, changes + at + 1, (left - at - 1) * sizeof(*changes));
        }
        compare(&map, pages, &account);
    }
}

static void parts_are_cut_out_and_laid_over(void **state)
{
    (void)state;
    CLEANUP(mapping_map_release) struct mapping_map map = {0};
    struct account account = {0};
    apply(&map, &(struct change){.start = 10, .end = 20, .number = 1, .row = 0}, &account);
    apply(&map, &(struct change){.start = 12, .end = 14, .number = 2, .row = ROWS}, &account);
    apply(&map, &(struct change){.start = 15, .end = 16, .number = 3, .row = 1}, &account);
    assert_int_equal(account.left[0], 3 * PAGE);
    assert_int_equal(mapping_map_at(&map, 16 * PAGE)->start, 16 * PAGE);
    assert_int_equal(mapping_map_at(&map, 15 * PAGE)->row, 1);
    assert_null(mapping_map_at(&map, 20 * PAGE));
    // An older change that is read late finds the place taken.
    apply(&map, &(struct change){.start = 12, .end = 13, .number = 1, .row = 2}, &account);
    assert_int_equal(account.left[2], PAGE);
}

// Like an arena that grows piece by piece, which the kernel holds as one mapping.
static void neighbours_become_one_and_the_list_stays_bounded(void **state)
{
    (void)state;
    CLEANUP(mapping_map_release) struct mapping_map map = {0};
    struct account account = {0};
    const struct mapping_sink sink = {.left = count_left, .context = &account};
    for (uint64_t i = 0; i < 20000; i++) {
        const struct mapped_range what = {.start = i * PAGE,
                                          .end = (i + 1) * PAGE,
                                          .number = i + 1,
                                          .since_ms = i * MAPPING_KEPT_MS / 100};
        assert_int_equal(mapping_map_set(&map, &what, &sink), ERR_OK);
    }
    assert_true(map.ranges.len < 2000);
    // Every second page: nothing can be merged.
    for (uint64_t i = 0; i < MAPPING_RANGES_MAX + 50; i++) {
        const struct mapped_range what = {.start = ((uint64_t)1 << 40) + 2 * i * PAGE,
                                          .end = ((uint64_t)1 << 40) + (2 * i + 1) * PAGE,
                                          .number = 20001 + i,
                                          .row = 1};
        assert_int_equal(mapping_map_set(&map, &what, &sink), ERR_OK);
    }
    assert_true(map.ranges.len <= MAPPING_RANGES_MAX);
    assert_true(map.unplaced >= 50);
    assert_int_equal(account.left[1], map.unplaced * PAGE);
    assert_true(mapping_map_check(&map));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_leaves_what_the_numbers_say),
        cmocka_unit_test(parts_are_cut_out_and_laid_over),
        cmocka_unit_test(neighbours_become_one_and_the_list_stays_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
