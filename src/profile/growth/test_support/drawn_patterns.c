// SPDX-License-Identifier: MIT
// drawn_patterns: each function plays one tick of a program.
//
// `x_until` stops while the program works on, `x_then_idle` stops together with all of it.
#include "profile/growth/test_support/drawn_run.h"

#include <math.h>

#include "base/compiler.h"

#define FIGURE(i, low, high) drawn_figure(run, i, low, high)
#define KEEP                 DRAWN_NEVER

static void leak(struct drawn_run *run)
{
    for (unsigned i = 0; i < FIGURE(0, 1, 4); i++) {
        drawn_take(run, 10, KEEP);
    }
}

static void leak_later(struct drawn_run *run)
{
    if (drawn_at(run) >= FIGURE(0, 200, 760)) {
        drawn_take(run, 10, KEEP);
    }
}

static void leak_rarely(struct drawn_run *run)
{
    if (drawn_below(run, (unsigned)run->ticks) < FIGURE(0, 30, 90)) {
        drawn_take(run, 50, KEEP);
    }
}

static void leak_faster(struct drawn_run *run)
{
    drawn_take(run, 1 + drawn_at(run) / FIGURE(0, 10, 40), KEEP);
}

static void leak_slower(struct drawn_run *run)
{
    if (drawn_at(run) < FIGURE(0, 600, 800) || run->now % 3 == 0) {
        drawn_take(run, 10, KEEP);
    }
}

static void leak_in_steps(struct drawn_run *run)
{
    for (unsigned i = 0; i < 10 && drawn_is_step(run, FIGURE(0, 9, 40)); i++) {
        drawn_take(run, 10, KEEP);
    }
}

static void leak_on_a_base(struct drawn_run *run)
{
    if (run->now < 2) {
        drawn_take(run, (unsigned)run->ticks * FIGURE(0, 1, 10), KEEP);
    }
    drawn_take(run, 2, KEEP);
}

static void leak_under_churn(struct drawn_run *run)
{
    drawn_churn(run, FIGURE(0, 1, 4), 20);
    drawn_take(run, 4, KEEP);
}

static void slow_leak_under_churn(struct drawn_run *run)
{
    drawn_churn(run, FIGURE(0, 3, 8), 10);
    if (drawn_below(run, 10) == 0) {
        drawn_take(run, 10, KEEP);
    }
}

static void leak_between_teeth(struct drawn_run *run)
{
    const int tooth = run->ticks / (int)FIGURE(0, 9, 25);
    drawn_take(run, 10, tooth - run->now % tooth);
    if (run->now % 3 == 0) {
        drawn_take(run, 10, KEEP);
    }
}

static void leak_by_day(struct drawn_run *run)
{
    if (drawn_at(run) < 300 || drawn_at(run) >= FIGURE(0, 450, 700)) {
        drawn_take(run, 10, KEEP);
    }
}

static void leak_half_then_again(struct drawn_run *run)
{
    if (drawn_at(run) < FIGURE(0, 300, 500) || drawn_at(run) >= FIGURE(1, 600, 800)) {
        drawn_take(run, 8, KEEP);
    }
}

static void leak_in_bouts(struct drawn_run *run)
{
    if (drawn_at(run) * FIGURE(0, 12, 30) / 1000 % 2 == 0 || drawn_at(run) > 970) {
        drawn_take(run, 10, KEEP);
    }
}

static void one_array_grows(struct drawn_run *run)
{
    if (run->now % (int)FIGURE(0, 1, 3) == 0 || drawn_is_step(run, 30)) {
        run->slot = drawn_resize(run, run->slot, 10 + (unsigned)run->now);
    }
}

static void one_array_grows_in_steps(struct drawn_run *run)
{
    if (drawn_is_step(run, FIGURE(0, 15, 60))) {
        run->slot = drawn_resize(run, run->slot, 10 + (unsigned)run->now);
    }
}

static void array_grows_from_the_middle(struct drawn_run *run)
{
    const unsigned begin = FIGURE(0, 200, 650);
    if (run->slot == KEEP || drawn_at(run) >= begin) {
        const int grown = run->now - (int)begin * run->ticks / 1000;
        run->slot = drawn_resize(run, run->slot, 100 + (grown > 0 ? (unsigned)grown : 0));
    }
}

// Each tick replaces the oldest of 20 blocks by a larger one.
static void many_arrays_grow(struct drawn_run *run)
{
    if (run->live_count < 20) {
        drawn_take(run, 10, KEEP);
    } else {
        drawn_free_oldest(run);
        drawn_take(run, 10 + (unsigned)run->now / 10, KEEP);
    }
}

static void vector_doubles(struct drawn_run *run)
{
    const unsigned first = 1 + (unsigned)run->ticks / FIGURE(1, 64, 128);
    unsigned wanted = first;
    while (wanted <= (unsigned)run->now) {
        wanted = FIGURE(0, 0, 1) != 0 ? wanted * 2 : wanted * 3 / 2 + 1;
    }
    if (run->slot == KEEP || wanted > run->figures[3]) {
        run->slot = drawn_resize(run, run->slot, wanted);
        run->figures[3] = wanted;
    }
}

static void queue_falls_behind(struct drawn_run *run)
{
    for (unsigned i = 0; i < 3; i++) {
        drawn_take(run, 10, KEEP);
    }
    for (unsigned i = 0; i < FIGURE(0, 1, 2) && drawn_below(run, 10) > 0; i++) {
        drawn_free_oldest(run);
    }
}

static void sessions_become_more(struct drawn_run *run)
{
    drawn_take(run, 20, run->ticks / 40 + (int)drawn_below(run, (unsigned)(run->now / 3 + 2)));
    drawn_take(run, 20, run->ticks / 40 + (int)drawn_below(run, (unsigned)(run->now / 3 + 2)));
}

static void sessions_leave_some(struct drawn_run *run)
{
    for (unsigned i = 0; i < FIGURE(0, 1, 3); i++) {
        drawn_take(run, 10, 1 + (int)drawn_below(run, (unsigned)run->ticks / 20));
    }
    if (drawn_below(run, 3) == 0) {
        drawn_take(run, 10, KEEP);
    }
}

static void batches_leave_some(struct drawn_run *run)
{
    const int batch = run->ticks / (int)FIGURE(0, 10, 30);
    const bool is_kept = drawn_below(run, 4) == 0;
    drawn_take(run, 10, is_kept ? KEEP : batch - run->now % batch);
}

static void leak_then_idle(struct drawn_run *run)
{
    run->is_idle = drawn_at(run) >= FIGURE(0, 450, 950);
    if (!run->is_idle) {
        drawn_take(run, 10, KEEP);
        drawn_take(run, 20, 1);
    }
}

static void array_grows_then_idle(struct drawn_run *run)
{
    run->is_idle = drawn_at(run) >= FIGURE(0, 450, 950);
    if (!run->is_idle) {
        run->slot = drawn_resize(run, run->slot, 10 + (unsigned)run->now);
    }
}

static void leak_idle_leak(struct drawn_run *run)
{
    const unsigned at = drawn_at(run);
    run->is_idle = at >= FIGURE(0, 300, 400) && at < FIGURE(1, 600, 800);
    if (!run->is_idle) {
        drawn_take(run, 10, KEEP);
        drawn_take(run, 20, 1);
    }
}

static void fill_until(struct drawn_run *run)
{
    if (drawn_at(run) < FIGURE(0, 180, 800)) {
        drawn_take(run, 20, KEEP);
    }
}

static void array_grows_until(struct drawn_run *run)
{
    if (drawn_at(run) < FIGURE(0, 180, 800)) {
        run->slot = drawn_resize(run, run->slot, 10 + (unsigned)run->now);
    }
}

static void vector_doubles_until(struct drawn_run *run)
{
    if (drawn_at(run) < FIGURE(2, 150, 220)) {
        vector_doubles(run);
    }
}

static void fill_and_then_work(struct drawn_run *run)
{
    if (drawn_at(run) < FIGURE(0, 180, 500)) {
        drawn_take(run, 50, KEEP);
    }
    drawn_churn(run, 1, 4);
}

static void fill_slower_and_slower(struct drawn_run *run)
{
    if (drawn_below(run, 1000) < 1000 * exp(-(double)drawn_at(run) / FIGURE(0, 30, 90))) {
        drawn_take(run, 30, KEEP);
    }
}

static void start(struct drawn_run *run)
{
    if (drawn_at(run) < FIGURE(0, 10, 90)) {
        drawn_take(run, 30, KEEP);
    }
}

// A start that takes as long as the program: each part of it has stacks of its own.
static void start_is_all(struct drawn_run *run)
{
    run->stack = drawn_at(run) / FIGURE(0, 20, 100);
    if (drawn_below(run, 3) == 0) {
        drawn_take(run, 1 + drawn_below(run, 40), KEEP);
    }
}

static void start_of_few_pools(struct drawn_run *run)
{
    if (drawn_is_step(run, FIGURE(0, 8, 60))) {
        run->stack++;
        drawn_take(run, 400, KEEP);
    }
}

static void start_and_shrink(struct drawn_run *run)
{
    if (run->now < 8) {
        for (unsigned i = 0; i < 20; i++) {
            drawn_take(run, 10, KEEP);
        }
    } else if (drawn_is_step(run, 120)) {
        drawn_free_oldest(run);
    }
}

static void start_then_idle(struct drawn_run *run)
{
    run->is_idle = drawn_at(run) >= FIGURE(0, 20, 90);
    if (!run->is_idle) {
        drawn_take(run, 30, KEEP);
    }
}

static void ring(struct drawn_run *run)
{
    drawn_take(run, 20, KEEP);
    while (run->live_count > 2 + (size_t)run->ticks / FIGURE(0, 4, 40)) {
        drawn_free_oldest(run);
    }
}

static void cache_drops_any(struct drawn_run *run)
{
    drawn_take(run, 20, KEEP);
    while (run->live_count > 2 + (size_t)run->ticks / FIGURE(0, 5, 40)) {
        drawn_free_any(run);
    }
}

static void cache_drops_many(struct drawn_run *run)
{
    const size_t full = 10 + (size_t)run->ticks / FIGURE(0, 5, 20);
    drawn_take(run, 20, KEEP);
    while (run->slot > 0 ? run->live_count > full * 9 / 10 : run->live_count > full) {
        run->slot = run->live_count > full * 9 / 10 + 1;
        drawn_free_oldest(run);
    }
}

static void cache_on_a_base(struct drawn_run *run)
{
    if (run->now == 0) {
        drawn_take(run, 500, KEEP);
    }
    drawn_take(run, 20, run->ticks / (int)FIGURE(0, 8, 30));
}

static void pool(struct drawn_run *run)
{
    const unsigned wanted = FIGURE(0, 30, 90) * (500 + drawn_below(run, 501)) / 1000;
    if (run->live_count < wanted) {
        drawn_take(run, 30, KEEP);
    }
}

static void sessions(struct drawn_run *run)
{
    for (unsigned i = 0; i < FIGURE(0, 1, 5); i++) {
        drawn_take(run, 10, 1 + (int)drawn_below(run, (unsigned)run->ticks / FIGURE(1, 6, 40)));
    }
}

static void work(struct drawn_run *run)
{
    drawn_churn(run, FIGURE(0, 1, 5), 10);
}

static void teeth(struct drawn_run *run)
{
    if (drawn_is_step(run, FIGURE(0, 4, 14))) {
        drawn_free_all(run);
    }
    drawn_take(run, 10, KEEP);
}

static void days(struct drawn_run *run)
{
    const double phase = 6.2831853 * drawn_at(run) * FIGURE(0, 3, 7) / 1000 + FIGURE(1, 0, 6);
    const unsigned wanted = (unsigned)(60 + 50 * sin(phase));
    while (run->live_count < wanted) {
        drawn_take(run, 10, KEEP);
    }
    while (run->live_count > wanted + 4) {
        drawn_free_oldest(run);
    }
}

static void bursts(struct drawn_run *run)
{
    const int period = run->ticks / (int)FIGURE(0, 7, 12);
    const int phase = (run->now + period * (int)FIGURE(1, 0, 9) / 10) % period;
    if (phase * 100 < period * (int)FIGURE(2, 8, 18)) {
        if (run->live_count < 100) {
            drawn_take(run, 30, KEEP);
            drawn_take(run, 30, KEEP);
        }
    } else {
        drawn_free_all(run);
    }
}

static void late(struct drawn_run *run)
{
    if (drawn_at(run) >= FIGURE(0, 940, 985)) {
        drawn_take(run, 20, KEEP);
    }
}

static void once(struct drawn_run *run)
{
    if (run->slot == KEEP && drawn_at(run) >= FIGURE(0, 0, 900)) {
        run->slot = drawn_take(run, 1000, KEEP);
    }
}

static void freed_later(struct drawn_run *run)
{
    drawn_take(run, 20, run->ticks / (int)FIGURE(0, 4, 12));
}

static void buffers_replaced(struct drawn_run *run)
{
    if (run->live_count < 20) {
        drawn_take(run, 30, KEEP);
    } else {
        drawn_free_oldest(run);
        drawn_take(run, 30, KEEP);
    }
}

static void array_grows_and_shrinks(struct drawn_run *run)
{
    const int period = run->ticks / (int)FIGURE(0, 4, 12);
    const int phase = run->now % (2 * period);
    run->slot =
        drawn_resize(run, run->slot, 50 + (unsigned)(phase < period ? phase : 2 * period - phase));
}

static void phases(struct drawn_run *run)
{
    const unsigned at = drawn_at(run);
    if (at < 200) {
        drawn_take(run, 10, KEEP);
    } else if (at < 220) {
        drawn_free_all(run);
    } else if (at < FIGURE(0, 400, 700)) {
        drawn_take(run, 20, KEEP);
    }
}

static void queue_keeps_up(struct drawn_run *run)
{
    drawn_take(run, 10, KEEP);
    drawn_take(run, 10, KEEP);
    while (run->live_count > 40 + drawn_below(run, 40)) {
        drawn_free_oldest(run);
    }
}

static void reload(struct drawn_run *run)
{
    const bool is_reload = drawn_is_step(run, FIGURE(0, 5, 15));
    const int before = run->count;
    for (unsigned i = 0; is_reload && i < 40; i++) {
        drawn_take(run, 10, KEEP);
    }
    for (int i = run->first_live; is_reload && i < before; i++) {
        drawn_free(run, i);
    }
}

static void warm_up_then_idle(struct drawn_run *run)
{
    const unsigned at = drawn_at(run);
    run->is_idle = at >= FIGURE(0, 450, 900);
    if (at < FIGURE(1, 180, 250)) {
        drawn_take(run, 20, KEEP);
    }
}

// A file of lines that is written out and begun again.
static void log_is_rotated(struct drawn_run *run)
{
    const bool is_full = drawn_is_step(run, FIGURE(0, 4, 12));
    run->figures[3] = is_full ? 0 : run->figures[3] + 1;
    run->slot = drawn_resize(run, run->slot, 10 + run->figures[3]);
}

static void log_grows(struct drawn_run *run)
{
    run->figures[3] += drawn_below(run, 4);
    if (run->now % 4 == 0) {
        run->slot = drawn_resize(run, run->slot, 8 + run->figures[3] / 8 * 8);
    }
}

static void errors_leak(struct drawn_run *run)
{
    drawn_churn(run, 2, 10);
    if (drawn_below(run, (unsigned)run->ticks) < FIGURE(0, 20, 60)) {
        for (unsigned i = 0; i < 1 + drawn_below(run, 6); i++) {
            drawn_take(run, 20, KEEP);
        }
    }
}

static void rare_leak_under_churn(struct drawn_run *run)
{
    drawn_churn(run, 4, 10);
    if (drawn_below(run, (unsigned)run->ticks) < FIGURE(0, 60, 150)) {
        drawn_take(run, 40, KEEP);
    }
}

static void start_and_slow_leak(struct drawn_run *run)
{
    if (drawn_at(run) < FIGURE(0, 50, 150)) {
        drawn_take(run, 20, KEEP);
    } else if (run->now % 2 == 0) {
        drawn_take(run, 10, KEEP);
    }
}

static void step_up(struct drawn_run *run)
{
    if (run->now < 4 || drawn_at(run) / 10 == FIGURE(0, 20, 80)) {
        drawn_take(run, 100, KEEP);
        drawn_take(run, 100, KEEP);
    }
}

static void hump(struct drawn_run *run)
{
    const unsigned top = FIGURE(0, 300, 600);
    drawn_take(run, 10, KEEP);
    if (drawn_at(run) > top) {
        for (unsigned i = 0; i < 3 && run->live_count > 10; i++) {
            drawn_free_oldest(run);
        }
    }
}

static void leak_is_fixed(struct drawn_run *run)
{
    drawn_churn(run, FIGURE(1, 1, 3), 10);
    if (drawn_at(run) < FIGURE(0, 300, 750)) {
        drawn_take(run, 10, KEEP);
    }
}

static void many_arrays_grow_until(struct drawn_run *run)
{
    const int end = run->ticks * (int)FIGURE(0, 200, 700) / 1000;
    if (run->live_count < 20) {
        drawn_take(run, 10, KEEP);
    } else {
        drawn_free_oldest(run);
        drawn_take(run, 10 + (unsigned)(run->now < end ? run->now : end) / 10, KEEP);
    }
}

static void queue_fills_up(struct drawn_run *run)
{
    const size_t most = (size_t)run->ticks * FIGURE(0, 100, 600) / 1000;
    drawn_take(run, 10, KEEP);
    drawn_take(run, 10, KEEP);
    drawn_free_oldest(run);
    while (run->live_count > most) {
        drawn_free_oldest(run);
    }
}

static void sessions_by_day(struct drawn_run *run)
{
    const double phase = 6.2831853 * drawn_at(run) * FIGURE(0, 3, 6) / 1000;
    if (drawn_below(run, 1000) < 500 + 450 * sin(phase)) {
        drawn_take(run, 10, 1 + (int)drawn_below(run, (unsigned)run->ticks / 20));
        drawn_take(run, 10, 1 + (int)drawn_below(run, (unsigned)run->ticks / 20));
    }
}

static void leak_by_requests(struct drawn_run *run)
{
    const double phase = 6.2831853 * drawn_at(run) * FIGURE(0, 2, 6) / 1000;
    if (drawn_below(run, 1000) < 500 + 450 * sin(phase)) {
        drawn_take(run, 10, 1 + (int)drawn_below(run, (unsigned)run->ticks / 30));
        drawn_take(run, 5, KEEP);
    }
}

static void buffers_of_any_size(struct drawn_run *run)
{
    while (run->live_count >= FIGURE(0, 10, 60)) {
        drawn_free_any(run);
    }
    drawn_take(run, 5 + drawn_below(run, 50), KEEP);
}

static void connections_with_buffers(struct drawn_run *run)
{
    if (drawn_below(run, 4) == 0) {
        drawn_take(run, 40, 1 + (int)drawn_below(run, (unsigned)run->ticks / 4));
    }
}

static void index_is_loaded_then_served(struct drawn_run *run)
{
    if (drawn_at(run) < FIGURE(0, 20, 100)) {
        drawn_take(run, 100, KEEP);
        drawn_take(run, 100, KEEP);
    } else {
        drawn_churn(run, 2, 3);
    }
}

static void leak_with_more_load(struct drawn_run *run)
{
    for (unsigned i = 0; i < 1 + drawn_at(run) / 300; i++) {
        drawn_take(run, 20, 3);
        drawn_take(run, 5, KEEP);
    }
}

static void teeth_of_any_length(struct drawn_run *run)
{
    if (drawn_below(run, (unsigned)run->ticks) < FIGURE(0, 6, 20)) {
        drawn_free_all(run);
    }
    drawn_take(run, 10, KEEP);
}

#define IS(class) (1U << GROWTH_##class)
#define CYCLES    (IS(SAWTOOTH) | IS(BURSTS))
#define FILLED    (IS(STOPPED) | IS(START_UP))

const struct drawn_pattern drawn_patterns[] = {
#define PATTERN(name, classes) \
    {                          \
#        name, name, classes   \
    }
    PATTERN(leak, IS(GROWING)),
    PATTERN(leak_later, IS(GROWING)),
    PATTERN(leak_rarely, IS(GROWING)),
    PATTERN(leak_faster, IS(GROWING)),
    PATTERN(leak_slower, IS(GROWING)),
    PATTERN(leak_in_steps, IS(GROWING)),
    PATTERN(leak_on_a_base, IS(GROWING)),
    PATTERN(leak_under_churn, IS(GROWING)),
    PATTERN(slow_leak_under_churn, IS(GROWING)),
    PATTERN(leak_between_teeth, IS(GROWING)),
    PATTERN(leak_by_day, IS(GROWING)),
    PATTERN(leak_half_then_again, IS(GROWING)),
    PATTERN(leak_in_bouts, IS(GROWING)),
    PATTERN(one_array_grows, IS(GROWING)),
    PATTERN(one_array_grows_in_steps, IS(GROWING)),
    PATTERN(array_grows_from_the_middle, IS(GROWING)),
    PATTERN(many_arrays_grow, IS(GROWING)),
    PATTERN(vector_doubles, IS(GROWING)),
    PATTERN(queue_falls_behind, IS(GROWING)),
    PATTERN(sessions_become_more, IS(GROWING)),
    PATTERN(sessions_leave_some, IS(GROWING)),
    PATTERN(batches_leave_some, IS(GROWING)),
    PATTERN(leak_then_idle, IS(GROWING)),
    PATTERN(array_grows_then_idle, IS(GROWING)),
    PATTERN(leak_idle_leak, IS(GROWING)),
    PATTERN(log_grows, IS(GROWING)),
    PATTERN(errors_leak, IS(GROWING)),
    PATTERN(rare_leak_under_churn, IS(GROWING)),
    PATTERN(start_and_slow_leak, IS(GROWING)),
    PATTERN(leak_by_requests, IS(GROWING)),
    PATTERN(leak_with_more_load, IS(GROWING)),
    PATTERN(fill_until, IS(STOPPED)),
    PATTERN(step_up, IS(STOPPED)),
    PATTERN(leak_is_fixed, IS(STOPPED)),
    PATTERN(many_arrays_grow_until, IS(STOPPED) | IS(BOUNDED)),
    PATTERN(hump, CYCLES | IS(STOPPED) | IS(BOUNDED)),
    PATTERN(queue_fills_up, IS(BOUNDED)),
    PATTERN(index_is_loaded_then_served, IS(START_UP)),
    PATTERN(sessions_by_day, CYCLES | IS(BOUNDED)),
    PATTERN(buffers_of_any_size, IS(BOUNDED) | CYCLES),
    PATTERN(connections_with_buffers, IS(BOUNDED) | CYCLES),
    PATTERN(log_is_rotated, CYCLES | IS(BOUNDED)),
    PATTERN(teeth_of_any_length, CYCLES | IS(GROWING)), // the last may be as long as all before
    PATTERN(array_grows_until, IS(STOPPED)),
    PATTERN(vector_doubles_until, IS(STOPPED) | IS(START_UP)),
    PATTERN(fill_and_then_work, IS(STOPPED)),
    PATTERN(fill_slower_and_slower, IS(STOPPED) | IS(BOUNDED) | IS(START_UP)),
    PATTERN(warm_up_then_idle, IS(STOPPED)),
    PATTERN(start, IS(START_UP)),
    PATTERN(start_is_all, IS(UNKNOWN) | FILLED | IS(LATE)),
    PATTERN(start_of_few_pools, IS(UNKNOWN) | FILLED | IS(LATE)),
    PATTERN(start_and_shrink, IS(START_UP)),
    PATTERN(start_then_idle, IS(START_UP)),
    PATTERN(ring, IS(BOUNDED)),
    PATTERN(cache_drops_any, IS(BOUNDED)),
    PATTERN(cache_drops_many, IS(BOUNDED)),
    PATTERN(cache_on_a_base, IS(BOUNDED) | IS(START_UP)),
    PATTERN(pool, IS(STOPPED) | IS(START_UP)),
    PATTERN(sessions, IS(BOUNDED) | CYCLES), // few are live at a time in short runs
    PATTERN(work, IS(BOUNDED) | CYCLES),
    PATTERN(teeth, CYCLES),
    PATTERN(days, CYCLES | IS(BOUNDED)),
    PATTERN(bursts, CYCLES),
    PATTERN(late, IS(LATE)),
    PATTERN(once, IS(ONCE) | IS(STOPPED) | IS(START_UP) | IS(LATE)), // noise adds more blocks
    PATTERN(freed_later, IS(BOUNDED)),
    PATTERN(buffers_replaced, IS(BOUNDED)),
    PATTERN(array_grows_and_shrinks, CYCLES | IS(BOUNDED)),
    PATTERN(phases, IS(STOPPED)),
    PATTERN(queue_keeps_up, IS(BOUNDED) | CYCLES),
    PATTERN(reload, IS(BOUNDED) | CYCLES),
#undef PATTERN
};

const size_t drawn_pattern_count = ARRAY_LEN(drawn_patterns);
