// SPDX-License-Identifier: MIT
// row_cohorts_test: cells and cohorts of a row say the same, although blocks are counted later than
// they say.
#include "aggregate/totals/row_cohorts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/order.h"
#include "base/test_support/random_numbers.h"

enum {
    STEPS = 40,
    BLOCKS = 300,
    ROUNDS = 500,
};

struct amount {
    int64_t blocks;
    int64_t bytes;
};

static void add(struct amount *sum, int64_t blocks, int64_t bytes)
{
    sum->blocks += blocks;
    sum->bytes += bytes;
}

// A row's cells, and the cohorts of its freed blocks.
struct drawn {
    struct rec_cell cells[STEPS];
    struct rec_cohort freed[BLOCKS];
    size_t count;
};

// Add a block that was counted at `counted`, and says that it was born at `born`.
static void draw(struct drawn *d, uint64_t bytes, uint32_t born, uint32_t counted, uint32_t freed)
{
    d->cells[counted].allocations++;
    d->cells[counted].allocated_bytes += bytes;
    if (freed != REC_NONE) {
        d->cells[freed].frees++;
        d->cells[freed].freed_bytes += bytes;
    }
    if (freed != REC_NONE && born < freed) {
        d->freed[d->count++] = (struct rec_cohort){
            .born_slice = born, .freed_slice = freed, .blocks = 1, .bytes = bytes};
    }
}

static int by_place(const void *left, const void *right)
{
    const struct rec_cohort *a = left;
    const struct rec_cohort *b = right;
    return order_u64(a->born_slice, b->born_slice) ?: order_u64(a->freed_slice, b->freed_slice);
}

// As the recorder has them: cohorts are unique.
static void sum_up(struct drawn *d)
{
    size_t count = 0;
    qsort(d->freed, d->count, sizeof(*d->freed), by_place);
    for (size_t i = 0; i < d->count; i++) {
        struct rec_cohort *last = d->freed + count - 1;
        if (count > 0 && by_place(last, d->freed + i) == 0) {
            last->blocks++;
            last->bytes += d->freed[i].bytes;
        } else {
            d->freed[count++] = d->freed[i];
        }
    }
    d->count = count;
    for (uint32_t i = 0; i < STEPS; i++) {
        d->cells[i].slice = i;
    }
}

static void make(struct drawn *d, struct row_cohorts *made, struct rec_cohort_vec *out)
{
    sum_up(d);
    const struct row_part part = {.row = 7,
                                  .cells = d->cells,
                                  .cell_count = STEPS,
                                  .freed = d->freed,
                                  .freed_count = d->count};
    assert_int_equal(row_cohorts_add(made, &part, out), ERR_OK);
}

// What was born and freed in each step is the same by its births and by its frees.
static void compare(const struct drawn *d, const struct rec_cohort_vec *cohorts)
{
    struct amount by_birth[STEPS] = {0};
    struct amount by_free[STEPS] = {0};
    for (size_t i = 0; i < STEPS; i++) {
        const struct rec_cell *cell = d->cells + i;
        add(by_birth + i, (int64_t)cell->allocations, (int64_t)cell->allocated_bytes);
        add(by_free + i, (int64_t)cell->frees, (int64_t)cell->freed_bytes);
    }
    for (size_t i = 0; i < cohorts->len; i++) {
        const struct rec_cohort *cohort = cohorts->items + i;
        const int64_t blocks = cohort->blocks;
        const int64_t bytes = (int64_t)cohort->bytes;
        assert_true(i == 0 || by_place(cohort - 1, cohort) < 0);
        assert_true(blocks > 0 && cohort->born_slice < cohort->freed_slice);
        add(by_birth + cohort->born_slice, -blocks, -bytes);
        if (cohort->freed_slice != REC_NONE) {
            add(by_free + cohort->freed_slice, -blocks, -bytes);
        }
    }
    for (size_t i = 0; i < STEPS; i++) {
        assert_true(by_birth[i].blocks >= 0 && by_birth[i].bytes >= 0);
        assert_true(by_birth[i].blocks > 0 || by_birth[i].bytes == 0);
        assert_int_equal(by_birth[i].blocks, by_free[i].blocks);
        assert_int_equal(by_birth[i].bytes, by_free[i].bytes);
    }
}

// The freed block was counted a step after its birth; the other one was not.
static void a_late_block_leaves_no_bytes_without_a_block(void **state)
{
    (void)state;
    static struct drawn d;
    CLEANUP(rec_cohort_vec_release) struct rec_cohort_vec cohorts = {0};
    struct row_cohorts *made = calloc(1, sizeof(*made));
    assert_non_null(made);
    draw(&d, 300, 1, 1, REC_NONE);
    draw(&d, 78, 1, 2, 9);
    make(&d, made, &cohorts);
    static const struct rec_cohort wanted[] = {
        {.row = 7, .born_slice = 1, .freed_slice = REC_NONE, .blocks = 1, .bytes = 300},
        {.row = 7, .born_slice = 2, .freed_slice = 9, .blocks = 1, .bytes = 78}};
    assert_int_equal(cohorts.len, ARRAY_LEN(wanted));
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        assert_int_equal(by_place(cohorts.items + i, wanted + i), 0);
        assert_int_equal(cohorts.items[i].blocks, wanted[i].blocks);
        assert_int_equal(cohorts.items[i].bytes, wanted[i].bytes);
    }
    row_cohorts_release(made);
    free(made);
}

// Blocks are counted up to `late` steps after their birth, and never after their free.
static void cells_and_cohorts_say_the_same(void **state)
{
    (void)state;
    static const uint32_t lates[] = {0, 1, 3, 20};
    struct row_cohorts *made = calloc(1, sizeof(*made));
    assert_non_null(made);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        static struct drawn d;
        CLEANUP(rec_cohort_vec_release) struct rec_cohort_vec cohorts = {0};
        const uint32_t late = lates[round % ARRAY_LEN(lates)];
        uint64_t random = round + 1;
        memset(&d, 0, sizeof(d));
        for (size_t i = 0; i < BLOCKS; i++) {
            const uint64_t r = next_random(&random);
            const uint32_t born = (uint32_t)(r % STEPS);
            const uint32_t last = born + (uint32_t)(r >> 8) % (late + 1);
            const uint32_t counted = last < STEPS ? last : STEPS - 1;
            const uint32_t freed = counted + (uint32_t)(r >> 16) % (STEPS - counted);
            draw(&d, r >> 40 & 0xff, born, counted, (r >> 60) % 3 == 0 ? REC_NONE : freed);
        }
        make(&d, made, &cohorts);
        compare(&d, &cohorts);
    }
    row_cohorts_release(made);
    free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_block_leaves_no_bytes_without_a_block),
        cmocka_unit_test(cells_and_cohorts_say_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
