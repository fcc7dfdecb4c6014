// SPDX-License-Identifier: MIT
// Tests of processes that leave the heap, where the history of stacks is coarser than the slices.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "profile/model/process_lives.h"
#include "profile/select/time_range.h"
#include "profile/test_support/drawn_profile.h"
#include "profile/time/cut_timeline.h"
#include "profile/time/top_series.h"

// Process two holds 90 bytes to the end, and three 1 byte from slice 8 on. The 100 bytes of the
// first process, which leaves at 250 ms, are in no sum with them.
static void assert_processes_do_not_meet(const struct recording *recording,
                                         struct rec_counter notes[static 2])
{
    struct recording coarse = *recording;
    coarse.counters = notes;
    coarse.counter_count = 2;
    CLEANUP(profile_closep) struct profile *profile = NULL;
    assert_int_equal(profile_from_recording(&coarse, NULL, NULL, &profile, NULL), ERR_OK);
    for (uint32_t first = 0; first < coarse.slice_count; first++) {
        struct filter filter = {
            .has_range = true,
            .range = {first, (uint32_t)coarse.slice_count,
                      BLOCKS_IN_IN | BLOCKS_IN_OUT | BLOCKS_OUT_IN | BLOCKS_OUT_OUT}};
        CLEANUP(selection_release) struct selection selection = {0};
        CLEANUP(cut_timeline_release) struct cut_timeline timeline = {0};
        assert_int_equal(profile_select(profile, &filter, &selection, NULL), ERR_OK);
        assert_int_equal(cut_timeline_build(&selection, &timeline), ERR_OK);
        uint64_t peak_bytes = 0;
        for (size_t row = 0; row < selection.rows.len; row++) {
            const struct costs costs = selection_costs(&selection, row);
            peak_bytes += costs_get(&costs, COST_PEAK_BYTES);
        }
        assert_in_range(peak_bytes, 90, 91);
        for (size_t slice = first; slice < coarse.slice_count; slice++) {
            assert_in_range(timeline.points.items[slice].live_bytes, 90, 91);
        }
    }
}

// If the history of stacks is coarser than the slices, dead and live blocks of one step are never
// added up, for any part of the run.
static void processes_of_one_coarse_step_do_not_meet(void **state)
{
    (void)state;
    CLEANUP(drawn_profile_release) struct drawn_profile fixture = {0};
    // The processes have the names of the notes, so that the recording has these strings.
    drawn_profile_open("process coarse_cells\nleft 250\n"
                       "one 1 100 0 0 0 0 1 100 100\n@0 1 100 0 0 0\ncohort 0 - 1 100\n"
                       "process coarse_cohorts\n"
                       "two 1 90 0 0 0 0 0 0 90\n@0 1 90 0 0 0\ncohort 0 - 1 90\n"
                       "three 1 1 0 0 0 0 0 0 1\n@8 1 1 0 0 0\ncohort 8 - 1 1\n",
                       &fixture);
    struct rec_counter notes[2] = {
        {.name = fixture.recording.processes[0].executable, .value = 4},
        {.name = fixture.recording.processes[1].executable, .value = 8},
    };
    assert_processes_do_not_meet(&fixture.recording, notes);
    struct rec_counter swapped[2] = {notes[1], notes[0]};
    assert_processes_do_not_meet(&fixture.recording, swapped);
}

// A stack's amount in a coarse step is distributed as the total is; the sum is kept, and no part
// exceeds the total.
static void charts_of_a_coarse_history_add_up(void **state)
{
    (void)state;
    CLEANUP(drawn_profile_release) struct drawn_profile fixture = {0};
    drawn_profile_open("process coarse_cells\n"
                       "one 8 80 4 40 0 0 0 0 80\n@0 8 80 4 40 0\n"
                       "two 4 40 0 0 0 0 0 0 40\n@0 4 40 0 0 0\n"
                       "three 1 1 0 0 0 0 0 0 1\n@4 1 1 0 0 0\n",
                       &fixture);
    struct rec_counter note = {.name = fixture.recording.processes[0].executable, .value = 4};
    struct recording coarse = fixture.recording;
    struct rec_slice slices[5] = {{.allocations = 2, .allocated_bytes = 20, .live_bytes = 20},
                                  {.live_bytes = 20},
                                  {.allocations = 10, .allocated_bytes = 100, .live_bytes = 120},
                                  {.frees = 4, .freed_bytes = 40, .live_bytes = 80},
                                  {.allocations = 1, .allocated_bytes = 1, .live_bytes = 81}};
    coarse.counters = &note;
    coarse.counter_count = 1;
    coarse.slices = slices;
    assert_int_equal(coarse.slice_count, ARRAY_LEN(slices));
    CLEANUP(profile_closep) struct profile *profile = NULL;
    CLEANUP(selection_release) struct selection selection = {0};
    assert_int_equal(profile_from_recording(&coarse, NULL, NULL, &profile, NULL), ERR_OK);
    assert_int_equal(profile_select(profile, NULL, &selection, NULL), ERR_OK);
    for (int value = SERIES_LIVE_BYTES; value <= SERIES_ALLOCATED_BYTES; value++) {
        CLEANUP(top_series_release) struct top_series series = {0};
        assert_int_equal(
            top_series_build(&selection, (enum series_value)value, ROW_GROUPS_BY_STACK, 2, &series),
            ERR_OK);
        for (size_t i = 0; i < ARRAY_LEN(slices); i++) {
            const uint64_t parts = series.top.items[0].values.items[i] +
                                   series.top.items[1].values.items[i] + series.rest.items[i];
            const uint64_t whole[] = {[SERIES_LIVE_BYTES] = slices[i].live_bytes,
                                      [SERIES_ALLOCATIONS] = slices[i].allocations,
                                      [SERIES_ALLOCATED_BYTES] = slices[i].allocated_bytes};
            assert_int_equal(parts, whole[value]);
        }
        if (value == SERIES_ALLOCATIONS) { // 8 of 12, in the slices in which there were 2 and 10
            assert_int_equal(series.top.items[0].values.items[0], 1);
            assert_int_equal(series.top.items[0].values.items[2], 7);
        }
    }
}

// Recordings of older versions do not say when processes left the heap. Those that ended before the
// last one left when they ended.
static void a_process_leaves_in_the_slice_that_the_recording_says(void **state)
{
    (void)state;
    enum {
        PROCESSES = 3,
        NEVER = REC_NONE
    };
    static const struct {
        uint64_t end_ms[PROCESSES];
        uint64_t left_ms[PROCESSES]; // one more; 0: not before the end
        uint64_t slice_ms;
        uint32_t slices[PROCESSES];
    } cases[] = {
        {{250, 900, 900}, {0, 0, 0}, 100, {2, NEVER, NEVER}},
        {{0, 300, 299}, {0, 0, 0}, 100, {NEVER, NEVER, 2}},
        {{250, 900, 900}, {401, 0, 0}, 100, {4, NEVER, NEVER}},
        {{250, 300, 900}, {0, 400, 0}, 100, {NEVER, 3, NEVER}},
        {{0, 0, 0}, {1, 1000, 1001}, 100, {0, 9, NEVER}}, // beyond the last slice
        {{250, 900, 900}, {0, 0, 0}, 0, {NEVER, NEVER, NEVER}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct rec_process processes[PROCESSES] = {0};
        for (size_t k = 0; k < PROCESSES; k++) {
            processes[k].end_ms = cases[i].end_ms[k];
            processes[k].left_ms = cases[i].left_ms[k];
        }
        const struct recording recording = {.processes = processes,
                                            .process_count = PROCESSES,
                                            .slice_ms = cases[i].slice_ms,
                                            .slice_count = 10};
        CLEANUP(process_lives_release) struct process_lives lives = {0};
        assert_int_equal(process_lives_init(&lives, &recording), ERR_OK);
        for (size_t k = 0; k < PROCESSES; k++) {
            print_message("case %zu, process %zu\n", i, k);
            assert_int_equal(lives.left_slices.items[k], cases[i].slices[k]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_leaves_in_the_slice_that_the_recording_says),
        cmocka_unit_test(processes_of_one_coarse_step_do_not_meet),
        cmocka_unit_test(charts_of_a_coarse_history_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
