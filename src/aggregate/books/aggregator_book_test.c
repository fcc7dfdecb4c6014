// SPDX-License-Identifier: MIT
// Entries of books that come in an order in which a row would have had more frees than blocks.
#include "aggregate/books/aggregator_book.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "aggregate/aggregator.h"
#include "base/bucket.h"
#include "session/books/block_words.h"

enum {
    NODE = 1,
    NUMBER = 1, // of the row
};

struct part {
    uint32_t count;
    uint64_t size_bytes;
};

// What an entry says.
struct said {
    struct part allocated;
    struct part freed;
    uint32_t peak_number;
    int64_t before_bytes;
    uint32_t weight; // 0: 1
    bool is_temporary;
};

struct world {
    struct aggregator aggregator;
    struct aggregator_process *process;
    struct aggregator_thread owner;
    struct aggregator_thread other;
};

static uint64_t cell_of(const struct part *part)
{
    return part->count * part->size_bytes << BOOK_COUNT_BITS | part->count;
}

static void open_world(struct world *w)
{
    const struct rec_process what = {.pid = 100, .parent_pid = 1};
    *w = (struct world){0};
    assert_int_equal(aggregator_init(&w->aggregator), ERR_OK);
    assert_int_equal(aggregator_process_begin(&w->aggregator, &what, &w->process), ERR_OK);
    aggregator_thread_begin(&w->owner, w->process, 0, 100, 0);
    aggregator_thread_begin(&w->other, w->process, 1, 101, 0);
    assert_int_equal(aggregator_book_row(&w->owner, NUMBER, 0, NODE), ERR_OK);
}

static void add(struct world *w, struct aggregator_thread *thread, const struct said *said)
{
    struct book_entry entry = {.row = NUMBER,
                               .peak_number = said->peak_number,
                               .before_bytes = said->before_bytes,
                               .weight = said->weight != 0 ? said->weight : 1,
                               .temporary = said->is_temporary ? cell_of(&said->freed) : 0,
                               .size_count = said->allocated.count != 0,
                               .life_count = said->freed.count != 0,
                               .sizes = {cell_of(&said->allocated)},
                               .lives = {cell_of(&said->freed)}};
    entry.size_buckets[0] = (uint8_t)bucket_of(said->allocated.size_bytes);
    assert_int_equal(aggregator_book_add(&w->aggregator, thread, &entry), ERR_OK);
}

static const struct rec_row *row_of(const struct world *w)
{
    const uint32_t row = aggregator_book_row_of(w->process, NUMBER);
    assert_true(row != REC_NONE);
    return w->aggregator.totals.rows.rows.items + row;
}

static void assert_row(const struct world *w, uint64_t blocks, uint64_t bytes)
{
    const struct rec_row *row = row_of(w);
    assert_int_equal(row->allocations - row->frees, blocks);
    assert_int_equal(row->allocated_bytes - row->freed_bytes, bytes);
    assert_int_equal(w->aggregator.totals.sums.live_bytes, bytes);
}

static void settle(struct world *w)
{
    assert_int_equal(aggregator_book_settle(&w->aggregator, w->process), ERR_OK);
}

static void frees_wait_for_their_blocks(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    add(&w, &w.owner, &(struct said){.allocated = {1, 10}});
    add(&w, &w.other, &(struct said){.freed = {2, 10}});
    settle(&w);
    assert_row(&w, 1, 10);
    assert_int_equal(w.process->debts.len, 1);
    add(&w, &w.owner, &(struct said){.allocated = {2, 10}});
    settle(&w);
    assert_row(&w, 1, 10);
    assert_int_equal(w.process->debts.len, 0);
    aggregator_release(&w.aggregator);
}

// The example of the header: one lacks blocks, and the other one bytes.
static void two_entries_do_not_wait_for_each_other(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    add(&w, &w.owner, &(struct said){.allocated = {2, 10}});
    add(&w, &w.owner, &(struct said){.allocated = {1, 1000}, .freed = {4, 10}});
    add(&w, &w.owner, &(struct said){.allocated = {3, 10}, .freed = {1, 1000}});
    settle(&w);
    assert_row(&w, 1, 10);
    assert_int_equal(w.process->debts.len, 0);
    aggregator_release(&w.aggregator);
}

// What an entry did before the peak counts once, whenever its parts are counted.
static void parts_of_an_entry_have_its_share_of_the_peak(void **state)
{
    (void)state;
    const struct sum_value peak = {.sum_bytes = 1020, .peak_bytes = 1020, .number = 2};
    struct world w;
    open_world(&w);
    add(&w, &w.owner, &(struct said){.allocated = {2, 10}, .peak_number = 1});
    add(&w, &w.owner,
        &(struct said){{1, 1000}, {4, 10}, 2, 1000, 1, false}); // the frees came after it
    aggregator_book_peak(&w.aggregator, &peak, 0);
    add(&w, &w.owner, &(struct said){{3, 10}, {1, 1000}, 2, 0, 1, false});
    settle(&w);
    assert_int_equal(aggregator_complete_rows(&w.aggregator), ERR_OK);
    assert_int_equal(row_of(&w)->peak_bytes, 1020);
    aggregator_release(&w.aggregator);
}

// A chosen block stands for others in all that its row says. The free may be known first.
static void a_chosen_block_counts_as_often_as_it_weighs(void **state)
{
    (void)state;
    const struct sum_value peak = {.sum_bytes = 5600, .peak_bytes = 5600, .number = 3};
    struct world w;
    open_world(&w);
    add(&w, &w.other, &(struct said){.freed = {1, 10}, .weight = 70, .is_temporary = true});
    add(&w, &w.owner, &(struct said){.allocated = {1, 10}, .weight = 70});
    settle(&w);
    assert_row(&w, 0, 0);
    assert_int_equal(row_of(&w)->temporary, 70);
    assert_int_equal(row_of(&w)->temporary_bytes, 700);
    add(&w, &w.owner, &(struct said){.allocated = {1, 80}, .weight = 70, .peak_number = 2});
    aggregator_book_peak(&w.aggregator, &peak, 0);
    assert_true(aggregator_book_variance(&w.aggregator) == 70.0 * 69 * 80 * 80);
    add(&w, &w.other,
        &(struct said){.freed = {1, 80}, .weight = 70, .peak_number = 3}); // after the peak
    assert_row(&w, 0, 0);
    assert_true(aggregator_book_variance(&w.aggregator) == 70.0 * 69 * 80 * 80);
    assert_int_equal(aggregator_complete_rows(&w.aggregator), ERR_OK);
    assert_int_equal(row_of(&w)->peak_bytes, 5600);
    assert_int_equal(row_of(&w)->peak_blocks, 70);
    const struct aggregator_sampling *sampling = &w.aggregator.sampling;
    assert_int_equal(sampling->sampled_allocations, 2);
    assert_int_equal(sampling->represented_allocations, 2 * 69);
    assert_int_equal(sampling->represented_bytes, 69 * 90);
    assert_int_equal(sampling->max_weight, 70);
    aggregator_release(&w.aggregator);
}

// Numbers of one range are of one level.
static void a_row_is_of_the_level_of_its_range(void **state)
{
    (void)state;
    struct world w;
    open_world(&w);
    assert_int_equal(aggregator_book_row(&w.owner, WORD_RANGE_ROWS, 3, NODE), ERR_OK);
    assert_int_equal(aggregator_book_row(&w.owner, WORD_RANGE_ROWS + 1, 4, NODE), ERR_CORRUPT);
    assert_int_equal(aggregator_book_weight(&w.aggregator, w.process, WORD_RANGE_ROWS + 9, 63), 8);
    assert_int_equal(aggregator_book_weight(&w.aggregator, w.process, NUMBER, 63), 1);
    w.aggregator.sample_bytes = 6400;
    assert_int_equal(aggregator_book_weight(&w.aggregator, w.process, NUMBER, 63), 100);
    assert_int_equal(aggregator_book_weight(&w.aggregator, w.process, NUMBER, 6400), 1);
    aggregator_release(&w.aggregator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frees_wait_for_their_blocks),
        cmocka_unit_test(two_entries_do_not_wait_for_each_other),
        cmocka_unit_test(a_chosen_block_counts_as_often_as_it_weighs),
        cmocka_unit_test(a_row_is_of_the_level_of_its_range),
        cmocka_unit_test(parts_of_an_entry_have_its_share_of_the_peak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
