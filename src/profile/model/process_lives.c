// SPDX-License-Identifier: MIT
#include "profile/model/process_lives.h"

#include "base/compiler.h"
#include "base/minmax.h"

// The number of slices in a step of the history, from the note called `note`.
static uint32_t step_of(const struct recording *recording, const char *note)
{
    const uint64_t slices = rec_counter_value(recording, note);
    return slices > 0 && slices < REC_NONE ? (uint32_t)slices : 1;
}

static bool has_left_times(const struct recording *recording)
{
    for (size_t i = 0; i < recording->process_count; i++) {
        if (recording->processes[i].left_ms != 0) {
            return true;
        }
    }
    return false;
}

static uint64_t latest_end_ms(const struct recording *recording)
{
    uint64_t latest_ms = 0;
    for (size_t i = 0; i < recording->process_count; i++) {
        const uint64_t end_ms = recording->processes[i].end_ms;
        latest_ms = max_u64(latest_ms, end_ms);
    }
    return latest_ms;
}

enum err process_lives_init(struct process_lives *lives, const struct recording *recording)
{
    const bool has_times = has_left_times(recording);
    const uint64_t latest_ms = latest_end_ms(recording);
    lives->cell_step = step_of(recording, "coarse_cells");
    lives->cohort_step = step_of(recording, "coarse_cohorts");
    TRY(u32_vec_resize(&lives->left_slices, recording->process_count));
    for (size_t i = 0; i < recording->process_count; i++) {
        const struct rec_process *process = &recording->processes[i];
        const bool has_left =
            has_times ? process->left_ms != 0 : process->end_ms != 0 && process->end_ms < latest_ms;
        const uint64_t left_ms = has_times ? process->left_ms - 1 : process->end_ms;
        const uint64_t slice = recording->slice_ms > 0 ? left_ms / recording->slice_ms : REC_NONE;
        lives->left_slices.items[i] =
            has_left && slice < recording->slice_count ? (uint32_t)slice : REC_NONE;
        lives->some_leave = lives->some_leave || lives->left_slices.items[i] != REC_NONE;
    }
    return ERR_OK;
}

void process_lives_release(struct process_lives *lives)
{
    u32_vec_release(&lives->left_slices);
}

uint32_t process_lives_left(const struct process_lives *lives, uint32_t process)
{
    return lives->left_slices.items[process];
}

static uint32_t begin_of_step(uint32_t slice, uint32_t step)
{
    return slice == REC_NONE ? REC_NONE : slice - slice % step;
}

uint32_t process_lives_left_of_cells(const struct process_lives *lives, uint32_t process)
{
    return begin_of_step(process_lives_left(lives, process), lives->cell_step);
}

uint32_t process_lives_left_of_cohorts(const struct process_lives *lives, uint32_t process)
{
    return begin_of_step(process_lives_left(lives, process), lives->cohort_step);
}
