// SPDX-License-Identifier: MIT
// aggregator_sampling: the blocks that are not recorded one by one.
//
// A sampled block stands for further ones (its weight). A block that was left out for lack of
// memory is counted, and its free matches no block. Live bytes are estimated then: peak_estimate.h.
// While every block is recorded none of these functions runs.
// Context: H, the aggregator's thread; only for the aggregator's own files.
#pragma once

#include <stdint.h>

#include "aggregate/aggregator.h"
#include "base/err.h"

struct live_block;

// Change the sums of unsampled blocks of the process and of all.
void aggregator_change_unsampled(struct aggregator *aggregator,
                                 struct aggregator_process *process,
                                 const struct unsampled_sums *change);

// Count frees whose blocks were never seen. A forked process inherits such blocks. In other
// processes their allocations happened while recording was stopped, if it ever was, or were left
// out.
void aggregator_count_unknown(struct aggregator *aggregator,
                              struct aggregator_process *process,
                              uint64_t count);

// Return the estimate of `counted_bytes` live bytes of all processes, and of *own_bytes of one.
uint64_t aggregator_estimate_height(struct aggregator *aggregator,
                                    const struct aggregator_process *process,
                                    uint64_t counted_bytes,
                                    uint64_t *own_bytes);

// Count the allocation or the free of the blocks that a block stands for, beyond itself.
enum err aggregator_add_represented(struct aggregator *aggregator,
                                    struct aggregator_process *process,
                                    struct live_block block) MUST_USE;
enum err aggregator_remove_represented(struct aggregator *aggregator,
                                       struct aggregator_process *process,
                                       struct live_block block,
                                       uint64_t lifetime_ms,
                                       uint32_t born_slice) MUST_USE;

// Leave out a block for lack of memory.
enum err aggregator_skip_block(struct aggregator *aggregator,
                               struct aggregator_thread *thread,
                               uint64_t address,
                               uint64_t size_bytes) MUST_USE;
