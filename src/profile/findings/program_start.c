// SPDX-License-Identifier: MIT
#include "profile/findings/program_start.h"

#include "base/minmax.h"
#include "profile/growth/growth_teardown.h"

enum {
    START_MS_MAX = 20000,
    STACKS_MIN = 200,
    QUARTERS = 4,
    NEW_DIVISOR = 16,
};

bool program_start_is_all(const struct profile *profile, uint32_t process, uint64_t until_ms)
{
    const struct recording *recording = &profile->recording;
    const struct rec_process *of = &recording->processes[process];
    const size_t life_end =
        growth_process_end(recording, process, process_lives_left(&profile->lives, process));
    const size_t end = until_ms > 0 ? min_u64(until_ms / recording->slice_ms, life_end) : life_end;
    const size_t begin = min_u64(of->start_ms / recording->slice_ms, end);
    if ((of->flags & REC_PROCESS_ATTACHED) != 0 ||
        (end - begin) * recording->slice_ms > START_MS_MAX) {
        return false;
    }
    uint64_t all = 0;
    uint64_t late = 0;
    uint32_t before = REC_NONE; // the row of the cell before: cells are sorted by row and slice
    for (size_t i = 0; i < recording->cell_count; i++) {
        const struct rec_cell *cell = &recording->cells[i];
        const bool is_first = cell->row != before && cell->allocations > 0;
        before = is_first ? cell->row : before;
        if (is_first && cell->slice < end &&
            profile_process_of_row(profile, cell->row) == process) {
            all++;
            late += cell->slice >= end - (end - begin) / QUARTERS;
        }
    }
    return all >= STACKS_MIN && late * NEW_DIVISOR >= all;
}
