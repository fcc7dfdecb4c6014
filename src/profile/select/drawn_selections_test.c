// SPDX-License-Identifier: MIT
// Tests of what filters select: random recordings and filters. The test keeps what it drew, and
// adds it up stack by stack.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "base/test_support/random_numbers.h"
#include "host/text/strbuf.h"
#include "profile/calls/call_sites.h"
#include "profile/select/filter.h"
#include "profile/tables/summary.h"
#include "profile/test_support/drawn_profile.h"
#include "profile/time/timeline.h"
#include "profile/time/top_series.h"

enum {
    RUNS = 300,
    SLICES = 5,
    STACKS_MAX = 24,
    FRAMES_MAX = 4,
    FUNCTIONS = 6,
    FIRST_PID = 1000, // of a drawing
};

static const char *const g_functions[FUNCTIONS] = {"alpha", "bravo", "delta",
                                                   "gamma", "kappa", "omega"};

struct drawn_stack {
    uint32_t process;
    uint32_t thread; // of all processes
    uint32_t frame_count;
    uint32_t frames[FRAMES_MAX]; // functions, outermost first
    struct costs costs;
    struct timeline_point points[SLICES]; // without live bytes
};

struct drawing {
    struct drawn_stack stacks[STACKS_MAX];
    size_t count;
    struct strbuf text;
};

// Draw the cells, whose sums are the stack's costs. What was not freed is live at the peak.
static void draw_cells(struct drawn_stack *stack, uint64_t *random)
{
    uint64_t blocks = 0;
    uint64_t *costs = stack->costs.values;
    const uint64_t size_bytes = 1 + next_random(random) % 50;
    for (size_t slice = 0; slice < SLICES; slice++) {
        const uint64_t allocations = next_random(random) % 4;
        const uint64_t frees = next_random(random) % (blocks + allocations + 1);
        const uint64_t temporary = next_random(random) % (min_u64(allocations, frees) + 1);
        blocks += allocations - frees;
        stack->points[slice] = (struct timeline_point){.allocations = allocations,
                                                       .allocated_bytes = allocations * size_bytes,
                                                       .frees = frees,
                                                       .freed_bytes = frees * size_bytes,
                                                       .temporary = temporary};
        costs[COST_ALLOCATIONS] += allocations;
        costs[COST_FREES] += frees;
        costs[COST_TEMPORARY] += temporary;
    }
    costs[COST_ALLOCATED_BYTES] = costs[COST_ALLOCATIONS] * size_bytes;
    costs[COST_FREED_BYTES] = costs[COST_FREES] * size_bytes;
    costs[COST_TEMPORARY_BYTES] = costs[COST_TEMPORARY] * size_bytes;
    costs[COST_PEAK_BLOCKS] = costs[COST_LEAKED_ALLOCATIONS] = blocks;
    costs[COST_PEAK_BYTES] = costs[COST_LEAKED_BYTES] = blocks * size_bytes;
    costs[COST_OWN_PEAK_BYTES] = blocks * size_bytes;
}

static bool has_same_frames(const struct drawn_stack *a, const struct drawn_stack *b)
{
    return a->frame_count == b->frame_count &&
           memcmp(a->frames, b->frames, a->frame_count * sizeof(a->frames[0])) == 0;
}

static bool is_drawn(const struct drawing *drawing, const struct drawn_stack *stack)
{
    for (size_t i = 0; i < drawing->count; i++) {
        if (drawing->stacks[i].thread == stack->thread &&
            has_same_frames(&drawing->stacks[i], stack)) {
            return true;
        }
    }
    return false;
}

static void write_stack(struct drawing *drawing, const struct drawn_stack *stack)
{
    const uint64_t *costs = stack->costs.values;
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        const char *function = g_functions[stack->frames[i]];
        strbuf_printf(&drawing->text, "%slib%u!%s(%s.c:1)", i == 0 ? "" : ";", stack->frames[i] % 2,
                      function, function);
    }
    static const enum cost columns[] = {
        COST_ALLOCATIONS, COST_ALLOCATED_BYTES, COST_FREES,
        COST_FREED_BYTES, COST_TEMPORARY,       COST_TEMPORARY_BYTES,
        COST_PEAK_BLOCKS, COST_PEAK_BYTES,      COST_OWN_PEAK_BYTES,
    };
    for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
        strbuf_printf(&drawing->text, " %lu", (unsigned long)costs[columns[i]]);
    }
    for (unsigned slice = 0; slice < SLICES; slice++) {
        const struct timeline_point *point = &stack->points[slice];
        if (point->allocations != 0 || point->frees != 0 || slice == SLICES - 1) {
            strbuf_printf(&drawing->text, "\n@%u %lu %lu %lu %lu %lu", slice,
                          (unsigned long)point->allocations, (unsigned long)point->allocated_bytes,
                          (unsigned long)point->frees, (unsigned long)point->freed_bytes,
                          (unsigned long)point->temporary);
        }
    }
    strbuf_printf(&drawing->text, "\n");
}

static void draw(struct drawing *drawing, uint64_t *random)
{
    strbuf_clear(&drawing->text);
    drawing->count = 0;
    const uint32_t processes = 1 + (uint32_t)(next_random(random) % 2);
    uint32_t thread = 0;
    for (uint32_t process = 0; process < processes; process++) {
        strbuf_printf(&drawing->text, "process program%u\n", process);
        for (uint64_t threads = 1 + next_random(random) % 3; threads != 0; threads--) {
            strbuf_printf(&drawing->text, "thread worker-%u\n", thread);
            for (uint64_t stacks = 1 + next_random(random) % 4; stacks != 0; stacks--) {
                struct drawn_stack stack = {.process = process, .thread = thread};
                stack.frame_count = 1 + (uint32_t)(next_random(random) % FRAMES_MAX);
                for (uint32_t i = 0; i < stack.frame_count; i++) {
                    stack.frames[i] = (uint32_t)(next_random(random) % FUNCTIONS);
                }
                draw_cells(&stack, random);
                if (!is_drawn(drawing, &stack) && stack.costs.values[COST_ALLOCATIONS] != 0) {
                    write_stack(drawing, &stack);
                    drawing->stacks[drawing->count++] = stack;
                }
            }
            thread++;
        }
    }
}

// A filter, and the numbers that its texts have.
struct drawn_filter {
    char thread[16];
    struct filter filter;
    uint32_t function; // FUNCTIONS: any
    uint32_t ignored;
    uint32_t module;        // 2: any
    uint32_t thread_number; // REC_NONE: any
};

static void draw_filter(struct drawn_filter *out, uint64_t *random)
{
    const uint64_t kind = next_random(random);
    const uint32_t function = (uint32_t)(next_random(random) % FUNCTIONS);
    *out = (struct drawn_filter){
        .function = FUNCTIONS, .ignored = FUNCTIONS, .module = 2, .thread_number = REC_NONE};
    if ((kind & 1) != 0) {
        const char **wanted[] = {&out->filter.function, &out->filter.function_text,
                                 &out->filter.file,     &out->filter.file_text,
                                 &out->filter.focus,    &out->filter.show_from};
        out->function = function;
        *wanted[next_random(random) % ARRAY_LEN(wanted)] = g_functions[function];
    }
    if ((kind & 2) != 0) {
        out->ignored = (function + 1) % FUNCTIONS;
        out->filter.ignore = g_functions[out->ignored];
    }
    if ((kind & 12) == 12) {
        out->module = (uint32_t)(next_random(random) % 2);
        *((kind & 16) != 0 ? &out->filter.module : &out->filter.module_text) =
            out->module == 0 ? "lib0" : "lib1";
    }
    if ((kind & 96) == 96) {
        out->thread_number = (uint32_t)(next_random(random) % 4);
        (void)snprintf(out->thread, sizeof(out->thread), "worker-%u", out->thread_number); // fits
        out->filter.thread = out->thread;
    }
    if ((kind & 384) == 384) {
        out->filter.pid = FIRST_PID + (uint32_t)(next_random(random) % 2);
    }
}

static bool passes(const struct drawn_filter *drawn, const struct drawn_stack *stack)
{
    bool has_function = drawn->function == FUNCTIONS;
    bool has_module = drawn->module == 2;
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        has_function |= stack->frames[i] == drawn->function;
        has_module |= stack->frames[i] % 2 == drawn->module;
        if (stack->frames[i] == drawn->ignored) {
            return false;
        }
    }
    return has_function && has_module &&
           (drawn->thread_number == REC_NONE || drawn->thread_number == stack->thread) &&
           (drawn->filter.pid == 0 || drawn->filter.pid == FIRST_PID + stack->process);
}

// What a selection must have.
struct wanted {
    struct costs costs;
    struct timeline_point points[SLICES];
    uint32_t processes;
    uint32_t threads;
    uint32_t stacks;
    uint32_t rows;
};

static void
add_up(const struct drawing *drawing, const struct drawn_filter *filter, struct wanted *out)
{
    *out = (struct wanted){0};
    uint64_t processes = 0;
    uint64_t threads = 0;
    for (size_t i = 0; i < drawing->count; i++) {
        const struct drawn_stack *stack = &drawing->stacks[i];
        if (!passes(filter, stack)) {
            continue;
        }
        bool is_new = true;
        for (size_t earlier = 0; earlier < i; earlier++) {
            is_new &= !passes(filter, &drawing->stacks[earlier]) ||
                      !has_same_frames(&drawing->stacks[earlier], stack);
        }
        out->rows++;
        out->stacks += is_new;
        processes |= UINT64_C(1) << stack->process;
        threads |= UINT64_C(1) << stack->thread;
        costs_add(&out->costs, &stack->costs);
        for (size_t slice = 0; slice < SLICES; slice++) {
            out->points[slice].allocations += stack->points[slice].allocations;
            out->points[slice].allocated_bytes += stack->points[slice].allocated_bytes;
            out->points[slice].frees += stack->points[slice].frees;
            out->points[slice].freed_bytes += stack->points[slice].freed_bytes;
            out->points[slice].temporary += stack->points[slice].temporary;
        }
    }
    uint64_t live_bytes = 0;
    for (size_t slice = 0; slice < SLICES; slice++) {
        live_bytes += out->points[slice].allocated_bytes - out->points[slice].freed_bytes;
        out->points[slice].live_bytes = live_bytes;
    }
    out->processes = (uint32_t)__builtin_popcountll(processes);
    out->threads = (uint32_t)__builtin_popcountll(threads);
}

// No part is above the peak, which the drawing says whatever the points are.
static void limit(struct wanted *wanted, uint64_t peak_bytes)
{
    for (size_t slice = 0; slice < SLICES; slice++) {
        struct timeline_point *point = &wanted->points[slice];
        point->live_bytes =
            peak_bytes != 0 ? min_u64(point->live_bytes, peak_bytes) : point->live_bytes;
    }
}

static void check_sites(const struct selection *selection, const struct wanted *wanted)
{
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    assert_int_equal(call_sites_build(selection, &sites), ERR_OK);
    struct costs sum = {0};
    struct costs of_stacks = {0};
    for (size_t i = 0; i < sites.sites.len; i++) {
        costs_add(&sum, &sites.sites.items[i].costs);
    }
    for (size_t i = 0; i < sites.stacks.len; i++) {
        costs_add(&of_stacks, call_sites_costs(&sites, sites.stacks.items[i]));
    }
    assert_memory_equal(&sum, &wanted->costs, sizeof(sum));
    assert_memory_equal(&of_stacks, &wanted->costs, sizeof(sum));
}

static void check_groups(const struct selection *selection, const struct wanted *wanted)
{
    static const enum group_by ways[] = {GROUP_BY_PROCESS, GROUP_BY_THREAD};
    for (size_t way = 0; way < ARRAY_LEN(ways); way++) {
        CLEANUP(group_vec_release) struct group_vec groups = {0};
        assert_int_equal(groups_build(selection, ways[way], &groups), ERR_OK);
        struct costs sum = {0};
        for (size_t i = 0; i < groups.len; i++) {
            costs_add(&sum, &groups.items[i].costs);
        }
        assert_memory_equal(&sum, &wanted->costs, sizeof(sum));
        if (!selection->is_everything) {
            assert_int_equal(groups.len, way == 0 ? wanted->processes : wanted->threads);
        }
    }
}

// The parts of each chart add up to the whole in every slice.
static void check_series(const struct selection *selection, const struct wanted *wanted)
{
    for (int value = SERIES_LIVE_BYTES; value <= SERIES_TEMPORARY; value++) {
        CLEANUP(top_series_release) struct top_series series = {0};
        assert_int_equal(
            top_series_build(selection, (enum series_value)value, ROW_GROUPS_BY_STACK, 3, &series),
            ERR_OK);
        assert_int_equal(series.top.len <= 3 && series.top.len <= wanted->stacks, true);
        for (size_t slice = 0; slice < SLICES; slice++) {
            uint64_t sum = series.rest.len == 0 ? 0 : series.rest.items[slice];
            for (size_t i = 0; i < series.top.len; i++) {
                sum += series.top.items[i].values.items[slice];
            }
            assert_int_equal(sum,
                             series_value_of(&wanted->points[slice], (enum series_value)value));
        }
    }
}

static void check(const struct selection *selection, const struct wanted *wanted)
{
    struct summary summary;
    CLEANUP(timeline_release) struct timeline timeline = {0};
    assert_int_equal(selection->rows.len, wanted->rows);
    assert_int_equal(summary_build(selection, &summary), ERR_OK);
    assert_memory_equal(&summary.costs, &wanted->costs, sizeof(summary.costs));
    assert_int_equal(summary.stacks, wanted->stacks);
    if (!selection->is_everything) {
        assert_int_equal(summary.processes, wanted->processes);
        assert_int_equal(summary.threads, wanted->threads);
    }
    assert_int_equal(timeline_build(selection, &timeline), ERR_OK);
    assert_int_equal(timeline.points.len, SLICES);
    assert_memory_equal(timeline.points.items, wanted->points, sizeof(wanted->points));
    check_sites(selection, wanted);
    check_groups(selection, wanted);
    check_series(selection, wanted);
}

static void every_view_of_a_filter_adds_up_what_passes(void **state)
{
    (void)state;
    static struct drawing drawing;
    uint64_t random = 20261124;
    size_t parts = 0;
    for (int run = 0; run < RUNS; run++) {
        draw(&drawing, &random);
        CLEANUP(drawn_profile_release) struct drawn_profile drawn = {0};
        drawn_profile_open(strbuf_text(&drawing.text), &drawn);
        for (int i = 0; i < 6; i++) {
            struct drawn_filter filter;
            struct wanted wanted;
            struct err_info info = {0};
            draw_filter(&filter, &random);
            CLEANUP(selection_release) struct selection selection = {0};
            assert_int_equal(profile_select(drawn.profile, &filter.filter, &selection, &info),
                             ERR_OK);
            add_up(&drawing, &filter, &wanted);
            if (!selection.is_everything) {
                limit(&wanted, drawn.profile->recording.totals.peak_bytes);
            }
            check(&selection, &wanted);
            parts += wanted.rows != 0 && wanted.rows != drawing.count;
        }
    }
    strbuf_release(&drawing.text);
    assert_in_range(parts, RUNS, 6 * RUNS); // enough filters select a part
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_view_of_a_filter_adds_up_what_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
