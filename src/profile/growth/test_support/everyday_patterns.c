// SPDX-License-Identifier: MIT
// everyday_patterns: what tools and daemons do. The rule was written and mended without them: they
// judge it. Each function plays one tick of a program.
#include "profile/growth/test_support/drawn_run.h"

#include <math.h>

#include "base/compiler.h"

#define FIGURE(i, low, high) drawn_figure(run, i, low, high)
#define KEEP                 DRAWN_NEVER
#define TURN                 6.2831853

static void errors_leak(struct drawn_run *run)
{
    drawn_churn(run, 3, 8);
    if (drawn_below(run, FIGURE(0, 4, 12)) == 0) {
        drawn_take(run, 30, KEEP);
    }
}

static void graph_gets_more_than_it_loses(struct drawn_run *run)
{
    drawn_take(run, 10, KEEP);
    drawn_take(run, 10, KEEP);
    drawn_free_any(run);
}

static void bursts_leave_something(struct drawn_run *run)
{
    const unsigned part = (unsigned)run->now * FIGURE(0, 9, 20) * 10 / (unsigned)run->ticks % 10;
    if (part < 3) {
        drawn_churn(run, 5, 12);
        drawn_take(run, 8, KEEP);
    }
}

static void leak_slows_down(struct drawn_run *run)
{
    drawn_churn(run, 1, 6);
    if (drawn_below(run, 1000) < 1000 / (1 + 3 * drawn_at(run) / 1000)) {
        drawn_take(run, 12, KEEP);
    }
}

static void copies_by_the_hour(struct drawn_run *run)
{
    drawn_churn(run, 2, 8);
    if (drawn_is_step(run, FIGURE(0, 15, 30))) {
        drawn_take(run, 200 + drawn_below(run, 50), KEEP);
    }
}

static void pages_of_an_arena(struct drawn_run *run)
{
    run->figures[3] = run->now == 0 ? 0 : run->figures[3] + drawn_below(run, 9);
    if (run->figures[3] >= 20) {
        run->figures[3] -= 20;
        drawn_take(run, 64, KEEP);
    }
}

static void cache_fills_for_long(struct drawn_run *run)
{
    drawn_take(run, 10, KEEP);
    if (run->live_count > (size_t)run->ticks * FIGURE(0, 10, 45) / 100) {
        drawn_free_oldest(run);
    }
}

static void slow_clients(struct drawn_run *run)
{
    const bool is_slow = drawn_below(run, 12) == 0;
    drawn_take(run, 10, is_slow ? run->ticks / 12 : 1 + (int)drawn_below(run, 20));
}

static void table_follows_the_load(struct drawn_run *run)
{
    const double load = 200 + 150 * sin(TURN * drawn_at(run) * FIGURE(0, 3, 9) / 1000);
    unsigned buckets = 32;
    while (buckets < (unsigned)load) {
        buckets *= 2;
    }
    if (run->slot == KEEP || buckets != run->figures[3]) {
        run->slot = drawn_resize(run, run->slot, buckets);
        run->figures[3] = buckets;
    }
    drawn_churn(run, 1, 4);
}

static void batch_by_batch(struct drawn_run *run)
{
    const int batch = run->ticks / (int)FIGURE(0, 6, 25);
    for (unsigned i = 0; i < 30 && run->now == 0; i++) {
        drawn_take(run, 20, KEEP);
    }
    drawn_take(run, 10, batch - run->now % batch);
    drawn_take(run, 10, batch - run->now % batch);
}

static void sessions_expire_together(struct drawn_run *run)
{
    drawn_take(run, 15, KEEP);
    if (drawn_is_step(run, FIGURE(0, 6, 20))) {
        drawn_free_all(run);
    }
}

static void data_are_loaded_early(struct drawn_run *run)
{
    const unsigned moment = FIGURE(0, 20, 120);
    if (drawn_at(run) >= moment && drawn_at(run) < moment + 30) {
        drawn_take(run, 50, KEEP);
    }
    drawn_churn(run, 2, 7);
}

static void input_is_used_up(struct drawn_run *run)
{
    for (int i = 0; i < run->ticks * 6 / 5 && run->now == 0; i++) {
        drawn_take(run, 10, KEEP);
    }
    drawn_free_oldest(run);
}

static void cache_loses_any(struct drawn_run *run)
{
    drawn_take(run, 10, KEEP);
    if (run->live_count > 10 + (size_t)run->ticks / FIGURE(0, 8, 20)) {
        drawn_free_any(run);
    }
}

static void queue_of_an_outage(struct drawn_run *run)
{
    const unsigned begin = FIGURE(0, 200, 500);
    drawn_take(run, 10, KEEP);
    if (drawn_at(run) < begin || drawn_at(run) >= begin + FIGURE(1, 40, 120)) {
        for (int i = 0; i < 3 && run->live_count > 5; i++) {
            drawn_free_oldest(run);
        }
    }
}

#define IS(class) (1U << GROWTH_##class)
#define RENEWED   (IS(SAWTOOTH) | IS(BURSTS) | IS(BOUNDED))
#define FILLED    (IS(STOPPED) | IS(START_UP) | IS(BOUNDED))

const struct drawn_pattern everyday_patterns[] = {
#define PATTERN(name, classes) \
    {                          \
#        name, name, classes   \
    }
    PATTERN(errors_leak, IS(GROWING)),
    PATTERN(graph_gets_more_than_it_loses, IS(GROWING)),
    PATTERN(bursts_leave_something, IS(GROWING)),
    PATTERN(leak_slows_down, IS(GROWING)),
    PATTERN(copies_by_the_hour, IS(GROWING)),
    PATTERN(pages_of_an_arena, IS(GROWING)),
    PATTERN(cache_fills_for_long, RENEWED),
    PATTERN(slow_clients, RENEWED),
    PATTERN(table_follows_the_load, RENEWED),
    PATTERN(batch_by_batch, RENEWED | IS(START_UP)),
    PATTERN(sessions_expire_together, RENEWED),
    PATTERN(data_are_loaded_early, FILLED),
    PATTERN(input_is_used_up, FILLED),
    PATTERN(cache_loses_any, RENEWED),
    PATTERN(queue_of_an_outage, RENEWED),
#undef PATTERN
};

const size_t everyday_pattern_count = ARRAY_LEN(everyday_patterns);
