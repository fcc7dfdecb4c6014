// SPDX-License-Identifier: MIT
#include "profile/growth/test_support/drawn_run.h"

#include <string.h>

#include "profile/growth/growth_repeats.h"

unsigned drawn_below(struct drawn_run *run, unsigned limit)
{
    run->random = run->random * 6364136223846793005UL + 1442695040888963407UL;
    return (unsigned)((run->random >> 33) % limit);
}

unsigned drawn_figure(const struct drawn_run *run, size_t figure, unsigned low, unsigned high)
{
    return low + (high - low + 1) * run->figures[figure] / 1000;
}

unsigned drawn_at(const struct drawn_run *run)
{
    return (unsigned)((long)run->now * 1000 / run->ticks);
}

bool drawn_is_step(const struct drawn_run *run, unsigned of)
{
    return run->now == 0 ||
           (long)run->now * of / run->ticks != (long)(run->now - 1) * of / run->ticks;
}

int drawn_take(struct drawn_run *run, unsigned units, int ticks)
{
    if (run->count == DRAWN_BLOCKS_MAX) {
        return DRAWN_NEVER;
    }
    uint64_t bytes = (uint64_t)units * run->unit;
    if (run->jitter > 0) {
        bytes = bytes * (100 - run->jitter + drawn_below(run, 2 * run->jitter + 1)) / 100;
    }
    run->blocks[run->count] = (struct drawn_block){.born = (uint32_t)run->slice,
                                                   .bytes = (uint32_t)bytes + 1,
                                                   .stack = run->stack,
                                                   .is_live = true};
    run->level += bytes + 1;
    run->birth_bytes[run->slice] += bytes + 1;
    run->work[run->slice]++;
    run->live_count++;
    if (ticks != DRAWN_NEVER && run->now + ticks < run->ticks) {
        // What has no tick to live is freed in the next one.
        int *due = &run->due[run->now + (ticks > 0 ? ticks : 1)];
        run->blocks[run->count].due_later = *due;
        *due = run->count + 1;
    }
    return run->count++;
}

void drawn_free(struct drawn_run *run, int block)
{
    if (block < 0 || !run->blocks[block].is_live) {
        return;
    }
    run->blocks[block].is_live = false;
    run->level -= run->blocks[block].bytes;
    run->birth_bytes[run->blocks[block].born] -= run->blocks[block].bytes;
    run->live_count--;
    while (run->first_live < run->count && !run->blocks[run->first_live].is_live) {
        run->first_live++;
    }
}

void drawn_free_all(struct drawn_run *run)
{
    for (int i = run->first_live; i < run->count; i++) {
        drawn_free(run, i);
    }
}

void drawn_free_oldest(struct drawn_run *run)
{
    if (run->first_live < run->count) {
        drawn_free(run, run->first_live);
    }
}

void drawn_free_any(struct drawn_run *run)
{
    for (int tries = 0; tries < 1000 && run->live_count > 0; tries++) {
        const int block =
            run->first_live + (int)drawn_below(run, (unsigned)(run->count - run->first_live));
        if (run->blocks[block].is_live) {
            drawn_free(run, block);
            return;
        }
    }
    drawn_free_oldest(run);
}

int drawn_resize(struct drawn_run *run, int block, unsigned units)
{
    const unsigned jitter = run->jitter;
    drawn_free(run, block);
    run->jitter = jitter / 10; // each is nearly a copy of the one before
    const int grown = drawn_take(run, units, DRAWN_NEVER);
    run->jitter = jitter;
    return grown;
}

static void free_due(struct drawn_run *run)
{
    for (int i = run->due[run->now]; i > 0; i = run->blocks[i - 1].due_later) {
        drawn_free(run, i - 1);
    }
}

// The slice of each tick: the ticks last differently long, and now and then the program stands
// still for up to a twentieth of the run.
static void draw_clock(struct drawn_run *run, double *ends)
{
    const bool is_even = run->seed % 4 == 0;
    double time = 0;
    for (int i = 0; i < run->ticks; i++) {
        time += is_even ? 1 : 0.5 + drawn_below(run, 1000) / 1000.0;
        if (!is_even && drawn_below(run, (unsigned)run->ticks) == 0) {
            time += run->ticks * (double)drawn_below(run, 50) / 1000;
        }
        ends[i] = time;
    }
    for (int i = 0; i < run->ticks; i++) {
        ends[i] = ends[i] * (double)run->slices / (time + 0.001);
    }
}

void drawn_run_play(struct drawn_run *run,
                    const struct drawn_pattern *pattern,
                    size_t slices,
                    uint64_t seed)
{
    static double ends[DRAWN_SLICES_MAX * DRAWN_TICKS];
    *run = (struct drawn_run){.seed = seed,
                              .random = seed * 0x9e3779b97f4a7c15,
                              .slices = slices,
                              .ticks = (int)slices * DRAWN_TICKS,
                              .slot = DRAWN_NEVER,
                              .step = 1};
    for (size_t i = 0; i < DRAWN_FIGURES; i++) {
        run->figures[i] = drawn_below(run, 1000);
    }
    run->unit = 10 + drawn_below(run, 200);
    run->jitter = drawn_below(run, 3) * 20;
    const unsigned others = 1 + drawn_below(run, 30); // allocations of other sites in a tick
    const unsigned noise = drawn_below(run, 3);       // of small blocks of this site
    draw_clock(run, ends);
    for (run->now = 0; run->now < run->ticks; run->now++) {
        const size_t slice = run->now > 0 ? (size_t)ends[run->now - 1] : 0;
        for (; run->slice < slice; run->slice++) {
            run->live_bytes[run->slice] = run->level;
        }
        free_due(run);
        run->is_idle = false;
        pattern->play(run);
        if (!run->is_idle) {
            run->work[run->slice] += others / 2 + drawn_below(run, others + 1);
            if (noise > 0 && drawn_below(run, 4) < noise) {
                drawn_take(run, 1 + drawn_below(run, 2), 1 + (int)drawn_below(run, 6));
            }
        }
    }
    for (; run->slice < slices; run->slice++) {
        run->live_bytes[run->slice] = run->level;
    }
}

void drawn_run_coarsen(struct drawn_run *run, size_t step)
{
    run->step = step;
    for (size_t first = 0; first < run->slices; first += step) {
        const size_t end = first + step < run->slices ? first + step : run->slices;
        for (size_t i = first; i < end; i++) {
            run->live_bytes[i] = run->live_bytes[end - 1];
            if (i > first) {
                run->birth_bytes[first] += run->birth_bytes[i];
                run->work[first] += run->work[i];
                run->birth_bytes[i] = run->work[i] = 0;
            }
        }
    }
}

// The repeats of the stacks whose blocks are left.
static size_t count_repeats(const struct drawn_run *run)
{
    static struct stack_birth births[DRAWN_BLOCKS_MAX];
    size_t count = 0;
    for (int i = run->first_live; i < run->count; i++) {
        const struct drawn_block *block = &run->blocks[i];
        if (block->is_live) {
            const uint32_t slice = block->born - block->born % (uint32_t)run->step;
            births[count++] = (struct stack_birth){.stack = block->stack, .slice = slice};
        }
    }
    return growth_repeats_count(births, count);
}

struct growth_history drawn_history(const struct drawn_run *run)
{
    return (struct growth_history){.count = run->slices,
                                   .live_bytes = run->live_bytes,
                                   .birth_bytes = run->birth_bytes,
                                   .work = run->work,
                                   .kept = run->live_count,
                                   .allocations = (uint64_t)run->count,
                                   .has_stacks = true,
                                   .repeats = count_repeats(run),
                                   .step = run->step};
}

void drawn_churn(struct drawn_run *run, unsigned blocks, unsigned units)
{
    for (unsigned i = 0; i < blocks; i++) {
        drawn_take(run, units, 1 + (int)drawn_below(run, 8));
    }
}
