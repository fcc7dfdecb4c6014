// SPDX-License-Identifier: MIT
// time_range: which blocks of each row belong to a part of the run, and their costs.
//
// A range is a sequence of whole time slices. Each block belongs to one class, by whether it was
// allocated and freed inside the range:
//
//                      from           to
//   in_in        ........[ alloc free ]........
//   in_out       ........[ alloc      ]... free or never
//   out_in       .. alloc[ free       ]........
//   out_out      .. alloc[            ]... free or never
//
// Blocks allocated after the range have no class. Blocks of processes that left the heap before the
// range have none either (process_lives.h). A process that leaves inside the range does not free
// its blocks.
// Cells count all births and deaths of a row by slice. Cohorts count the blocks that outlived their
// slice, by the slices of their birth and their death. So the classes are exact, to a slice:
//
//   in_out = cohorts born inside and freed later
//   in_in  = births inside - in_out
//
// and so on. docs/format/json.md defines the costs under a range.
// Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/model/cost.h"
#include "profile/model/profile.h"
#include "recording/format/tables.h"

enum block_class {
    BLOCKS_IN_IN = 1 << 0,
    BLOCKS_IN_OUT = 1 << 1,
    BLOCKS_OUT_IN = 1 << 2,
    BLOCKS_OUT_OUT = 1 << 3,
};

// The names of the classes, by the number of their bit; ended by NULL.
extern const char *const block_class_names[];

// Slices first .. end - 1.
struct time_range {
    uint32_t first;
    uint32_t end;
    uint32_t classes; // enum block_class
};

// Whether the recording knows when its rows allocated. Only then a range is allowed.
bool time_range_is_known(const struct recording *recording);

// The smallest range that covers from_ms to to_ms (UINT64_MAX: the end of the run), at least one
// slice. The recording must have slices.
struct time_range time_range_covering(const struct recording *recording,
                                      uint64_t from_ms,
                                      uint64_t to_ms,
                                      uint32_t classes);

// The end of that slice of the range at whose end the whole heap was largest.
uint64_t time_range_peak_ms(const struct recording *recording, struct time_range range);

// The end of the range; the last slice may end after the run.
uint64_t time_range_end_ms(const struct recording *recording, struct time_range range);

// The class of blocks, which must be allocated before the end of the range.
enum block_class time_range_class(const struct time_range *range, const struct rec_cohort *cohort);

// Whether the blocks ended before the range: freed, or left with their process in slice `left`
// (REC_NONE: it never left).
bool time_range_is_over(const struct time_range *range,
                        const struct rec_cohort *cohort,
                        uint32_t left);

// Compute the costs of every row of the recording within the range. COST_TEMPORARY_BYTES and
// COST_OWN_PEAK_BYTES are unknown and 0. ERR_NO_MEMORY.
enum err time_range_costs(const struct profile *profile,
                          struct time_range range,
                          struct costs_vec *out) MUST_USE;
