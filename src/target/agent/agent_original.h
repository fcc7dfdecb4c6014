// SPDX-License-Identifier: MIT
// agent_original: calls the original of a patched function, by its trampoline.
//
// Context: T, in a hook (agent_calls.h).
#pragma once

#include <stdint.h>

#include "base/compiler.h"
#include "caller_arch.h"
#include "thread_way.h"

typedef uint64_t original_function(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

ALWAYS_INLINE const struct agent_patch *agent_patch_of(const struct agent_call *call)
{
    return agent_attachment()->patches + call->patch;
}

ALWAYS_INLINE uint64_t agent_call_function(const struct agent_call *call, uint64_t address)
{
    original_function *function = (original_function *)address;
    const uint64_t *a = call->arguments;
    return function(a[0], a[1], a[2], a[3], a[4], a[5]);
}

ALWAYS_INLINE uint64_t agent_call_original(const struct agent_call *call)
{
    return agent_call_function(call, agent_patch_of(call)->original);
}
