// SPDX-License-Identifier: MIT
// stop_scan: look for addresses of code on the stack of a stopped thread.
//
// A signal handler that interrupted code returns there, to an address that is in a frame on the
// stack. Before the code's bytes change, no stack may hold such an address. The scan takes every
// aligned word above the stack pointer for an address, up to the end of the stack's mapping, at
// most 512 KiB. It does not see other stacks that a program keeps for itself. Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#include "inject/process/address_gaps.h"
#include "inject/process/target_process.h"

// Return whether some word is in one of the ranges (start included, end not), which are sorted.
// Unreadable memory holds nothing.
bool stop_scan_stack(const struct target_process *target,
                     const struct user_regs_struct *regs,
                     const struct address_range *ranges,
                     size_t count);

// Return whether an address is in one of the sorted ranges.
bool stop_scan_is_in(const struct address_range *ranges, size_t count, uint64_t addr);
