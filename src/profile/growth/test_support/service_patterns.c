// SPDX-License-Identifier: MIT
// service_patterns: what servers, editors and runtimes do. The rule was written without them: they
// judge it. Each function plays one tick of a program.
#include "profile/growth/test_support/drawn_run.h"

#include <math.h>

#include "base/compiler.h"

#define FIGURE(i, low, high) drawn_figure(run, i, low, high)
#define KEEP                 DRAWN_NEVER
#define TURN                 6.2831853

// Each collection leaves an eighth of what was taken.
static void collector_with_rising_floor(struct drawn_run *run)
{
    const int tooth = run->ticks / (int)FIGURE(0, 8, 30);
    for (unsigned i = 0; i < 3; i++) {
        drawn_take(run, 10, drawn_below(run, 8) == 0 ? KEEP : tooth - run->now % tooth);
    }
}

static void few_large_leaks(struct drawn_run *run)
{
    drawn_churn(run, 3, 5);
    if (drawn_is_step(run, FIGURE(0, 8, 14))) {
        drawn_take(run, 800, KEEP);
    }
}

static void listeners_stay(struct drawn_run *run)
{
    drawn_take(run, 15, 1 + (int)drawn_below(run, (unsigned)run->ticks / 15));
    if (drawn_below(run, 10) == 0) {
        drawn_take(run, 3, KEEP);
    }
}

static void leak_after_deploy(struct drawn_run *run)
{
    drawn_churn(run, 2, 12);
    if (drawn_at(run) >= FIGURE(0, 100, 600)) {
        drawn_take(run, 6, KEEP);
    }
}

static void leak_in_busy_hours(struct drawn_run *run)
{
    const unsigned hour = (unsigned)run->now * FIGURE(0, 4, 9) * 10 / (unsigned)run->ticks % 10;
    if (hour >= 3 && hour < 8) {
        drawn_churn(run, 4, 10);
        drawn_take(run, 5, KEEP);
    } else {
        drawn_churn(run, 1, 10);
    }
}

static void fifth_is_released(struct drawn_run *run)
{
    drawn_take(run, 10, KEEP);
    drawn_take(run, 10, KEEP);
    if (run->now > 0 && drawn_is_step(run, FIGURE(0, 4, 9))) {
        for (size_t left = run->live_count / 5; left > 0; left--) {
            drawn_free_oldest(run);
        }
    }
}

static void map_with_entries(struct drawn_run *run)
{
    unsigned buckets = 64;
    drawn_take(run, 4, KEEP);
    while (buckets < (unsigned)run->now) {
        buckets *= 2;
    }
    if (run->slot == KEEP || buckets > run->figures[3]) {
        run->slot = drawn_resize(run, run->slot, buckets);
        run->figures[3] = buckets;
    }
}

static void text_is_appended(struct drawn_run *run)
{
    if (run->now % 2 == 0) {
        run->figures[3] += 1 + drawn_below(run, 3);
        run->slot = drawn_resize(run, run->slot, 20 + run->figures[3]);
    }
    drawn_churn(run, 1, 3);
}

static void history_by_minute(struct drawn_run *run)
{
    drawn_churn(run, 2, 5);
    if (drawn_is_step(run, FIGURE(0, 20, 60))) {
        drawn_take(run, 60, KEEP);
    }
}

static void undo_stack(struct drawn_run *run)
{
    if (run->live_count == 0 || drawn_below(run, 15) > 0) {
        drawn_take(run, 8, KEEP);
        return;
    }
    int newest = run->count - 1;
    while (!run->blocks[newest].is_live) {
        newest--;
    }
    drawn_free(run, newest);
}

static void leak_by_the_square(struct drawn_run *run)
{
    for (unsigned i = 0; i <= drawn_at(run) / FIGURE(0, 150, 300); i++) {
        drawn_take(run, 6, KEEP);
    }
}

static void leak_with_pauses(struct drawn_run *run)
{
    const unsigned turn = (unsigned)run->now * FIGURE(0, 10, 25) / (unsigned)run->ticks % 3;
    run->is_idle = turn == 1 && drawn_at(run) < 960;
    if (!run->is_idle) {
        drawn_take(run, 10, KEEP);
        drawn_churn(run, 1, 10);
    }
}

static void threads_are_not_joined(struct drawn_run *run)
{
    if (drawn_is_step(run, FIGURE(0, 25, 80))) {
        drawn_take(run, 90, KEEP);
        drawn_take(run, 2, KEEP);
    }
    drawn_churn(run, 1, 2);
}

static void ring_becomes_longer(struct drawn_run *run)
{
    drawn_take(run, 10, KEEP);
    while (run->live_count > 20 + (size_t)run->now / FIGURE(0, 3, 8)) {
        drawn_free_oldest(run);
    }
}

static void collector_with_flat_floor(struct drawn_run *run)
{
    const int tooth = run->ticks / (int)FIGURE(0, 8, 30);
    for (unsigned i = 0; i < 50 && run->now == 0; i++) {
        drawn_take(run, 10, KEEP);
    }
    for (unsigned i = 0; i < 3; i++) {
        drawn_take(run, 10, tooth - run->now % tooth);
    }
}

static void cache_by_bytes(struct drawn_run *run)
{
    drawn_take(run, 1 + drawn_below(run, 60), KEEP);
    while (run->level > (uint64_t)run->unit * (200 + 4 * FIGURE(0, 0, 300))) {
        drawn_free_oldest(run);
    }
}

static void cache_by_age(struct drawn_run *run)
{
    const double load = 2 + 2 * sin(TURN * drawn_at(run) * FIGURE(0, 3, 8) / 1000);
    for (unsigned i = 0; i < (unsigned)load; i++) {
        drawn_take(run, 10, run->ticks / 12);
    }
}

static void two_buffers(struct drawn_run *run)
{
    if (run->now % 5 == 0) {
        if (run->live_count >= 2) {
            drawn_free_oldest(run);
        }
        drawn_take(run, 200, KEEP);
    }
}

static void plugin_is_loaded(struct drawn_run *run)
{
    const unsigned moment = FIGURE(0, 300, 700);
    if (drawn_at(run) >= moment && drawn_at(run) < moment + 20) {
        drawn_take(run, 40, KEEP);
    }
    drawn_churn(run, 2, 6);
}

static void pool_keeps_its_most(struct drawn_run *run)
{
    if (run->live_count < 20 + drawn_below(run, FIGURE(0, 20, 60))) {
        drawn_take(run, 15, KEEP);
    }
}

static void new_words_become_rare(struct drawn_run *run)
{
    if (drawn_below(run, 1000) < 1000 * exp(-(double)run->now / run->ticks * FIGURE(0, 12, 30))) {
        drawn_take(run, 5, KEEP);
    }
    drawn_churn(run, 1, 5);
}

static void arena_of_a_request(struct drawn_run *run)
{
    if (run->now % (3 + (int)FIGURE(0, 0, 6)) == 0) {
        drawn_free_all(run);
    }
    for (unsigned i = 0; i < 3; i++) {
        drawn_take(run, 10, KEEP);
    }
}

static void frames_of_a_film(struct drawn_run *run)
{
    drawn_take(run, 300, 2 + (int)FIGURE(0, 1, 6));
}

static void job_by_night(struct drawn_run *run)
{
    const unsigned part = (unsigned)run->now * FIGURE(0, 3, 6) * 100 / (unsigned)run->ticks % 100;
    if (part < 12) {
        drawn_take(run, 40, KEEP);
    } else if (part < 20) {
        drawn_free_oldest(run);
        drawn_free_oldest(run);
    } else {
        drawn_free_all(run);
    }
}

static void state_is_replaced(struct drawn_run *run)
{
    if (run->now % (int)FIGURE(0, 5, 30) == 0) {
        run->slot = drawn_resize(run, run->slot, 300 + drawn_below(run, 40));
    }
}

static void table_is_filled_by_need(struct drawn_run *run)
{
    const unsigned keys = (unsigned)run->ticks / FIGURE(0, 8, 16);
    run->figures[3] = run->now == 0 ? 0 : run->figures[3]; // filled
    if (drawn_below(run, keys) >= run->figures[3]) {
        drawn_take(run, 20, KEEP);
        run->figures[3]++;
    }
    drawn_churn(run, 1, 4);
}

#define IS(class) (1U << GROWTH_##class)
#define CYCLES    (IS(SAWTOOTH) | IS(BURSTS))
#define RENEWED   (CYCLES | IS(BOUNDED))
#define FILLED    (IS(STOPPED) | IS(START_UP) | IS(BOUNDED))

const struct drawn_pattern service_patterns[] = {
#define PATTERN(name, classes) \
    {                          \
#        name, name, classes   \
    }
    PATTERN(collector_with_rising_floor, IS(GROWING)),
    PATTERN(few_large_leaks, IS(GROWING)),
    PATTERN(listeners_stay, IS(GROWING)),
    PATTERN(leak_after_deploy, IS(GROWING)),
    PATTERN(leak_in_busy_hours, IS(GROWING)),
    PATTERN(fifth_is_released, IS(GROWING)),
    PATTERN(map_with_entries, IS(GROWING)),
    PATTERN(text_is_appended, IS(GROWING)),
    PATTERN(history_by_minute, IS(GROWING)),
    PATTERN(undo_stack, IS(GROWING)),
    PATTERN(leak_by_the_square, IS(GROWING)),
    PATTERN(leak_with_pauses, IS(GROWING)),
    PATTERN(threads_are_not_joined, IS(GROWING)),
    PATTERN(ring_becomes_longer, IS(GROWING)),
    PATTERN(collector_with_flat_floor, RENEWED | IS(START_UP)),
    PATTERN(cache_by_bytes, RENEWED),
    PATTERN(cache_by_age, RENEWED),
    PATTERN(two_buffers, RENEWED),
    PATTERN(plugin_is_loaded, IS(STOPPED)),
    PATTERN(pool_keeps_its_most, FILLED),
    PATTERN(new_words_become_rare, FILLED),
    PATTERN(arena_of_a_request, RENEWED),
    PATTERN(frames_of_a_film, RENEWED),
    PATTERN(job_by_night, RENEWED),
    PATTERN(state_is_replaced, RENEWED),
    PATTERN(table_is_filled_by_need, FILLED),
#undef PATTERN
};

const size_t service_pattern_count = ARRAY_LEN(service_patterns);
