// SPDX-License-Identifier: MIT
// block_table: single blocks of a selection, largest first.
//
// Only recordings made with --blocks list blocks. A block passes if its row passes and its size is
// in the selection's range. A selection by time or lifetime counts blocks by class, not one by one,
// and gives ERR_UNSUPPORTED. Context: H.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/select/filter.h"

struct block_table {
    struct u32_vec blocks; // owned; indices of recording.blocks, by size, then by address
    uint64_t bytes;        // sum over all of them
};

// List the blocks with `flag` (one of enum rec_block_flags).
enum err block_table_build(const struct selection *selection,
                           const struct filter *filter,
                           uint32_t flag,
                           struct block_table *out,
                           struct err_info *info) MUST_USE;
void block_table_release(struct block_table *table);

// Whether the recording was made with --blocks, even if it lists none.
bool block_table_is_recorded(const struct profile *profile);

// The age of a block: at the end of its process, or at the peak.
uint64_t block_age_ms(const struct profile *profile, uint32_t block, uint32_t flag);
