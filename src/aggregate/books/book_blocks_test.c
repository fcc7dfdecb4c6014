// SPDX-License-Identifier: MIT
// Threads allocate and free blocks at few addresses, and send what block_records.h says. The
// recorder reads their records in passes that see each lane at another moment, and learns of peaks
// late. The list is compared with a model that knows the order of all events.
#include "aggregate/books/book_blocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "aggregate/aggregator.h"
#include "aggregate/books/aggregator_book.h"
#include "base/bucket.h"
#include "base/test_support/random_numbers.h"
#include "session/books/seen_peak.h"

enum {
    THREADS = 3,
    ADDRESSES = 12, // few, so that equal blocks follow each other
    EVENTS = 3000,
    NEVER = 0,
};

struct model_block {
    struct word_block block; // its birth as a word states it
    uint64_t freed_ms;
    uint32_t born_number;
    uint32_t freed_number;
    bool is_live;
};

struct record {
    bool is_birth;
    struct word_block block;
    uint64_t freed_ms;
    uint32_t number;
};

struct lane {
    struct record records[2 * EVENTS];
    size_t written;
    size_t seen; // by the pass
    size_t read;
    bool has_row; // the recorder has read that it allocates
};

struct trial {
    struct aggregator aggregator;
    struct block_list list;
    struct book_blocks blocks;
    struct aggregator_process *process;
    struct aggregator_thread threads[THREADS];
    struct lane lanes[THREADS];
    struct model_block past[EVENTS];
    size_t past_count;
    int64_t at[ADDRESSES]; // index in past; -1: free
    uint64_t random;
    uint64_t now_ms;
    uint32_t number;    // of the latest peak, as threads know it,
    uint64_t seen_peak; // and what the recorder has published
};

static uint64_t below(struct trial *t, uint64_t limit)
{
    return next_random(&t->random) % limit;
}

static struct trial *open_trial(uint64_t seed, uint64_t start_ms)
{
    struct trial *t = calloc(1, sizeof(*t));
    assert_non_null(t);
    t->random = seed * 0x9e3779b97f4a7c15u;
    t->now_ms = start_ms;
    memset(t->at, -1, sizeof(t->at));
    assert_int_equal(aggregator_init(&t->aggregator), ERR_OK);
    t->list = (struct block_list){.seed = 11, .rows = &t->aggregator.totals.rows};
    t->blocks.list = &t->list;
    t->aggregator.blocks = &t->blocks;
    const struct rec_process record = {.pid = 1, .exit_status = -1};
    assert_int_equal(aggregator_process_begin(&t->aggregator, &record, &t->process), ERR_OK);
    for (uint32_t i = 0; i < THREADS; i++) {
        aggregator_thread_begin(&t->threads[i], t->process, i, i + 1, 0);
        assert_int_equal(aggregator_book_row(&t->threads[i], i + 1, 0, 0), ERR_OK);
    }
    return t;
}

static void close_trial(struct trial *t)
{
    book_blocks_release(&t->blocks);
    block_list_release(&t->list);
    aggregator_release(&t->aggregator);
    free(t);
}

static bool shows_younger(const struct trial *t, uint64_t stated_ms)
{
    return seen_peak_number(t->seen_peak) >= t->number && stated_ms > seen_peak_ms(t->seen_peak);
}

static void send(struct trial *t, const struct model_block *past, bool is_birth)
{
    if (shows_younger(t, past->block.birth_ms)) {
        return;
    }
    struct lane *lane = t->lanes + below(t, THREADS);
    lane = is_birth ? t->lanes + past->block.row - 1 : lane; // any thread frees it
    struct record *record = lane->records + lane->written++;
    *record = (struct record){.is_birth = is_birth,
                              .block = past->block,
                              .freed_ms = past->freed_ms,
                              .number = t->number};
    if (is_birth) {
        record->block.birth_ms = t->now_ms;
    }
}

static void allocate(struct trial *t, size_t at)
{
    static const uint64_t sizes[] = {8, 300, 5000};
    const uint64_t size_bytes = sizes[below(t, 3)];
    struct model_block *past = t->past + t->past_count;
    *past = (struct model_block){.block = {.address = (at + 1) * 8192,
                                           .size_bytes = size_bytes,
                                           .birth_ms = block_birth_stated(t->now_ms, size_bytes),
                                           .row = (uint32_t)below(t, THREADS) + 1},
                                 .born_number = t->number,
                                 .is_live = true};
    t->at[at] = (int64_t)t->past_count++;
    send(t, past, true);
}

static void give_back(struct trial *t, size_t at)
{
    struct model_block *past = t->past + t->at[at];
    t->at[at] = -1;
    past->is_live = false;
    past->freed_ms = t->now_ms;
    past->freed_number = t->number;
    send(t, past, false);
}

static void happen(struct trial *t)
{
    const size_t at = below(t, ADDRESSES);
    t->now_ms += below(t, 5) == 0;
    t->number += below(t, 30) == 0;
    if (t->at[at] >= 0) {
        give_back(t, at);
    } else if (t->past_count < EVENTS) {
        allocate(t, at);
    }
}

// The row of a lane is known when its first count of blocks has been read.
static void count_first(struct trial *t, uint32_t i)
{
    struct book_entry entry = {
        .row = i + 1, .weight = 1, .size_count = 1, .sizes = {8u << BOOK_COUNT_BITS | 1}};
    entry.size_buckets[0] = (uint8_t)bucket_of(8);
    assert_int_equal(aggregator_book_add(&t->aggregator, t->threads + i, &entry), ERR_OK);
    t->lanes[i].has_row = true;
}

static void read_record(struct trial *t, const struct record *record)
{
    struct book_blocks *blocks = &t->blocks;
    if (record->is_birth) {
        assert_int_equal(book_blocks_born(blocks, t->process, &record->block, record->number),
                         ERR_OK);
        return;
    }
    const struct freed_block freed = {.block = record->block,
                                      .freed_ms = record->freed_ms,
                                      .peak_number = record->number,
                                      .process = t->process->index,
                                      .row = REC_NONE};
    assert_int_equal(book_blocks_freed(blocks, &freed), ERR_OK);
}

// Read all lanes, each up to another moment, and the peak later. The sum's peak may be an older one
// than that which a thread knows.
static void pass(struct trial *t, bool is_last)
{
    for (uint32_t i = 0; i < THREADS; i++) {
        t->lanes[i].seen = t->lanes[i].written;
        for (uint64_t k = is_last ? 0 : below(t, 6); k > 0; k--) {
            happen(t);
        }
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        struct lane *lane = t->lanes + i;
        for (; lane->read < lane->seen; lane->read++) {
            read_record(t, lane->records + lane->read);
        }
        if (!lane->has_row && (is_last || below(t, 4) == 0)) {
            count_first(t, i);
        }
    }
    const uint64_t seen_ms = t->now_ms + below(t, 3);
    if (book_blocks_see_peak(&t->blocks, t->number, seen_ms)) {
        t->seen_peak = seen_peak(t->number, seen_ms);
    }
    uint64_t *latest = &t->aggregator.totals.rows.peak_number;
    *latest = is_last || below(t, 3) != 0 ? t->number : *latest;
    assert_int_equal(block_list_follow(&t->list, *latest), ERR_OK);
    assert_int_equal(book_blocks_end_pass(&t->aggregator, false), ERR_OK);
}

static void end(struct trial *t)
{
    struct block_shares shares = {0};
    pass(t, true);
    assert_int_equal(block_shares_of(&t->list, ADDRESSES, &shares), ERR_OK);
    for (size_t i = 0; i < t->past_count; i++) {
        if (t->past[i].is_live) {
            assert_int_equal(
                book_blocks_live(&t->aggregator, t->process, &t->past[i].block, &shares, true),
                ERR_OK);
        }
    }
    assert_int_equal(book_blocks_end_pass(&t->aggregator, true), ERR_OK);
    block_shares_release(&shares);
}

static void want(const struct trial *t, struct rec_block_vec *out)
{
    for (size_t i = 0; i < t->past_count; i++) {
        const struct model_block *past = t->past + i;
        const bool is_at_peak =
            past->born_number < t->number && (past->is_live || past->freed_number >= t->number);
        const struct rec_block block = {.address = past->block.address,
                                        .size_bytes = past->block.size_bytes,
                                        .born_ms = past->block.birth_ms,
                                        .freed_ms = past->is_live ? NEVER : past->freed_ms,
                                        .row = aggregator_book_row_of(t->process, past->block.row),
                                        .flags = (past->is_live ? REC_BLOCK_END : 0) |
                                                 (is_at_peak ? REC_BLOCK_PEAK : 0)};
        if (block.flags != 0) {
            assert_int_equal(rec_block_vec_push(out, block), ERR_OK);
        }
    }
}

static int compare(const void *left, const void *right)
{
    return memcmp(left, right, sizeof(struct rec_block));
}

static void assert_listed(const struct trial *t)
{
    struct rec_block_vec have = {0};
    struct rec_block_vec wanted = {0};
    assert_int_equal(block_list_collect(&t->list, t->number, &have), ERR_OK);
    want(t, &wanted);
    assert_int_equal(have.len, wanted.len);
    rec_block_vec_sort(&have, compare);
    rec_block_vec_sort(&wanted, compare);
    for (size_t i = 0; i < have.len; i++) {
        assert_memory_equal(have.items + i, wanted.items + i, sizeof(*have.items));
    }
    assert_int_equal(t->blocks.unnamed, 0);
    assert_int_equal(block_list_omitted(&t->list), 0);
    rec_block_vec_release(&have);
    rec_block_vec_release(&wanted);
}

static void the_list_is_that_of_a_model(void **state)
{
    (void)state;
    static const uint64_t hours_ms = (uint64_t)50 * 3600 * 1000; // births are not exact any more
    for (uint64_t seed = 1; seed <= 120; seed++) {
        struct trial *t = open_trial(seed, seed % 2 != 0 ? 1 : hours_ms);
        while (t->past_count < EVENTS / 4 + seed * 8) {
            for (uint64_t k = below(t, 40); k > 0; k--) {
                happen(t);
            }
            pass(t, false);
        }
        end(t);
        assert_listed(t);
        close_trial(t);
    }
}

// A program that says it freed blocks of stacks that no thread has.
static void blocks_without_a_stack_are_counted(void **state)
{
    (void)state;
    struct trial *t = open_trial(1, 1);
    const struct record record = {.block = {.address = 64, .size_bytes = 8, .row = 9}, .number = 1};
    read_record(t, &record);
    t->number = 1;
    pass(t, true);
    assert_int_equal(book_blocks_end_pass(&t->aggregator, true), ERR_OK);
    assert_int_equal(t->blocks.unnamed, 1);
    close_trial(t);
}

// A row lists no more blocks than it has counted: a killed thread may not have counted its last.
static void uncounted_blocks_are_removed(void **state)
{
    (void)state;
    struct rec_row rows[] = {{.allocations = 2, .frees = 1, .peak_blocks = 1},
                             {.allocations = 1, .peak_blocks = 2}};
    const struct row_table table = {.rows = {.items = rows, .len = 2}};
    struct rec_block_vec blocks = {0};
    static const struct rec_block listed[] = {
        {.address = 1, .row = 0, .flags = REC_BLOCK_END | REC_BLOCK_PEAK},
        {.address = 2, .row = 0, .flags = REC_BLOCK_END},
        {.address = 3, .row = 0, .flags = REC_BLOCK_PEAK},
        {.address = 4, .row = 1, .flags = REC_BLOCK_END},
        {.address = 5, .row = 1, .flags = REC_BLOCK_END | REC_BLOCK_PEAK},
    };
    for (size_t i = 0; i < sizeof(listed) / sizeof(*listed); i++) {
        assert_int_equal(rec_block_vec_push(&blocks, listed[i]), ERR_OK);
    }
    assert_int_equal(block_list_clip(&table, &blocks), 3);
    assert_int_equal(blocks.len, 2);
    assert_int_equal(blocks.items[0].flags, REC_BLOCK_END | REC_BLOCK_PEAK);
    assert_int_equal(blocks.items[1].address, 4);
    rec_block_vec_release(&blocks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_is_that_of_a_model),
        cmocka_unit_test(blocks_without_a_stack_are_counted),
        cmocka_unit_test(uncounted_blocks_are_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
