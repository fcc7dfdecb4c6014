// SPDX-License-Identifier: MIT
// time_range: which blocks of each row belong to a part of the run, and what they cost.
//
// A range is a run of whole time slices. Every block is of one class, by whether it was allocated
// and freed inside the range:
//
//                      from           to
//   in_in        ........[ alloc free ]........
//   in_out       ........[ alloc      ]... free or never
//   out_in       .. alloc[ free       ]........
//   out_out      .. alloc[            ]... free or never
//
// Blocks allocated after the range are of none, nor are those of processes that had left the heap
// before it (process_lives.h). What a process takes with it when it leaves inside is not freed.
// Cells count all births and deaths of a row by slice. Cohorts count the blocks that outlived their
// slice by the slices of their birth and their death. So, exact in steps of a slice:
//
//   in_out = cohorts born inside and freed later
//   in_in  = births inside - in_out
//
// and so forth. docs/format/json.md says what the costs mean under a range.
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

// Slices first .. end - 1.
struct time_range {
    uint32_t first;
    uint32_t end;
    uint32_t classes; // enum block_class
};

// Whether the recording knows when its rows allocated, so that a range can be asked for.
bool time_range_is_known(const struct recording *recording);

// The smallest range that covers from_ms to to_ms (UINT64_MAX: the end of the run); at least one
// slice. The recording must have slices.
struct time_range time_range_covering(const struct recording *recording,
                                      uint64_t from_ms,
                                      uint64_t to_ms,
                                      uint32_t classes);

// When the range has its peak: at the end of its slice in which the whole heap was largest then.
uint64_t time_range_peak_ms(const struct recording *recording, struct time_range range);

// When the range ends; the last slice may be longer than the run.
uint64_t time_range_end_ms(const struct recording *recording, struct time_range range);

// The class of blocks that are allocated before the end of the range.
enum block_class time_range_class(const struct time_range *range, const struct rec_cohort *cohort);

// Whether they were gone before it: freed, or taken along by their process, which left in slice
// `left`, or REC_NONE.
bool time_range_is_over(const struct time_range *range,
                        const struct rec_cohort *cohort,
                        uint32_t left);

// The costs of every row of the recording within the range. Those of COST_TEMPORARY_BYTES and
// COST_OWN_PEAK_BYTES are not known and 0. ERR_NO_MEMORY.
enum err time_range_costs(const struct profile *profile,
                          struct time_range range,
                          struct costs_vec *out) MUST_USE;
