// SPDX-License-Identifier: MIT
// address_gaps: find room among a target's mappings for memory of our own.
//
// The target maps memory too, so a gap may be taken before we map there (EEXIST). Therefore memory
// goes into the middle of a gap, where neither the kernel (which fills gaps from their upper end)
// nor brk (which grows from the lower end) arrives soon. Pure. Context: H.
#pragma once

#include <stdint.h>

#include "host/containers/address_range.h"
#include "inject/process/target_process.h"

// Find `bytes` free bytes (whole pages) anywhere. `taken` are ranges that count as mapped. Returns
// 0 if there is no room.
uint64_t address_gaps_find(const struct target_process *target,
                           const struct address_range_vec *taken,
                           uint64_t bytes);

// The same, so that each byte found is in reach of a jump from each byte of `near`:
// 2 GB, on AArch64 128 MB. Below it if possible,
// because a heap may grow above.
uint64_t address_gaps_find_near(const struct target_process *target,
                                const struct address_range_vec *taken,
                                uint64_t bytes,
                                struct address_range near);
