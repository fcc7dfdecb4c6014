// SPDX-License-Identifier: MIT
// push_part: divides a checkpoint into profiles that a collector takes: one for each process, each
// within limits of samples.
//
//   rows of a checkpoint --by process--> part --too many rows--> alone | in [other]
//
// At most PUSH_PARTS_MAX processes have a profile of their own, those with the most; the others
// share one. Within a part the rows with the largest share of any figure stay alone, so the rarest
// stacks are those that are added up.
// Context: H; pure.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "formats/export/exporter.h"
#include "host/containers/vec.h"
#include "profile/model/profile.h"
#include "profile/select/filter.h"

enum {
    PUSH_PARTS_MAX = 32, // besides the one of all other processes
};

struct push_part {
    uint32_t process; // REC_NONE: those that have no part of their own
    size_t row_count; // that have something to show
};

DEFINE_VEC(push_part_vec, struct push_part);

struct push_parts {
    struct push_part_vec parts; // owned; the processes in the order of the recording
    struct u32_vec of_process;  // owned; by process: index in `parts`; REC_NONE: nothing to show
    struct u64_vec scores;      // owned; by row: its largest share of a figure; 0: nothing to show
};

void push_parts_release(struct push_parts *parts);

// Find the parts of a checkpoint, all of whose rows are selected. There is at least one.
// ERR_NO_MEMORY.
enum err push_parts_find(const struct selection *selection,
                         const struct row_change_vec *changes,
                         struct push_parts *out) MUST_USE;

// Set the fates of all rows for the profile of a part: at most `alone_max` are samples of their
// own. ERR_NO_MEMORY.
enum err push_parts_choose(const struct push_parts *parts,
                           const struct profile *profile,
                           size_t part,
                           size_t alone_max,
                           struct flag_vec *fates) MUST_USE;
