// SPDX-License-Identifier: MIT
// Tests of growth verdicts: programs of known behaviour, simulated with a test clock, in runs of
// three lengths, with and without noise.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "host/text/strbuf.h"
#include "profile/growth/growth.h"
#include "profile/growth/growth_shape.h"
#include "recording/test_support/recording_text.h"

enum {
    BLOCKS_MAX = 40000,
    TICKS = 4, // of the clock to a slice
    NEVER = -1,
    SLICE_MS = 100, // of drawn recordings
    SEEDS = 8,
    TICKS_MAX = 1000 * TICKS,
};

struct block {
    int born; // slices
    int freed;
    unsigned bytes;
    int due_later; // one more than the next block that is freed in the same tick; 0: none
};

// One run of a program.
struct play {
    struct block blocks[BLOCKS_MAX];
    int count;
    int due[TICKS_MAX]; // of each tick, one more than a block that is freed in it; 0: none
    int ticks;          // of the whole run
    int now;            // the current tick
    bool is_noisy;
    unsigned long random;
};

static unsigned below(struct play *play, unsigned limit)
{
    play->random = play->random * 6364136223846793005UL + 1442695040888963407UL;
    return (unsigned)(play->random >> 33) % limit;
}

// The elapsed part of the run, in thousandths.
static int at(const struct play *play)
{
    return (int)((long)play->now * 1000 / play->ticks);
}

static bool is_between(const struct play *play, int from, int to)
{
    return at(play) >= from && at(play) < to;
}

// Whether the tick is the first in its `of`-th part of the run.
static bool is_step(const struct play *play, int of)
{
    return play->now == 0 ||
           (long)play->now * of / play->ticks != (long)(play->now - 1) * of / play->ticks;
}

static int allocate(struct play *play, unsigned bytes)
{
    assert_true(play->count < BLOCKS_MAX);
    if (play->is_noisy) {
        bytes = bytes * (75 + below(play, 51)) / 100;
    }
    play->blocks[play->count] =
        (struct block){.born = play->now / TICKS, .freed = NEVER, .bytes = bytes + 1};
    return play->count++;
}

// Allocate a block that lives for `ticks`.
static void lend(struct play *play, unsigned bytes, int ticks)
{
    const int block = allocate(play, bytes);
    if (play->now + ticks < play->ticks) {
        int *due = &play->due[play->now + ticks];
        play->blocks[block].due_later = *due;
        *due = block + 1;
    }
}

static void give_back(struct play *play, int block)
{
    if (play->blocks[block].freed == NEVER) {
        play->blocks[block].freed = play->now / TICKS;
    }
}

static void give_back_all(struct play *play)
{
    for (int i = 0; i < play->count; i++) {
        give_back(play, i);
    }
}

// Free the oldest live block, or another one by `choice`.
static void evict(struct play *play, unsigned choice)
{
    for (int i = 0; i < play->count; i++) {
        if (play->blocks[i].freed == NEVER && choice-- == 0) {
            give_back(play, i);
            return;
        }
    }
}

static unsigned live_count(const struct play *play)
{
    unsigned count = 0;
    for (int i = 0; i < play->count; i++) {
        count += play->blocks[i].freed == NEVER;
    }
    return count;
}

static void leak(struct play *play)
{
    allocate(play, 100);
}

static void leak_from_the_middle(struct play *play)
{
    if (at(play) >= 500) {
        allocate(play, 100);
    }
}

static void leak_in_the_last_quarter(struct play *play)
{
    if (at(play) >= 750) {
        allocate(play, 100);
    }
}

static void leak_now_and_then(struct play *play)
{
    if (is_step(play, 12)) {
        allocate(play, 100);
    }
}

static void leak_faster_and_faster(struct play *play)
{
    allocate(play, (unsigned)at(play));
}

static void leak_in_steps(struct play *play)
{
    for (int i = 0; i < 10 && is_step(play, 10); i++) {
        allocate(play, 100);
    }
}

static void leak_a_little_and_step(struct play *play)
{
    allocate(play, 10);
    if (is_between(play, 950, 970)) {
        allocate(play, 10000);
    }
}

static void leak_by_day(struct play *play)
{
    if (at(play) < 300 || at(play) >= 600) {
        allocate(play, 100);
    }
}

static void leak_on_a_base(struct play *play)
{
    if (play->now < 2) {
        allocate(play, (unsigned)play->ticks * 100);
    }
    allocate(play, 10);
}

static void leak_under_work(struct play *play)
{
    lend(play, 2000, 2 + (int)below(play, 6));
    allocate(play, 100);
}

static void leak_between_teeth(struct play *play)
{
    lend(play, 100, play->ticks / 10 - play->now % (play->ticks / 10));
    if (play->now % 4 == 0) {
        allocate(play, 100);
    }
}

static void late_leak_under_work(struct play *play)
{
    lend(play, 100, 3);
    if (at(play) >= 600) {
        allocate(play, 100);
    }
}

static void fill_to_two_fifths(struct play *play)
{
    if (at(play) < 400) {
        allocate(play, 1000);
    }
}

static void fill_to_a_quarter(struct play *play)
{
    if (at(play) < 250) {
        allocate(play, 1000);
    }
}

static void fill_to_four_fifths(struct play *play)
{
    if (at(play) < 800) {
        allocate(play, 1000);
    }
}

static void start_pause_and_fill(struct play *play)
{
    if (play->now < 2 || is_between(play, 270, 860)) {
        allocate(play, 1000);
    }
}

static void fill_in_the_middle(struct play *play)
{
    if (is_between(play, 160, 490)) {
        allocate(play, 100);
    }
}

static void double_a_table(struct play *play)
{
    static int table;
    static unsigned bytes;
    if (play->now == 0) {
        bytes = 16;
        table = allocate(play, bytes);
    } else if (at(play) < 300 && (unsigned)(play->now * 1000) > bytes) {
        const int old = table;
        bytes *= 2;
        table = allocate(play, bytes);
        give_back(play, old);
    }
}

static void start(struct play *play)
{
    if (at(play) < 50) {
        allocate(play, 1000);
    }
}

static void start_and_work(struct play *play)
{
    if (at(play) < 50) {
        allocate(play, 5000);
    }
    lend(play, 10, 1 + (int)below(play, 5));
}

static void start_and_shrink(struct play *play)
{
    if (play->now < 4) {
        for (int i = 0; i < 50; i++) {
            allocate(play, 100);
        }
    } else if (is_step(play, 100)) {
        evict(play, 0);
    }
}

static void cache_that_drops_the_oldest(struct play *play)
{
    allocate(play, 1000);
    if (live_count(play) > (unsigned)play->ticks / 5) {
        evict(play, 0);
    }
}

static void cache_that_drops_any(struct play *play)
{
    allocate(play, 1000);
    if (live_count(play) > (unsigned)play->ticks / 5) {
        evict(play, below(play, live_count(play)));
    }
}

static void cache_of_a_few(struct play *play)
{
    allocate(play, 1000);
    if (live_count(play) > 3) {
        evict(play, 0);
    }
}

static void cache_on_a_base(struct play *play)
{
    if (play->now == 0) {
        allocate(play, 5000);
    }
    lend(play, 1000, play->ticks / 12);
}

static void cache_that_then_idles(struct play *play)
{
    if (at(play) < 600) {
        cache_that_drops_the_oldest(play);
    }
}

static void sessions(struct play *play)
{
    for (int i = 0; i < 4; i++) {
        lend(play, 100, 1 + (int)below(play, (unsigned)play->ticks / 8));
    }
}

static void work(struct play *play)
{
    lend(play, 100, TICKS + (int)below(play, 2 * TICKS));
}

static void teeth(struct play *play)
{
    if (play->now % (play->ticks * 2 / 11) == 0) {
        give_back_all(play);
    }
    allocate(play, 100);
}

static void long_teeth(struct play *play)
{
    if (is_step(play, 1) || (at(play) >= 620 && at(play) < 620 + 1000 / play->ticks + 1)) {
        give_back_all(play);
    }
    allocate(play, 100);
}

static void teeth_on_a_base(struct play *play)
{
    if (play->now == 0) {
        allocate(play, 30000);
    }
    lend(play, 100, play->ticks / 6 - play->now % (play->ticks / 6));
}

static void bursts(struct play *play)
{
    const int period = play->ticks / 8;
    const int phase = (play->ticks - 1 - play->now) % period; // the last period ends with the run
    if (phase * 8 < period) {
        allocate(play, 1000);
    } else {
        give_back_all(play);
    }
}

static void once(struct play *play)
{
    if (play->now == play->ticks / 2) {
        allocate(play, 1000);
    }
}

static void results(struct play *play)
{
    if (play->now >= play->ticks - 2 * TICKS) {
        allocate(play, 1000);
    }
}

static void fill_slower_and_slower(struct play *play)
{
    if (at(play) < 540 && below(play, 1000) < 1000U >> (at(play) / 60)) {
        allocate(play, 100);
    }
}

// As a program that gets less of the processor at the end.
static void leak_slower_at_the_end(struct play *play)
{
    if (at(play) < 750 || play->now % 5 == 0) {
        allocate(play, 100);
    }
}

#define IS(class) (1U << GROWTH_##class)

static const struct pattern {
    const char *name;
    void (*play)(struct play *play);
    unsigned classes; // the accepted ones
} patterns[] = {
#define PATTERN(name, classes) \
    {                          \
#        name, name, classes   \
    }
    PATTERN(leak, IS(GROWING)),
    PATTERN(leak_from_the_middle, IS(GROWING)),
    PATTERN(leak_in_the_last_quarter, IS(GROWING)),
    PATTERN(leak_now_and_then, IS(GROWING)),
    PATTERN(leak_faster_and_faster, IS(GROWING)),
    PATTERN(leak_in_steps, IS(GROWING)),
    PATTERN(leak_a_little_and_step, IS(GROWING) | IS(LATE)), // of the step alone, in short runs
    PATTERN(leak_by_day, IS(GROWING)),
    PATTERN(leak_on_a_base, IS(GROWING)),
    PATTERN(leak_under_work, IS(GROWING)),
    PATTERN(leak_between_teeth, IS(GROWING)),
    PATTERN(late_leak_under_work, IS(GROWING)),
    PATTERN(leak_slower_at_the_end, IS(GROWING)),
    PATTERN(fill_to_two_fifths, IS(STOPPED)),
    PATTERN(fill_to_a_quarter, IS(STOPPED)),
    PATTERN(fill_to_four_fifths, IS(STOPPED)),
    PATTERN(start_pause_and_fill, IS(STOPPED)),
    PATTERN(fill_in_the_middle, IS(STOPPED)),
    PATTERN(double_a_table, IS(STOPPED)),
    PATTERN(start, IS(START_UP)),
    PATTERN(start_and_work, IS(START_UP)),
    PATTERN(start_and_shrink, IS(START_UP)),
    PATTERN(cache_that_drops_the_oldest, IS(BOUNDED)),
    PATTERN(cache_that_drops_any, IS(BOUNDED)),
    PATTERN(cache_of_a_few, IS(BOUNDED) | IS(SAWTOOTH)),
    PATTERN(cache_on_a_base, IS(BOUNDED)),
    PATTERN(cache_that_then_idles, IS(STOPPED) | IS(BOUNDED)),
    PATTERN(sessions, IS(BOUNDED) | IS(SAWTOOTH)), // few are live at a time in short runs
    PATTERN(work, IS(BOUNDED) | IS(SAWTOOTH)),     // a few blocks with short lifetimes
    PATTERN(teeth, IS(SAWTOOTH)),
    PATTERN(long_teeth, IS(SAWTOOTH)),
    PATTERN(teeth_on_a_base, IS(SAWTOOTH) | IS(START_UP)), // by their sizes
    PATTERN(bursts, IS(BURSTS) | IS(SAWTOOTH)),            // 24 slices cannot distinguish them
    PATTERN(once, IS(ONCE) | IS(STOPPED)),                 // noise adds more blocks
    PATTERN(results, IS(LATE)),
    PATTERN(fill_slower_and_slower, IS(BOUNDED) | IS(STOPPED)),
#undef PATTERN
};

static void play_all(struct play *play, const struct pattern *pattern)
{
    for (play->now = 0; play->now < play->ticks; play->now++) {
        for (int i = play->due[play->now]; i > 0; i = play->blocks[i - 1].due_later) {
            give_back(play, i - 1);
        }
        if (play->is_noisy && below(play, 3) == 0) {
            lend(play, below(play, 100), 1 + (int)below(play, 6));
        }
        pattern->play(play);
    }
}

struct slice {
    unsigned long sums[4]; // allocations, bytes, frees, bytes
};

// Draw the run as one stack, beside another one that lives as long as the run.
static void draw(const struct play *play, struct strbuf *text)
{
    const int slices = play->ticks / TICKS;
    struct slice *cells = calloc((size_t)slices, sizeof(*cells));
    unsigned long sums[4] = {0};
    assert_non_null(cells);
    for (int i = 0; i < play->count; i++) {
        const struct block *block = &play->blocks[i];
        const bool is_freed = block->freed != NEVER;
        cells[block->born].sums[0]++;
        cells[block->born].sums[1] += block->bytes;
        sums[0]++;
        sums[1] += block->bytes;
        if (is_freed) {
            cells[block->freed].sums[2]++;
            cells[block->freed].sums[3] += block->bytes;
            sums[2]++;
            sums[3] += block->bytes;
        }
    }
    strbuf_printf(text, "app!main;app!site %lu %lu %lu %lu\n", sums[0], sums[1], sums[2], sums[3]);
    for (int i = 0; i < slices; i++) {
        const unsigned long *cell = cells[i].sums;
        if (cell[0] + cell[2] > 0) {
            strbuf_printf(text, "@%d %lu %lu %lu %lu 0\n", i, cell[0], cell[1], cell[2], cell[3]);
        }
    }
    free(cells);
    // Cohorts only need the blocks that were never freed.
    for (int born = 0, at = 0; born < slices; born++) {
        unsigned blocks = 0;
        unsigned long bytes = 0;
        for (; at < play->count && play->blocks[at].born == born; at++) {
            blocks += play->blocks[at].freed == NEVER;
            bytes += play->blocks[at].freed == NEVER ? play->blocks[at].bytes : 0;
        }
        if (blocks > 0) {
            strbuf_printf(text, "cohort %d - %u %lu\n", born, blocks, bytes);
        }
    }
    // Another stack lives until the end, so that the recording is as long as the run.
    strbuf_printf(text, "app!main;app!other 1 1 1 1\n@%d 1 1 1 1 0\n", slices - 1);
}

struct fixture {
    struct recording recording;
    struct profile *profile;
    struct selection selection;
    struct growth growth;
};

static void fixture_release(struct fixture *fixture)
{
    growth_release(&fixture->growth);
    selection_release(&fixture->selection);
    profile_close(fixture->profile);
    recording_release(&fixture->recording);
}

// Return the verdict of the only entry.
static struct growth_entry judge_text(const char *text, struct fixture *out)
{
    assert_int_equal(recording_from_text(text, &out->recording, NULL), ERR_OK);
    assert_int_equal(profile_from_recording(&out->recording, NULL, NULL, &out->profile, NULL),
                     ERR_OK);
    assert_int_equal(profile_select(out->profile, NULL, &out->selection, NULL), ERR_OK);
    assert_int_equal(growth_build(&out->selection, ROW_GROUPS_BY_SITE, SIZE_MAX, &out->growth),
                     ERR_OK);
    if (out->growth.entries.len != 1) {
        fail_msg("%zu entries in:\n%s", out->growth.entries.len, text);
    }
    return out->growth.entries.items[0];
}

// Verdicts with low confidence may be wrong; those of noisy runs, once in twenty times.
static void patterns_are_distinguished(void **state)
{
    (void)state;
    static const int lengths[] = {24, 200, 1000}; // slices
    static struct play play;
    unsigned wrong = 0;
    unsigned unsure = 0;
    unsigned unsure_wrong = 0;
    for (size_t p = 0; p < ARRAY_LEN(patterns); p++) {
        for (size_t run = 0; run < ARRAY_LEN(lengths) * SEEDS; run++) {
            CLEANUP(strbuf_release) struct strbuf text = {0};
            CLEANUP(fixture_release) struct fixture fixture = {0};
            const int slices = lengths[run / SEEDS];
            const unsigned long seed = run % SEEDS;
            play = (struct play){
                .ticks = slices * TICKS, .random = seed * 1000 + p, .is_noisy = seed > 0};
            play_all(&play, &patterns[p]);
            draw(&play, &text);
            const struct growth_entry entry = judge_text(strbuf_text(&text), &fixture);
            const bool is_right = (patterns[p].classes >> entry.class & 1) != 0;
            const bool is_unsure = entry.confidence < CONFIDENCE_MEDIUM && play.is_noisy;
            if (!is_right) {
                print_error("%s in %d slices, seed %lu: %s, confidence %s\n", patterns[p].name,
                            slices, seed, growth_class_name(entry.class),
                            growth_confidence_name(entry.confidence));
            }
            unsure += is_unsure;
            unsure_wrong += is_unsure && !is_right;
            wrong += !is_unsure && !is_right;
            assert_true(entry.class == GROWTH_GROWING || entry.slope_bytes_per_s == 0);
        }
    }
    assert_int_equal(wrong, 0);
    assert_in_range(20 * unsure_wrong, 0, unsure);
}

// What is left out of one step is judged: it has a slope, but what it comes to is not sure.
static void one_step_has_no_slope(void **state)
{
    (void)state;
    static struct play play;
    static const struct pattern pattern = {.play = leak_a_little_and_step};
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(fixture_release) struct fixture fixture = {0};
    play = (struct play){.ticks = 1000 * TICKS};
    play_all(&play, &pattern);
    draw(&play, &text);
    const struct growth_entry entry = judge_text(strbuf_text(&text), &fixture);
    assert_string_equal(growth_class_name(entry.class), "growing");
    assert_string_equal(growth_confidence_name(entry.confidence), "low");
    assert_in_range((long)entry.slope_bytes_per_s, 400, 480); // 11 bytes every 25 ms
}

// A leak of 100 bytes every 25 ms.
static void slopes_are_those_of_the_leak(void **state)
{
    (void)state;
    static struct play play;
    void (*const plays[])(struct play * play) = {leak, leak_in_the_last_quarter, leak_under_work};
    for (size_t i = 0; i < ARRAY_LEN(plays); i++) {
        CLEANUP(strbuf_release) struct strbuf text = {0};
        CLEANUP(fixture_release) struct fixture fixture = {0};
        play = (struct play){.ticks = 1000 * TICKS, .random = i};
        play_all(&play, &(struct pattern){.play = plays[i]});
        draw(&play, &text);
        const struct growth_entry entry = judge_text(strbuf_text(&text), &fixture);
        assert_in_range((long)entry.slope_bytes_per_s, 3900, 4200);
    }
}

// A child that grows until its end is a leak, however long the program continues. Of several
// children, the verdict is about the one that left most.
static void a_process_is_judged_by_its_own_life(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(fixture_release) struct fixture fixture = {0};
    for (int child = 0; child < 3; child++) {
        const int slices = child == 1 ? 100 : 10;
        strbuf_printf(&text, "process child\nleft %d\napp!main;app!site %d %d\n",
                      slices * SLICE_MS - 1, slices, slices * 10);
        for (int i = 0; i < slices; i++) {
            strbuf_printf(&text, "@%d 1 10 0 0 0\ncohort %d - 1 10\n", i, i);
        }
    }
    strbuf_append_text(&text, "process parent\nother 1 1 1 1\n@400 1 1 1 1 0\n");
    const struct growth_entry entry = judge_text(strbuf_text(&text), &fixture);
    assert_string_equal(growth_class_name(entry.class), "growing");
    assert_string_equal(growth_confidence_name(entry.confidence), "high");
    assert_int_equal((long)(entry.slope_bytes_per_s + 0.5), 100);
    assert_int_equal(entry.slope_ms, 50 * SLICE_MS);
    assert_int_equal(entry.latest_birth_slice, 99);
}

// A run that is too short has no verdict, and a single block has no slope.
static void too_little_is_too_little(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *class;
        const char *confidence;
    } cases[] = {
        {"site 5 50\n@0 3 30 0 0 0\n@5 2 20 0 0 0\ncohort 0 - 3 30\ncohort 5 - 2 20\n", "unknown",
         "none"},
        {"site 1 50\n@5 1 50 0 0 0\ncohort 5 - 1 50\nother 1 1 1 1\n@99 1 1 1 1 0\n", "once",
         "high"},
        {"site 2 50\n@0 1 25 0 0 0\n@99 1 25 0 0 0\ncohort 0 - 1 25\ncohort 99 - 1 25\n", "late",
         "low"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(fixture_release) struct fixture fixture = {0};
        const struct growth_entry entry = judge_text(cases[i].text, &fixture);
        assert_string_equal(growth_class_name(entry.class), cases[i].class);
        assert_string_equal(growth_confidence_name(entry.confidence), cases[i].confidence);
        assert_true(entry.slope_bytes_per_s == 0 && entry.slope_ms == 0);
    }
}

// What is in memory around the arrays makes no difference, nor does the unit of the sizes.
static void only_the_slices_count(void **state)
{
    (void)state;
    enum {
        SLICES = 120,
        HISTORIES = 400,
    };
    static const uint64_t around[] = {0, 1 << 30};
    unsigned seen = 0;
    for (unsigned seed = 1; seed <= HISTORIES; seed++) {
        struct play play = {.random = seed};
        const size_t count = 20 + below(&play, SLICES - 20);
        const size_t first = below(&play, (unsigned)count);
        const unsigned rate = 1 + below(&play, 4);
        const unsigned reset = 1 + below(&play, 60);
        struct growth_verdict verdicts[2 * ARRAY_LEN(around)];
        for (size_t k = 0; k < ARRAY_LEN(verdicts); k++) {
            struct play same = {.random = seed};
            const uint64_t unit = k < ARRAY_LEN(around) ? 1 << 16 : 1 << 26;
            uint64_t live[SLICES + 2];
            uint64_t births[SLICES + 2];
            uint64_t level = unit * 100 * below(&same, 3);
            for (size_t i = 0; i < ARRAY_LEN(live); i++) {
                live[i] = births[i] = around[k % ARRAY_LEN(around)];
            }
            for (size_t i = 0; i < count; i++) {
                const bool is_born = i >= first && below(&same, rate) == 0;
                level = is_born ? level + unit * below(&same, 9) : level;
                level = i % reset == 0 ? level / 2 : level;
                live[1 + i] = level;
                births[1 + i] = is_born ? unit : 0;
            }
            const struct growth_history history = {.count = count,
                                                   .live_bytes = live + 1,
                                                   .birth_bytes = births + 1,
                                                   .allocations = 1000,
                                                   .step = 1};
            assert_int_equal(growth_judge(&history, &verdicts[k]), ERR_OK);
            assert_int_equal(verdicts[k].class, verdicts[0].class);
            assert_int_equal(verdicts[k].confidence, verdicts[0].confidence);
            assert_int_equal(verdicts[k].latest_birth, verdicts[0].latest_birth);
        }
        assert_true(verdicts[1].slope_bytes == verdicts[0].slope_bytes);
        seen |= 1u << verdicts[0].class;
    }
    assert_true(seen & 1u << GROWTH_GROWING && seen & 1u << GROWTH_BOUNDED);
    assert_true(seen & 1u << GROWTH_STOPPED && seen & 1u << GROWTH_SAWTOOTH);
}

// A leak of 100-byte blocks under blocks of 900 bytes that live for a while, sampled by bytes: each
// block is chosen with its probability, and counts with the inverse. Return whether it is growing.
static bool judge_sample(struct play *play, double interval, struct growth_verdict *out)
{
    enum {
        SLICES = 200,
        LEAKED_EACH = 40, // in each slice
        OTHERS_EACH = 20,
        OTHERS_LIVE = 5, // slices
    };
    static uint64_t live[SLICES + OTHERS_LIVE];
    static uint64_t births[SLICES];
    memset(live, 0, sizeof(live));
    memset(births, 0, sizeof(births));
    for (size_t i = 0; i < SLICES; i++) {
        for (int block = 0; block < LEAKED_EACH + OTHERS_EACH; block++) {
            const bool is_leaked = block < LEAKED_EACH;
            const double size = is_leaked ? 100 : 900;
            const double chance = interval > 0 ? 1 - exp(-(size + 1) / interval) : 1;
            const uint64_t bytes = (uint64_t)(size / chance);
            if (below(play, 1U << 30) >= chance * (1U << 30)) {
                continue;
            }
            births[i] += is_leaked ? bytes : 0;
            for (size_t t = i; t < (is_leaked ? SLICES : i + OTHERS_LIVE); t++) {
                live[t] += bytes;
            }
        }
    }
    const struct growth_history history = {
        .count = SLICES, .live_bytes = live, .birth_bytes = births, .allocations = 1000, .step = 1};
    assert_int_equal(growth_judge(&history, out), ERR_OK);
    return out->class == GROWTH_GROWING;
}

// The true slope, 4,000 bytes for each slice, is within two standard errors of the sampled one in
// 95 of 100 runs. The error that is stated is not much larger than the spread of the slopes.
static void the_error_of_a_sampled_slope_covers_the_truth(void **state)
{
    (void)state;
    static struct play play;
    static const double intervals[] = {4096, 16384};
    for (size_t i = 0; i < ARRAY_LEN(intervals); i++) {
        int within = 0;
        int growing = 0;
        double squares = 0;
        double stated = 0;
        play.random = i;
        for (int run = 0; run < 400; run++) {
            struct growth_verdict verdict;
            if (judge_sample(&play, intervals[i], &verdict)) {
                const double away = verdict.slope_bytes - 4000;
                const double variance = 9.0 / 8 * intervals[i] * verdict.slope_squares;
                within += fabs(away) <= 2 * sqrt(variance);
                squares += away * away;
                stated += variance;
                growing++;
            }
        }
        assert_in_range(growing, 200, 400);
        assert_in_range(within * 100 / growing, 94, 100);
        assert_true(stated < 4 * squares);
    }
    struct growth_verdict exact;
    assert_true(judge_sample(&play, 0, &exact) && fabs(exact.slope_bytes - 4000) < 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns_are_distinguished),
        cmocka_unit_test(only_the_slices_count),
        cmocka_unit_test(one_step_has_no_slope),
        cmocka_unit_test(slopes_are_those_of_the_leak),
        cmocka_unit_test(the_error_of_a_sampled_slope_covers_the_truth),
        cmocka_unit_test(a_process_is_judged_by_its_own_life),
        cmocka_unit_test(too_little_is_too_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
