// SPDX-License-Identifier: MIT
// process_lives: in which time slice the blocks of each process left the heap.
//
// A process that ends, or executes another program, takes what it still holds out of the heap; that
// it never freed it stays in the costs of its rows. So of a row there is alive at the end of a
// slice what it has not freed, if its process has not left in that slice or before. The last
// process of a recording never leaves: the heap ends with what it held.
//
// The history of rows may be coarser than the slices (the notes coarse_cells and coarse_cohorts):
// then all that happened in a step of several slices counts in the step's first. So that dead and
// living are never added up, a process leaves in the first slice of its step, too.
// Old files do not say who left when: there it is when a process ended, but for the last one.
// Context: H; pure.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

// Zeroed is valid, for releasing.
struct process_lives {
    struct u32_vec left_slices; // by process; REC_NONE: it never leaves
    uint32_t cell_step;         // slices; at least 1
    uint32_t cohort_step;
};

enum err process_lives_init(struct process_lives *lives, const struct recording *recording)
    MUST_USE;
void process_lives_release(struct process_lives *lives);

// From the end of which slice on nothing that `process` held counts, or REC_NONE, in a history of
// steps of one slice, of cells, and of cohorts.
uint32_t process_lives_left(const struct process_lives *lives, uint32_t process);
uint32_t process_lives_left_of_cells(const struct process_lives *lives, uint32_t process);
uint32_t process_lives_left_of_cohorts(const struct process_lives *lives, uint32_t process);
