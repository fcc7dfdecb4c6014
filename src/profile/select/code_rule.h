// SPDX-License-Identifier: MIT
// code_rule: which blocks a built-in rule for code matches (struct code_rule).
//
// These rules come after those by name, and take only nodes that these left. Context: H, pure.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "profile/model/profile.h"
#include "profile/select/built_in_rules.h"

// By node: 1 if it called anything but an allocation function. Allocation functions are the hooks
// in cairn's library. A hook may have callees: an allocator that maps memory for a block.
// ERR_NO_MEMORY.
enum err code_rule_find_callers(const struct profile *profile, struct u32_vec *out) MUST_USE;

// By node: set `number` where it is 0 and the rule matches. ERR_NO_MEMORY.
enum err code_rule_take(const struct code_rule *code,
                        uint32_t number,
                        const struct profile *profile,
                        const struct u32_vec *has_callee,
                        struct u32_vec *out) MUST_USE;
