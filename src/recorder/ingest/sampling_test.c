// SPDX-License-Identifier: MIT
// Sampling from end to end: random threads choose blocks and keep books of them in a session whose
// recorder adds them up. The aggregator's figures are compared with the threads' events.
//
// Nothing here depends on time: the recorder's passes and the threads' levels are steps of the
// stream, and all seeds are fixed. Repeating streams with other random numbers shows that the
// estimates are unbiased: the mean error of each figure has to be within a few of its own standard
// errors, which must be small.
#include "target/producer/byte_sampler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "aggregate/books/aggregator_book.h"
#include "base/compiler.h"
#include "base/page.h"
#include "base/test_support/by_night.h"
#include "base/test_support/random_numbers.h"
#include "recorder/ingest/drain.h"
#include "recorder/ingest/drain_books.h"
#include "recorder/ingest/test_session.h"
#include "target/producer/book/block_choice.h"
#include "target/producer/entry/lane_entry.h"

enum {
    LANES = 2,
    KINDS = 6,
    ADDRESSES = 60000, // of one lane
    EVENTS = 100000,
    REPETITIONS = 30,
    TICK_EVENTS = 500,
    LEVEL_EVENTS = 100, // until a lane's level changes
    LEVELS = 7,
    LIFE_MAX = 30000,
    NOBODY = UINT32_MAX,
    PEAK_SEEDS = 20,
    PEAK_SEEDS_MAX = 1000,
};

// The allocations of one stack.
struct kind {
    uint32_t share;       // how often, of 64
    uint64_t size_bytes;  // up to twice that
    uint32_t life_events; // at most; 0: freed at once, LIFE_MAX + 1: never
    bool moves;           // is reallocated at the end of its life, and then lives as long again
};

static const struct stream {
    const char *name;
    uint32_t lane_count;
    uint32_t pass_events;  // events between passes on average
    uint64_t sample_bytes; // as --sample; 0: the level changes
    struct kind kinds[KINDS];
} streams[] = {
    {"random, one thread",
     1,
     1000,
     0,
     {{24, 16, 200, false},
      {16, 40, 20000, true},
      {12, 200, 0, false},
      {6, 5000, 3000, false},
      {2, 70000, 50, false},
      {4, 24, LIFE_MAX + 1, false}}},
    {"random, two threads",
     2,
     1000,
     4096,
     {{24, 16, 200, false},
      {16, 40, 20000, true},
      {12, 200, 0, false},
      {6, 5000, 3000, false},
      {2, 70000, 50, false},
      {4, 24, LIFE_MAX + 1, false}}},
    // Values of many keys are replaced, so as much is freed as allocated.
    {"a key-value store",
     1,
     1000,
     0,
     {{28, 24, 30000, false},
      {24, 16, 0, false},
      {4, 40, LIFE_MAX + 1, false},
      {4, 200, 100, false},
      {3, 16000, 300, false},
      {1, 2000, LIFE_MAX + 1, false}}},
    // The heap grows to the end, and most blocks are temporary.
    {"a compiler",
     1,
     1000,
     0,
     {{30, 50, 0, false},
      {10, 64, LIFE_MAX + 1, false},
      {6, 4000, LIFE_MAX + 1, false},
      {12, 32, 2000, false},
      {4, 500, 20000, true},
      {2, 8000, 30000, false}}},
    // The heap is small, and one block may stand for more than all of it.
    {"a small heap",
     2,
     1000,
     1024,
     {{40, 60, 2000, false},
      {20, 120, 400, false},
      {1, 16, 0, false},
      {1, 1000, 2000, false},
      {1, 300, 5, false},
      {1, 8, 30, false}}},
};

struct figures {
    double allocations;
    double bytes;
    double frees;
    double freed_bytes;
    double temporary;
    double live_bytes;
};
#define FIGURES (sizeof(struct figures) / sizeof(double))

struct block {
    uint64_t size_bytes;
    uint32_t address; // index
    uint32_t lane;
    uint32_t kind;
    uint32_t next; // of those that die at the same event
    bool has_moved;
};

struct fixture {
    struct test_session on;
    struct process_words *words;
    struct lane_producer lanes[LANES];
    struct block_choice choices[LANES];
    uint32_t rows[LANES][KINDS];
    uint32_t levels_max;
    uint32_t next_level; // that is due; UINT32_MAX: none
    uint32_t next_lane;  // whose turn it is
    uint64_t clock_ms;
    uint64_t random;
    // The threads' own heap. Addresses that were freed last are used first, as allocators do.
    struct block *blocks;
    uint32_t block_count;
    uint32_t *deaths; // by event: the first block that dies then
    uint32_t free_addresses[LANES][KINDS][ADDRESSES];
    uint32_t free_count[LANES][KINDS];
    struct figures truth[KINDS];
    uint64_t live_bytes; // and its peak, exactly
    uint64_t peak_bytes;
    const struct block *latest[LANES]; // that the lane's latest event allocated
    uint32_t lane_count;
    const struct kind *kinds;
};

// Blocks of one lane and kind are beside each other, and do not overlap.
static uint64_t address_of(const struct fixture *f, const struct block *block)
{
    const uint64_t step = (2 * f->kinds[block->kind].size_bytes + 160) / 32 * 32;
    return ((uint64_t)(1 + block->lane * KINDS + block->kind) << 40) + block->address * step;
}

static void open_lane(struct fixture *f, uint32_t process, uint32_t number, uint64_t seed)
{
    struct lane_producer *p = f->lanes + number;
    test_session_add_lane(&f->on, process, p);
    book_begin(p, f->words, f->rows[number]);
    block_choice_init(f->choices + number, p, seed * LANES + number);
    assert_true(lane_enter(p));
    test_session_define_stacks(p, KINDS);
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        assert_true(book_define_row(p, kind));
        for (uint32_t address = 0; address < ADDRESSES; address++) {
            f->free_addresses[number][kind][address] = ADDRESSES - 1 - address;
        }
        f->free_count[number][kind] = ADDRESSES;
    }
}

static void open_fixture(struct fixture *f, uint64_t seed, const struct stream *stream)
{
    memset(f, 0, sizeof(*f));
    f->clock_ms = 1;
    f->random = 0x9e3779b97f4a7c15ULL;
    f->lane_count = stream->lane_count;
    f->kinds = stream->kinds;
    f->levels_max = stream->sample_bytes == 0 ? LEVELS : 0;
    f->next_level = UINT32_MAX;
    test_session_open(&f->on, 0);
    f->on.session.header->sample_bytes = stream->sample_bytes;
    f->on.aggregator.sample_bytes = stream->sample_bytes;
    const uint32_t process = test_session_add_process(&f->on);
    f->words = test_session_open_words(&f->on);
    assert_non_null(f->words);
    for (uint32_t i = 0; i < stream->lane_count; i++) {
        open_lane(f, process, i, seed);
    }
    f->blocks = calloc(EVENTS + LIFE_MAX, sizeof(*f->blocks));
    f->deaths = malloc((EVENTS + LIFE_MAX + 2) * sizeof(*f->deaths));
    if (f->blocks == NULL || f->deaths == NULL) {
        abort();
    }
    memset(f->deaths, 0xff, (EVENTS + LIFE_MAX + 2) * sizeof(*f->deaths));
}

// The words of a process stay as long as it does.
static void unmap_words(const struct process_words *words)
{
    for (uint32_t i = 0; i < WORDS_WINDOWS_MAX; i++) {
        void *room = (void *)grain_start(atomic_load(words->windows + i));
        if (room != NULL) {
            assert_int_equal(munmap(room, WORDS_GROUP * sizeof(struct words_region)), 0);
        }
    }
}

static void close_fixture(struct fixture *f)
{
    unmap_words(f->words);
    test_session_close(&f->on);
    free(f->blocks);
    free(f->deaths);
}

static void pass(struct fixture *f, bool is_last)
{
    bool was_busy;
    drain_find_dead(&f->on.drain);
    drain_note_time(&f->on.drain, f->clock_ms, f->clock_ms * 1000000);
    assert_int_equal(drain_pass(&f->on.drain, f->clock_ms, is_last, &was_busy), ERR_OK);
    assert_int_equal(row_table_count(&f->on.aggregator.totals.rows), ERR_OK);
}

static void tick(struct fixture *f)
{
    atomic_store(&f->on.session.header->clock_ms, ++f->clock_ms);
}

// Change the level of the ring or that of memory, if that is due. The recorder does it at any
// moment; the worst one is before a block with a moment, which the thread looks at.
static void change_levels(struct fixture *f, const struct block *block)
{
    const struct byte_sampler *sampler = &f->choices[block->lane].sampler;
    struct lane_producer *p = f->lanes + block->lane;
    if (f->next_level == UINT32_MAX || f->next_lane != block->lane ||
        block->size_bytes < byte_sampler_budget(sampler, p->lane)) {
        return;
    }
    atomic_store(&f->on.session.header->memory_level, f->next_level % 2 == 0 ? f->next_level : 0);
    p->level = f->next_level % 2 == 0 ? 0 : f->next_level;
    f->next_level = UINT32_MAX;
}

// As src/target/preload/record/record_sampled.c does it.
static void record_block(struct fixture *f, const struct block *block)
{
    struct lane_producer *p = f->lanes + block->lane;
    struct block_choice *choice = f->choices + block->lane;
    assert_true(lane_enter(p));
    change_levels(f, block);
    // The thread passes the blocks before the next moment, and sees no level meanwhile.
    if (block->size_bytes < byte_sampler_budget(&choice->sampler, p->lane)) {
        byte_sampler_count(p->lane, block->size_bytes);
        lane_forget_latest(p);
        return;
    }
    uint32_t level;
    if (!block_choice_takes(choice, p, block->size_bytes, &level)) {
        lane_forget_latest(p);
        return;
    }
    p->row_level = level;
    assert_true(lane_allocate_chosen(p, address_of(f, block), block->size_bytes, block->kind));
}

static void record_end(struct fixture *f, const struct block *block, uint32_t lane)
{
    struct lane_producer *p = f->lanes + lane;
    assert_true(lane_enter(p));
    const struct word_block taken = book_take(f->words, address_of(f, block));
    if (taken.row == 0) {
        lane_forget_latest(p);
        return;
    }
    assert_true(book_count_freed(p, &taken));
}

static void put_address(struct fixture *f, const struct block *block)
{
    uint32_t *count = &f->free_count[block->lane][block->kind];
    f->free_addresses[block->lane][block->kind][(*count)++] = block->address;
}

static void kill_block(struct fixture *f, struct block *block, uint32_t lane)
{
    struct figures *truth = f->truth + block->kind;
    truth->frees++;
    truth->freed_bytes += (double)block->size_bytes;
    f->live_bytes -= block->size_bytes;
    truth->temporary += f->latest[lane] == block;
    f->latest[lane] = NULL;
    record_end(f, block, lane);
    put_address(f, block);
}

static void make_block(struct fixture *f, struct block *block, uint32_t event)
{
    const struct kind *kind = f->kinds + block->kind;
    uint32_t *count = &f->free_count[block->lane][block->kind];
    assert_true(*count > 0);
    block->address = f->free_addresses[block->lane][block->kind][--*count];
    f->truth[block->kind].allocations++;
    f->truth[block->kind].bytes += (double)block->size_bytes;
    f->live_bytes += block->size_bytes;
    f->peak_bytes = f->live_bytes > f->peak_bytes ? f->live_bytes : f->peak_bytes;
    f->latest[block->lane] = block;
    record_block(f, block);
    if (kind->life_events == 0) {
        kill_block(f, block, block->lane);
    } else if (kind->life_events <= LIFE_MAX) {
        const uint32_t death = event + 1 + (uint32_t)(next_random(&f->random) % kind->life_events);
        block->next = f->deaths[death];
        f->deaths[death] = (uint32_t)(block - f->blocks);
    }
}

static uint32_t choose_kind(struct fixture *f)
{
    uint32_t left = (uint32_t)(next_random(&f->random) % 64);
    for (uint32_t kind = 0; kind < KINDS - 1; kind++) {
        if (left < f->kinds[kind].share) {
            return kind;
        }
        left -= f->kinds[kind].share;
    }
    return KINDS - 1;
}

static void end_lives(struct fixture *f, uint32_t event)
{
    uint32_t next;
    for (uint32_t i = f->deaths[event]; i != NOBODY; i = next) {
        struct block *block = f->blocks + i;
        next = block->next;
        const bool is_foreign = next_random(&f->random) % 16 == 0 && f->lane_count > 1;
        kill_block(f, block, is_foreign ? 1 - block->lane : block->lane);
        if (f->kinds[block->kind].moves && !block->has_moved && !is_foreign) {
            block->has_moved = true;
            block->size_bytes += 100;
            make_block(f, block, event);
        }
    }
}

static void run_stream(struct fixture *f, uint32_t pass_events)
{
    uint32_t next_pass = pass_events;
    for (uint32_t event = 0; event < EVENTS; event++) {
        struct block *block = f->blocks + f->block_count++;
        block->kind = choose_kind(f);
        block->lane = (uint32_t)(next_random(&f->random) % f->lane_count);
        block->size_bytes = f->kinds[block->kind].size_bytes +
                            next_random(&f->random) % f->kinds[block->kind].size_bytes;
        make_block(f, block, event);
        end_lives(f, event);
        if (event % TICK_EVENTS == 0) {
            tick(f);
        }
        if (event % LEVEL_EVENTS == 0 && f->levels_max != 0) {
            f->next_lane = (uint32_t)(next_random(&f->random) % f->lane_count);
            f->next_level = (uint32_t)(next_random(&f->random) % f->levels_max);
        }
        if (event == next_pass) {
            pass(f, false);
            next_pass += pass_events / 2 + (uint32_t)(next_random(&f->random) % (pass_events | 1));
        }
    }
    tick(f);
    for (uint32_t i = 0; i < f->lane_count; i++) {
        assert_true(lane_flush(f->lanes + i));
        book_end(f->lanes + i);
        lane_producer_close(f->lanes + i);
    }
    pass(f, true);
    assert_int_equal(f->on.aggregator.processes.items[0]->debts.len, 0);
    assert_int_equal(row_table_count(&f->on.aggregator.totals.rows), ERR_OK);
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        f->truth[kind].live_bytes = f->truth[kind].bytes - f->truth[kind].freed_bytes;
    }
}

// Return the aggregator's figures of one kind, over all threads.
static struct figures estimate_of(const struct fixture *f, uint32_t kind)
{
    struct figures sum = {0};
    for (size_t i = 0; i < f->on.aggregator.totals.rows.rows.len; i++) {
        const struct rec_row *row = f->on.aggregator.totals.rows.rows.items + i;
        const struct rec_node *node = f->on.aggregator.stacks.nodes.items + row->node;
        if (f->on.aggregator.stacks.frames.items[node->frame].offset != 0x1000 + kind) {
            continue;
        }
        sum.allocations += (double)row->allocations;
        sum.bytes += (double)row->allocated_bytes;
        sum.frees += (double)row->frees;
        sum.freed_bytes += (double)row->freed_bytes;
        sum.temporary += (double)row->temporary;
        sum.live_bytes += (double)(row->allocated_bytes - row->freed_bytes);
    }
    return sum;
}

// Check the figures that are exact although blocks are unsampled.
static void check_exact(const struct fixture *f)
{
    uint64_t allocations = 0;
    uint64_t bytes = 0;
    const struct aggregator_sampling *sampling = &f->on.aggregator.sampling;
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        allocations += (uint64_t)f->truth[kind].allocations;
        bytes += (uint64_t)f->truth[kind].bytes;
    }
    assert_int_equal(f->on.aggregator.totals.sums.allocations - sampling->represented_allocations +
                         sampling->unsampled_allocations,
                     allocations);
    assert_int_equal(f->on.aggregator.totals.sums.allocated_bytes - sampling->represented_bytes +
                         sampling->unsampled_bytes,
                     bytes);
    assert_int_equal(f->on.aggregator.unknown_frees, 0);
    assert_int_equal(atomic_load(&f->on.session.header->counters[NOTE_producer_waits]), 0);
}

// Check that the sums over rows, the aggregator's own, and the list of blocks agree.
static void check_consistent(struct fixture *f)
{
    uint64_t live_bytes = 0;
    uint64_t live_blocks = 0;
    for (size_t i = 0; i < f->on.aggregator.totals.rows.rows.len; i++) {
        const struct rec_row *row = f->on.aggregator.totals.rows.rows.items + i;
        assert_true(row->frees <= row->allocations && row->freed_bytes <= row->allocated_bytes);
        live_bytes += row->allocated_bytes - row->freed_bytes;
        live_blocks += row->allocations - row->frees;
    }
    CLEANUP(listed_block_vec_release) struct listed_block_vec listed = {0};
    const struct aggregator_process *process = f->on.aggregator.processes.items[0];
    assert_int_equal(drain_books_list_blocks(&f->on.drain, process, NULL, NULL, &listed), ERR_OK);
    uint64_t listed_bytes = 0;
    uint64_t listed_blocks = 0;
    for (size_t i = 0; i < listed.len; i++) {
        listed_bytes += listed.items[i].size_bytes * listed.items[i].weight;
        listed_blocks += listed.items[i].weight;
    }
    assert_int_equal(live_bytes, f->on.aggregator.totals.sums.live_bytes);
    assert_int_equal(live_blocks, f->on.aggregator.totals.live_blocks);
    assert_int_equal(live_bytes, listed_bytes);
    assert_int_equal(live_blocks, listed_blocks);
}

// The errors of one figure over all repetitions.
struct errors {
    double sum;
    double squares;
    double truth;
    double whole; // of the kind: what the figure is a part of
};

static void add_errors(struct errors *errors, const struct figures *is, const struct figures *truth)
{
    double values[2][FIGURES];
    memcpy(values[0], is, sizeof(*is));
    memcpy(values[1], truth, sizeof(*truth));
    for (size_t i = 0; i < FIGURES; i++) {
        const double error = values[0][i] - values[1][i];
        errors[i].sum += error;
        errors[i].squares += error * error;
        errors[i].truth = values[1][i];
        const bool is_bytes = i == 1 || i == 3 || i == 5;
        errors[i].whole = is_bytes ? truth->bytes : truth->allocations;
    }
}

static void check_unbiased(const struct errors *errors, uint32_t kind, size_t figure)
{
    enum {
        SIGMAS = 5
    };
    const double mean = errors->sum / REPETITIONS;
    const double variance = (errors->squares - errors->sum * mean) / (REPETITIONS - 1);
    const double standard_error = sqrt(variance > 0 ? variance / REPETITIONS : 0);
    // All repetitions together may not have met a kind that is rarer than a block's weight.
    const double rare = errors->whole / 500;
    if (fabs(mean) > SIGMAS * standard_error + rare) {
        fail_msg("kind %u, figure %zu: %g too much on average, standard error %g, truth %g", kind,
                 figure, mean, standard_error, errors->truth);
    }
    if (standard_error > 0.1 * errors->whole) {
        fail_msg("kind %u, figure %zu: standard error %g says nothing of %g", kind, figure,
                 standard_error, errors->whole);
    }
}

// The peak of one run, as a recording would state it, compared with the exact one. The rows' shares
// are its parts.
struct peak_knowledge {
    double ratio; // to the truth
    double stated;
    bool is_covered;
};

static struct peak_knowledge know_peak(struct fixture *f)
{
    struct aggregator *aggregator = &f->on.aggregator;
    // As aggregator_snapshot.c states it. Both threads keep a part of the sum.
    const double error =
        3 * sqrt(aggregator_book_variance(aggregator)) + (double)aggregator->book_error_bytes;
    uint64_t row_bytes = 0;
    assert_int_equal(aggregator_complete_rows(aggregator), ERR_OK);
    for (uint32_t i = 0; i < aggregator->totals.rows.rows.len; i++) {
        const struct rec_row *row = aggregator->totals.rows.rows.items + i;
        row_bytes += row->peak_bytes;
        assert_true(row->own_peak_bytes >= row->peak_bytes);
    }
    assert_int_equal(row_bytes, aggregator->totals.peak_bytes);
    return (struct peak_knowledge){
        .ratio = (double)aggregator->totals.peak_bytes / (double)f->peak_bytes,
        .stated = error / (double)f->peak_bytes,
        .is_covered = fabs((double)aggregator->totals.peak_bytes - (double)f->peak_bytes) <= error,
    };
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

// CAIRN_SAMPLING_SEEDS: of each stream. By day it is a quarter of those by night.
static uint32_t peak_seeds(void)
{
    const char *count = getenv("CAIRN_SAMPLING_SEEDS");
    const int seeds = count != NULL ? atoi(count) : 0;
    return seeds > 0 && seeds <= PEAK_SEEDS_MAX ? (uint32_t)seeds : PEAK_SEEDS / step_by_day(4);
}

static void check_peaks(const struct stream *stream)
{
    static struct fixture f;
    double ratios[PEAK_SEEDS_MAX];
    double stated[PEAK_SEEDS_MAX];
    const uint32_t seeds = peak_seeds();
    uint32_t covered = 0;
    for (uint32_t i = 0; i < seeds; i++) {
        open_fixture(&f, i + 1, stream);
        run_stream(&f, stream->pass_events);
        assert_true(f.on.aggregator.sampling.unsampled_allocations > EVENTS / 20);
        const struct peak_knowledge known = know_peak(&f);
        ratios[i] = known.ratio;
        stated[i] = known.stated;
        covered += known.is_covered;
        close_fixture(&f);
    }
    qsort(ratios, seeds, sizeof(ratios[0]), compare_doubles);
    qsort(stated, seeds, sizeof(stated[0]), compare_doubles);
    print_message(
        "%s: %u of %u covered; of the true peak %.3f, %.3f to %.3f; stated %.3f to %.3f\n",
        stream->name, covered, seeds, ratios[seeds / 2], ratios[0], ratios[seeds - 1],
        stated[seeds / 2], stated[seeds - 1]);
    assert_true(covered * 100 >= seeds * 95);
    // The maximum of an estimate errs upwards, of a small heap the most.
    assert_true(ratios[seeds / 2] > 0.9 && ratios[seeds / 2] < 1.2);
    assert_true(ratios[0] > 0.75 && ratios[seeds - 1] < 1.25);
    assert_true(stated[seeds / 2] < 0.5);
}

static void the_peak_is_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        check_peaks(streams + i);
    }
}

static void estimates_are_unbiased(const struct stream *stream)
{
    static struct errors errors[KINDS][FIGURES];
    memset(errors, 0, sizeof(errors));
    uint64_t unsampled = 0;
    for (uint64_t seed = 1; seed <= REPETITIONS; seed++) {
        static struct fixture f;
        open_fixture(&f, seed, stream);
        run_stream(&f, stream->pass_events);
        check_exact(&f);
        check_consistent(&f);
        for (uint32_t kind = 0; kind < KINDS; kind++) {
            const struct figures estimate = estimate_of(&f, kind);
            add_errors(errors[kind], &estimate, f.truth + kind);
        }
        unsampled += f.on.aggregator.sampling.unsampled_allocations;
        close_fixture(&f);
    }
    assert_true(unsampled > (uint64_t)EVENTS * REPETITIONS / 10);
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        for (size_t figure = 0; figure < FIGURES; figure++) {
            check_unbiased(&errors[kind][figure], kind, figure);
        }
    }
}

static void estimates_are_unbiased_at_any_level(void **state)
{
    (void)state;
    estimates_are_unbiased(&streams[0]);
}

static void estimates_are_unbiased_with_one_interval(void **state)
{
    (void)state;
    estimates_are_unbiased(&streams[1]);
}

static void everything_is_exact_at_the_lowest_level(void **state)
{
    (void)state;
    static struct fixture f;
    open_fixture(&f, 1, &streams[0]);
    f.levels_max = 1;
    run_stream(&f, 1000);
    check_exact(&f);
    check_consistent(&f);
    assert_int_equal(f.on.aggregator.sampling.unsampled_allocations, 0);
    assert_true(aggregator_book_variance(&f.on.aggregator) == 0);
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        const struct figures estimate = estimate_of(&f, kind);
        assert_memory_equal(&estimate, f.truth + kind, sizeof(estimate));
    }
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_exact_at_the_lowest_level),
        cmocka_unit_test(estimates_are_unbiased_at_any_level),
        cmocka_unit_test(estimates_are_unbiased_with_one_interval),
        cmocka_unit_test(the_peak_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
