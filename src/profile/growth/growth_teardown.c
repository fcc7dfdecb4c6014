// SPDX-License-Identifier: MIT
#include "profile/growth/growth_teardown.h"

#include "base/compiler.h"
#include "base/minmax.h"
#include "base/order.h"

enum {
    PROCESSES_MAX = 8,
    LIFE_DIVISOR = 32,
    STEPS_MIN = 2,
    FALL_TIMES = 2,
};

// On a busy machine a recording may continue for some time after its last process ended. In old
// files a process that was idle at its end has the end of its last event: it counts to the end of
// the recording.
size_t growth_process_end(const struct recording *recording, uint32_t process, uint32_t left)
{
    if (left != REC_NONE) {
        return (size_t)left + 1;
    }
    const struct rec_process *of = &recording->processes[process];
    const uint64_t last = of->end_ms / recording->slice_ms;
    return of->end_ms > 0 && of->end_error_ms != 0 && last < recording->slice_count
               ? (size_t)last + 1
               : recording->slice_count;
}

// A process that is looked at.
struct subject {
    uint32_t process;
    uint64_t allocated_bytes;
};
DEFINE_VEC(subject_vec, struct subject);

static int compare_subjects(const void *left, const void *right)
{
    const struct subject *a = left;
    const struct subject *b = right;
    return order_u64(b->allocated_bytes, a->allocated_bytes) ?: order_u64(a->process, b->process);
}

static MUST_USE enum err find_subjects(const struct profile *profile, struct subject_vec *out)
{
    const struct recording *recording = &profile->recording;
    TRY(subject_vec_resize(out, recording->process_count));
    for (uint32_t i = 0; i < recording->process_count; i++) {
        out->items[i] = (struct subject){.process = i};
    }
    for (uint32_t row = 0; row < recording->row_count; row++) {
        out->items[profile_process_of_row(profile, row)].allocated_bytes +=
            recording->rows[row].allocated_bytes;
    }
    subject_vec_sort(out, compare_subjects);
    out->len = min_u64(out->len, PROCESSES_MAX);
    return ERR_OK;
}

// Find the teardown in the levels of a process.
static uint32_t find_one(const struct profile *profile, uint32_t process, const uint64_t *levels)
{
    const struct recording *recording = &profile->recording;
    const size_t step = max_u64(profile->lives.cohort_step, profile->lives.cell_step);
    const size_t end =
        growth_process_end(recording, process, process_lives_left(&profile->lives, process));
    const size_t begin = min_u64(recording->processes[process].start_ms / recording->slice_ms, end);
    const size_t window = max_u64(STEPS_MIN * step, (end - begin) / LIFE_DIVISOR);
    if (end - begin <= window) {
        return REC_NONE;
    }
    size_t highest = end - window;
    for (size_t i = highest; i < end; i++) {
        highest = levels[i] >= levels[highest] ? i : highest;
    }
    const size_t teardown = highest + 1 - (highest + 1) % step;
    return teardown < end && FALL_TIMES * levels[end - 1] <= levels[highest] ? (uint32_t)teardown
                                                                             : REC_NONE;
}

enum err growth_teardown_find(const struct profile *profile, struct u32_vec *out)
{
    const struct recording *recording = &profile->recording;
    CLEANUP(subject_vec_release) struct subject_vec subjects = {0};
    CLEANUP(u64_vec_release) struct u64_vec levels = {0}; // by subject and slice
    TRY(find_subjects(profile, &subjects));
    TRY(u64_vec_resize(&levels, subjects.len * recording->slice_count));
    TRY(u32_vec_resize(out, recording->process_count));
    for (size_t i = 0; i < recording->process_count; i++) {
        out->items[i] = REC_NONE;
    }
    for (uint32_t i = 0; i < subjects.len; i++) {
        out->items[subjects.items[i].process] = i;
    }
    for (size_t i = 0; i < recording->cell_count; i++) {
        const struct rec_cell *cell = &recording->cells[i];
        const uint32_t place = out->items[profile_process_of_row(profile, cell->row)];
        if (place != REC_NONE) {
            levels.items[place * recording->slice_count + cell->slice] +=
                cell->allocated_bytes - cell->freed_bytes;
        }
    }
    for (size_t i = 0; i < subjects.len; i++) {
        uint64_t *of = levels.items + i * recording->slice_count;
        for (size_t slice = 1; slice < recording->slice_count; slice++) {
            of[slice] += of[slice - 1];
        }
        const uint32_t process = subjects.items[i].process;
        out->items[process] = find_one(profile, process, of);
    }
    return ERR_OK;
}

struct growth_held
growth_teardown_held(const struct recording *recording, uint32_t row, uint32_t teardown)
{
    struct growth_held held = {0};
    FOR_ENTRIES_OF_ROW (cohort, recording->cohorts, recording->cohort_count, row) {
        if (cohort->born_slice < teardown &&
            (cohort->freed_slice == REC_NONE || cohort->freed_slice >= teardown)) {
            held.bytes += cohort->bytes;
            held.blocks += cohort->blocks;
        }
    }
    return held;
}
