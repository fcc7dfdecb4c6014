// SPDX-License-Identifier: MIT
#include "profile/growth/growth.h"

#include <math.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "base/order.h"
#include "profile/accuracy/sampling.h"
#include "profile/growth/growth_repeats.h"
#include "profile/select/time_range.h"

bool growth_is_known(const struct recording *recording)
{
    return time_range_is_known(recording);
}

DEFINE_VEC(stack_birth_vec, struct stack_birth);

// The unit of classification: the rows of one process in a group.
struct part {
    const struct growth *growth; // borrowed
    uint32_t group;
    uint32_t process;
    size_t begin; // its first slice, at the start of a step of births
    size_t end;
    struct u64_vec live_bytes;
    struct u64_vec birth_bytes;
    struct stack_birth_vec stack_births;
    uint64_t allocations;
    uint64_t kept;
    bool has_births;
};

// The allocations of whole processes by slice, of those that are judged.
struct process_work {
    struct u32_vec places; // by process; REC_NONE: not judged
    struct u64_vec counts; // by place and slice
    uint32_t place_count;
};

static void process_work_release(struct process_work *work)
{
    u32_vec_release(&work->places);
    u64_vec_release(&work->counts);
}

static void part_release(struct part *part)
{
    u64_vec_release(&part->live_bytes);
    u64_vec_release(&part->birth_bytes);
    stack_birth_vec_release(&part->stack_births);
}

static const struct recording *recording_of(const struct growth *growth)
{
    return &growth->groups.profile->recording;
}

static uint32_t process_of(const struct recording *recording, uint32_t row)
{
    return recording->threads[recording->rows[row].thread].process;
}

// Return what a row has left, or what it held when the teardown of its process began: nothing if
// that has none.
static struct growth_held held_of(const struct growth *growth, uint32_t index)
{
    const struct recording *recording = recording_of(growth);
    const struct rec_row *row = &recording->rows[index];
    if (growth->teardowns.len == 0) {
        return (struct growth_held){.bytes = row->allocated_bytes - row->freed_bytes,
                                    .blocks = row->allocations - row->frees};
    }
    const uint32_t teardown = growth->teardowns.items[process_of(recording, index)];
    return teardown != REC_NONE ? growth_teardown_held(recording, index, teardown)
                                : (struct growth_held){0};
}

// Find the process with the most unfreed bytes of the group.
static MUST_USE enum err find_process(const struct growth *growth, uint32_t group, uint32_t *out)
{
    const struct row_groups *groups = &growth->groups;
    const struct recording *recording = recording_of(growth);
    CLEANUP(u64_vec_release) struct u64_vec unfreed = {0}; // by process
    TRY(u64_vec_resize(&unfreed, recording->process_count));
    uint32_t most = REC_NONE;
    for (uint32_t i = groups->row_first.items[group]; i < groups->row_first.items[group + 1]; i++) {
        const uint32_t process = process_of(recording, groups->rows.items[i]);
        unfreed.items[process] += held_of(growth, groups->rows.items[i]).bytes;
        most = most == REC_NONE || unfreed.items[process] > unfreed.items[most] ? process : most;
    }
    *out = most;
    return ERR_OK;
}

static MUST_USE enum err
add_births(const struct recording *recording, uint32_t row, struct part *part)
{
    FOR_ENTRIES_OF_ROW (cohort, recording->cohorts, recording->cohort_count, row) {
        const bool is_held = cohort->freed_slice == REC_NONE ||
                             (part->growth->teardowns.len > 0 && cohort->freed_slice >= part->end);
        if (is_held && cohort->born_slice >= part->begin && cohort->born_slice < part->end) {
            part->birth_bytes.items[cohort->born_slice - part->begin] += cohort->bytes;
            part->has_births = true;
            TRY(stack_birth_vec_push(&part->stack_births,
                                     (struct stack_birth){.stack = recording->rows[row].node,
                                                          .slice = cohort->born_slice}));
        }
    }
    return ERR_OK;
}

// Store differences; add_up_levels() adds them up.
static void add_levels(const struct recording *recording, uint32_t row, struct part *part)
{
    FOR_ENTRIES_OF_ROW (cell, recording->cells, recording->cell_count, row) {
        if (cell->slice >= part->begin && cell->slice < part->end) {
            part->live_bytes.items[cell->slice - part->begin] +=
                cell->allocated_bytes - cell->freed_bytes;
        }
    }
}

static void add_up_levels(struct part *part)
{
    uint64_t level = 0;
    for (size_t i = 0; i < part->live_bytes.len; i++) {
        level += part->live_bytes.items[i];
        part->live_bytes.items[i] = level;
    }
}

static MUST_USE enum err fill_part(struct part *part)
{
    const struct growth *growth = part->growth;
    const struct row_groups *groups = &growth->groups;
    const struct recording *recording = recording_of(growth);
    const struct process_lives *lives = &groups->profile->lives;
    const uint64_t start = recording->processes[part->process].start_ms / recording->slice_ms;
    const uint32_t left = process_lives_left(lives, part->process);
    part->end = growth->teardowns.len > 0 ? growth->teardowns.items[part->process]
                                          : growth_process_end(recording, part->process, left);
    part->begin = start < part->end ? (size_t)start - (size_t)start % lives->cohort_step : 0;
    TRY(u64_vec_resize(&part->live_bytes, part->end - part->begin));
    TRY(u64_vec_resize(&part->birth_bytes, part->end - part->begin));
    for (uint32_t i = groups->row_first.items[part->group];
         i < groups->row_first.items[part->group + 1]; i++) {
        const uint32_t row = groups->rows.items[i];
        if (profile_process_of_row(groups->profile, row) == part->process) {
            part->allocations += recording->rows[row].allocations;
            part->kept += held_of(growth, row).blocks;
            TRY(add_births(recording, row, part));
            add_levels(recording, row, part);
        }
    }
    add_up_levels(part);
    return ERR_OK;
}

// How long the last `slices` of a process took. The recording's last slice ends with the run.
static uint64_t duration_of_last(const struct part *part, size_t slices)
{
    const struct recording *recording = recording_of(part->growth);
    const struct time_range range = {.end = (uint32_t)part->end};
    const uint64_t start_ms = (part->end - slices) * recording->slice_ms;
    const uint64_t end_ms = time_range_end_ms(recording, range);
    return end_ms > start_ms ? end_ms - start_ms : 0;
}

// Give each process that the first entries are about a place, and count its allocations.
static MUST_USE enum err
count_work(const struct growth *growth, size_t entry_count, struct process_work *out)
{
    const struct recording *recording = recording_of(growth);
    TRY(u32_vec_resize(&out->places, recording->process_count));
    for (size_t i = 0; i < recording->process_count; i++) {
        out->places.items[i] = REC_NONE;
    }
    for (size_t i = 0; i < entry_count; i++) {
        uint32_t *place = &out->places.items[growth->entries.items[i].process];
        *place = *place == REC_NONE ? out->place_count++ : *place;
    }
    TRY(u64_vec_resize(&out->counts, out->place_count * recording->slice_count));
    for (size_t i = 0; i < recording->cell_count; i++) {
        const struct rec_cell *cell = &recording->cells[i];
        const uint32_t thread = recording->rows[cell->row].thread;
        const size_t place = out->places.items[recording->threads[thread].process];
        if (place != REC_NONE) {
            out->counts.items[place * recording->slice_count + cell->slice] += cell->allocations;
        }
    }
    return ERR_OK;
}

static MUST_USE enum err judge_entry(const struct growth *growth,
                                     const struct process_work *work,
                                     struct growth_entry *entry)
{
    const struct recording *recording = recording_of(growth);
    CLEANUP(part_release)
    struct part part = {.growth = growth, .group = entry->group, .process = entry->process};
    TRY(fill_part(&part));
    const size_t place = work->places.items[part.process];
    const struct growth_history history = {
        .count = part.live_bytes.len,
        .live_bytes = part.live_bytes.items,
        .birth_bytes = part.birth_bytes.items,
        .work = work->counts.items + place * recording->slice_count + part.begin,
        .allocations = part.allocations,
        .kept = part.kept,
        .has_stacks = true,
        .repeats = growth_repeats_count(part.stack_births.items, part.stack_births.len),
        .step = growth->groups.profile->lives.cohort_step,
    };
    struct growth_verdict verdict;
    TRY(growth_judge(&history, &verdict));
    // What was recorded of an attached process is not its start.
    const bool is_later = (recording->processes[part.process].flags & REC_PROCESS_ATTACHED) != 0;
    const bool is_start = verdict.class == GROWTH_START_UP;
    entry->class = is_start && is_later ? GROWTH_STOPPED : verdict.class;
    entry->confidence = verdict.confidence;
    const struct sampling sampling = sampling_of(recording);
    const double slices_per_s = 1000 / (double)recording->slice_ms;
    entry->slope_bytes_per_s = verdict.slope_bytes * slices_per_s;
    entry->slope_ms = verdict.grew_until == history.count
                          ? duration_of_last(&part, verdict.slope_slices)
                          : verdict.slope_slices * recording->slice_ms;
    if (verdict.grew_until > 0 && verdict.grew_until < history.count) {
        entry->until_ms = (part.begin + verdict.grew_until) * recording->slice_ms;
    }
    entry->is_idle_since = verdict.is_idle_since;
    entry->slope_error =
        2 * sqrt(sampling_variance(&sampling) * verdict.slope_squares) * slices_per_s;
    if (part.has_births) {
        entry->latest_birth_slice = (uint32_t)(part.begin + verdict.latest_birth);
    }
    return ERR_OK;
}

static MUST_USE enum err describe_entry(const struct growth *growth,
                                        const struct process_work *work,
                                        struct timeline_point_vec *points,
                                        struct growth_entry *entry)
{
    row_groups_timeline(&growth->groups, entry->group, points->items);
    for (uint32_t i = 0; i < points->len; i++) {
        if (points->items[i].allocations > 0) {
            entry->first_slice = entry->first_slice == REC_NONE ? i : entry->first_slice;
            entry->last_slice = i;
        }
    }
    return growth_is_known(recording_of(growth)) ? judge_entry(growth, work, entry) : ERR_OK;
}

static int compare_entries(const void *left, const void *right)
{
    const struct growth_entry *a = left;
    const struct growth_entry *b = right;
    return order_u64(b->held.bytes, a->held.bytes) ?: order_u64(a->group, b->group);
}

static struct growth_held held_of_group(const struct growth *growth, size_t group)
{
    const struct row_groups *groups = &growth->groups;
    const struct costs *costs = &groups->groups.items[group].costs;
    struct growth_held sum = {.bytes = costs_get(costs, COST_LEAKED_BYTES),
                              .blocks = costs_get(costs, COST_LEAKED_ALLOCATIONS)};
    if (growth->teardowns.len > 0) {
        sum = (struct growth_held){0};
        for (uint32_t i = groups->row_first.items[group]; i < groups->row_first.items[group + 1];
             i++) {
            const struct growth_held held = held_of(growth, groups->rows.items[i]);
            sum.bytes += held.bytes;
            sum.blocks += held.blocks;
        }
    }
    return sum;
}

enum err growth_of_groups(const struct selection *selection,
                          struct row_groups *groups,
                          size_t described_max,
                          bool until_teardown,
                          struct growth *out)
{
    CLEANUP(growth_release) struct growth growth = {.groups = *groups};
    CLEANUP(timeline_point_vec_release) struct timeline_point_vec points = {0};
    *groups = (struct row_groups){0};
    TRY(timeline_point_vec_resize(&points, selection->profile->recording.slice_count));
    TRY(until_teardown ? growth_teardown_find(selection->profile, &growth.teardowns) : ERR_OK);
    for (size_t i = 0; i < growth.groups.groups.len; i++) {
        const struct growth_held held = held_of_group(&growth, i);
        if (held.blocks > 0) {
            struct growth_entry entry = {.group = (uint32_t)i,
                                         .held = held,
                                         .first_slice = REC_NONE,
                                         .last_slice = REC_NONE,
                                         .latest_birth_slice = REC_NONE};
            TRY(growth_entry_vec_push(&growth.entries, entry));
        }
    }
    growth_entry_vec_sort(&growth.entries, compare_entries);
    const size_t described = min_u64(growth.entries.len, described_max);
    CLEANUP(process_work_release) struct process_work work = {0};
    for (size_t i = 0; i < described; i++) {
        struct growth_entry *entry = &growth.entries.items[i];
        TRY(find_process(&growth, entry->group, &entry->process));
    }
    TRY(count_work(&growth, described, &work));
    for (size_t i = 0; i < described; i++) {
        TRY(cancel_step(selection->cancel));
        TRY(describe_entry(&growth, &work, &points, &growth.entries.items[i]));
    }
    *out = TAKE(growth);
    return ERR_OK;
}

enum err growth_build(const struct selection *selection,
                      enum row_group_by by,
                      size_t described_max,
                      struct growth *out)
{
    struct row_groups groups = {0};
    TRY(row_groups_build(selection, by, &groups));
    return growth_of_groups(selection, &groups, described_max, false, out);
}

void growth_release(struct growth *growth)
{
    row_groups_release(&growth->groups);
    growth_entry_vec_release(&growth->entries);
    u32_vec_release(&growth->teardowns);
}
