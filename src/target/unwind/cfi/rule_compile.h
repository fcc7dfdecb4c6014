// SPDX-License-Identifier: MIT
// rule_compile: turns the CFI of one pc into a compact rule.
//
// Context: T and H; allocates nothing; about 1 KiB of stack.
#pragma once

#include <stdint.h>

#include "target/unwind/cfi/cfi.h"
#include "target/unwind/cfi/eh_frame.h"

// Return the rule that equals `row` of `function`, valid at `pc` (the address of the instruction
// itself); RULE_COMPLEX if there is none. Pure.
uint64_t rule_from_row(const struct eh_function *function, const struct cfi_row *row, uint64_t pc);

// Return the rule for the return address `ret_addr` by the tables of its module; RULE_NO_TABLE if
// they do not cover it, RULE_BROKEN if they cannot be read.
uint64_t rule_from_table(const struct eh_table *table, uint64_t ret_addr);
