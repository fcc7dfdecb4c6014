// SPDX-License-Identifier: MIT
// Ends of threads beside the last pass, and in the middle of an addition to the shared sum: no
// event counts twice, and the bound of the peak has what is unknown then.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "recorder/ingest/drain_books.h"
#include "recorder/ingest/drain_lane.h"
#include "recorder/ingest/test_drain.h"
#include "target/producer/entry/lane_entry.h"

enum {
    PLAYERS = 2,
    PLACE_BYTES = 16384,
};

struct player {
    struct lane_producer producer;
    uint32_t rows[1024];
};

struct world {
    struct fixture f;
    uint32_t process;
    struct process_words *words;
    struct player players[PLAYERS];
};

// A thread begins to count, with one stack.
static struct lane_producer *open_player(struct world *w, uint32_t number)
{
    struct player *p = w->players + number;
    struct lane_header *lane;
    assert_int_equal(session_claim_lane(&w->f.on.mapping, w->process, (uint32_t)getpid(), &lane),
                     ERR_OK);
    lane_producer_init(&p->producer, w->f.on.mapping.header, lane);
    book_begin(&p->producer, w->words, p->rows);
    assert_true(lane_enter(&p->producer));
    uint64_t *frames = lane_producer_begin_stack(&p->producer, 0, WIRE_STACK_HAS_SLOT, 0, 1);
    assert_non_null(frames);
    frames[0] = 0x1000 + number;
    lane_producer_advance(&p->producer, lane_stack_words(1));
    assert_true(book_define_row(&p->producer, 0));
    lane_producer_publish(&p->producer);
    return &p->producer;
}

static struct world *open_world(void)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    open_fixture(&w->f);
    w->process = join(&w->f, (uint32_t)getpid(), 0);
    w->words = test_session_open_words(&w->f.on);
    assert_non_null(w->words);
    return w;
}

static void close_world(struct world *w)
{
    close_fixture(&w->f);
    free(w);
}

static void allocate(struct lane_producer *p, uint32_t place, uint64_t bytes)
{
    assert_true(lane_allocate(p, 0x7f0000000000 + (uint64_t)place * PLACE_BYTES, bytes, 0));
}

static void pass_once(struct world *w, bool is_last)
{
    bool was_busy;
    assert_int_equal(drain_pass(&w->f.on.drain, w->f.clock_ms, is_last, &was_busy), ERR_OK);
}

// A thread ends in the milliseconds of the last pass, after its book was taken: what it sends then
// has been counted.
static void what_is_sent_after_the_last_look_counts_once(void **state)
{
    (void)state;
    enum {
        BLOCKS = 7,
        BYTES = 999,
    };
    struct world *w = open_world();
    struct drain *drain = &w->f.on.drain;
    struct lane_producer *p = open_player(w, 0);
    pass_once(w, false);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        allocate(p, i, BYTES);
    }
    assert_int_equal(drain_lane_relieve(drain, drain->lanes[drain->active[0]], true), ERR_OK);
    assert_true(lane_flush(p)); // it had not seen the end
    book_end(p);
    lane_producer_close(p);
    pass_once(w, true);
    assert_int_equal(drain->aggregator->totals.sums.live_bytes, BLOCKS * BYTES);
    assert_int_equal(drain->aggregator->totals.rows.rows.items[0].allocations, BLOCKS);
    assert_int_equal(shared_sum_read(&drain->session->header->sum).sum_bytes, BLOCKS * BYTES);
    close_world(w);
}

// A thread that sees the end leaves its book to the last pass.
static void a_thread_sends_nothing_after_the_end(void **state)
{
    (void)state;
    struct world *w = open_world();
    struct lane_producer *p = open_player(w, 0);
    allocate(p, 0, 999);
    atomic_store(&w->f.on.session.header->state, SESSION_ENDED);
    const uint64_t pos = p->lane->write_pos;
    assert_false(lane_flush(p));
    assert_false(lane_recover(p));
    assert_int_equal(p->lane->write_pos, pos);
    pass_once(w, true);
    assert_int_equal(w->f.on.aggregator.totals.sums.live_bytes, 999);
    assert_int_equal(w->f.on.aggregator.book_peak_bytes, 999);
    close_world(w);
}

// A thread is killed between its addition to the sum and the store after it, or before: the peak
// with the part, or without it, is within the bound, and the part is not added again.
static void a_part_that_may_be_added_is_in_the_bound(void **state)
{
    (void)state;
    enum {
        OTHERS_BYTES = 5000,
        PART_BYTES = 900000,
    };
    for (int is_added = 0; is_added < 2; is_added++) {
        struct world *w = open_world();
        struct shared_sum *sum = &w->f.on.session.header->sum;
        struct lane_producer *killed = open_player(w, 0);
        allocate(open_player(w, 1), 0, OTHERS_BYTES);
        struct sum_part *part = &killed->lane->sum_part;
        part->unsent_bytes = PART_BYTES;
        part->is_sending = 1;
        struct sum_part copy = *part;
        if (is_added != 0) {
            (void)shared_sum_send(sum, &copy);
        }
        const struct sum_value before = shared_sum_read(sum);
        drain_books_end_lane(&w->f.on.drain, killed->lane);
        const struct sum_value after = shared_sum_read(sum);
        assert_int_equal(after.sum_bytes, before.sum_bytes);
        assert_int_equal(after.peak_bytes, before.peak_bytes);
        assert_in_range(after.peak_bytes + shared_sum_error(sum, &after), OTHERS_BYTES + PART_BYTES,
                        UINT64_MAX);
        close_world(w);
    }
}

// A thread that left the addition by longjmp counts on, and its part is not added twice.
static void a_part_that_was_left_half_way_is_in_the_bound(void **state)
{
    (void)state;
    struct world *w = open_world();
    struct shared_sum *sum = &w->f.on.session.header->sum;
    struct lane_producer *p = open_player(w, 0);
    p->lane->sum_part.unsent_bytes = 900000;
    p->lane->sum_part.is_sending = 1;
    assert_true(lane_recover(p));
    allocate(p, 0, 5000);
    assert_true(lane_flush(p));
    const struct sum_value value = shared_sum_read(sum);
    assert_int_equal(value.sum_bytes, 5000);
    assert_in_range(value.peak_bytes + shared_sum_error(sum, &value), 900000, UINT64_MAX);
    close_world(w);
}

// A thread that was alone finds at a free that it is not: what it adds then is its process's, too.
static void what_a_thread_adds_at_a_free_is_in_its_share(void **state)
{
    (void)state;
    struct world *w = open_world();
    struct lane_producer *p = open_player(w, 0);
    for (uint32_t i = 0; i < 3; i++) {
        allocate(p, i, 9000);
    }
    allocate(p, 3, 500); // it stays in the part, above the peak
    (void)open_player(w, 1);
    assert_true(lane_free(p, 0x7f0000000000));
    assert_true(lane_flush(p));
    const int64_t sum_bytes = shared_sum_read(&w->f.on.session.header->sum).sum_bytes;
    assert_int_equal(sum_bytes, 18500);
    assert_int_equal(words_share_take_bytes(w->f.on.session.words->shares + w->process), sum_bytes);
    close_world(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_after_the_last_look_counts_once),
        cmocka_unit_test(a_thread_sends_nothing_after_the_end),
        cmocka_unit_test(a_part_that_may_be_added_is_in_the_bound),
        cmocka_unit_test(a_part_that_was_left_half_way_is_in_the_bound),
        cmocka_unit_test(what_a_thread_adds_at_a_free_is_in_its_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
