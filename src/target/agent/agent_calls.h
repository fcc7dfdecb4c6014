// SPDX-License-Identifier: MIT
// agent_calls: what happens at a call of a patched function.
//
// An entry (arch/<name>/agent_entries.c) calls one of these with the registers of the call and the
// kind of the patched function; the effect of the kind (session/agent_hooks.h) chooses which. Each
// calls the original function and returns its result; that is all while the agent is not enabled,
// or for a call that the allocator makes itself. Context: T, any caller. errno is the original's.
#pragma once

#include <stdint.h>

#include "caller_arch.h"
#include "session/agent_hooks.h"

uint64_t agent_on_allocation(struct agent_call *call, enum agent_hook hook);
uint64_t agent_on_allocation_at(struct agent_call *call, enum agent_hook hook);
uint64_t agent_on_text(struct agent_call *call, enum agent_hook hook);
uint64_t agent_on_resize(struct agent_call *call, enum agent_hook hook);
uint64_t agent_on_resize_in_place(struct agent_call *call, enum agent_hook hook);
uint64_t agent_on_free(struct agent_call *call, enum agent_hook hook);
uint64_t agent_on_modules(struct agent_call *call, enum agent_hook hook);
uint64_t agent_on_exec(struct agent_call *call, enum agent_hook hook);
uint64_t agent_on_mapping(struct agent_call *call, enum agent_hook hook);
uint64_t agent_on_limit(struct agent_call *call, enum agent_hook hook);
// As agent_on_throwing below: 0 means a jump.
uint64_t agent_on_confinement(struct agent_call *call, enum agent_hook hook);
uint64_t agent_on_exit(struct agent_call *call, enum agent_hook hook);

// Call `function` with the arguments of the call, and with what the caller had in the register of
// results (rax, x0). Return what it leaves there.
uint64_t agent_call_keeping_result(const struct agent_call *call, uint64_t function);

// Return the block; or 0, and the entry must jump to the original, whose address is in call->patch.
uint64_t agent_on_throwing(struct agent_call *call, enum agent_hook hook);
