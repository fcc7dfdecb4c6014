// SPDX-License-Identifier: MIT
// process_lives: the time slice in which the blocks of each process left the heap.
//
// A process that ends or executes another program takes its live blocks out of the heap. They stay
// leaked in the costs of its rows. So a row is live at the end of a slice only if its process left
// in a later slice, or never. The last process of a recording never leaves: the heap keeps its
// blocks.
//
// The history of rows may be coarser than the slices (the notes coarse_cells and coarse_cohorts).
// Everything in a step of several slices then counts in the step's first slice. To match, a process
// also leaves in the first slice of its step; live and dead blocks are never added up.
// Old files do not record when a process left. It then leaves when it ended, except for the last
// process.
// Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

// A zeroed struct is valid for process_lives_release.
struct process_lives {
    struct u32_vec left_slices; // by process; REC_NONE if it never leaves
    bool some_leave;            // else all of them are REC_NONE
    uint32_t cell_step;         // in slices; at least 1
    uint32_t cohort_step;
};

enum err process_lives_init(struct process_lives *lives, const struct recording *recording)
    MUST_USE;
void process_lives_release(struct process_lives *lives);

// The slice from whose end on the blocks of `process` no longer count, or REC_NONE. The history has
// steps of one slice, of cells, or of cohorts.
uint32_t process_lives_left(const struct process_lives *lives, uint32_t process);
uint32_t process_lives_left_of_cells(const struct process_lives *lives, uint32_t process);
uint32_t process_lives_left_of_cohorts(const struct process_lives *lives, uint32_t process);
