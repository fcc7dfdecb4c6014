// SPDX-License-Identifier: MIT
// agent: a small agent for the tests of src/inject. Its hooks count calls and go on to the original
// function; they use nothing of any library.
#include <stdint.h>

#include "agent_code.h"
#include "session/agent_hooks.h"

#define EXPORT __attribute__((visibility("protected")))

EXPORT uint64_t agent_originals[512];
EXPORT uint64_t agent_counts[AGENT_HOOK_COUNT];

HOOK(malloc, 0);
HOOK(free, 1);
HOOK(calloc, 2);
HOOK(realloc, 3);
_Static_assert(AGENT_MALLOC == 0 && AGENT_FREE == 1 && AGENT_CALLOC == 2 && AGENT_REALLOC == 3,
               "the numbers above");

EXPORT void (*const agent_hooks[AGENT_HOOK_COUNT])(void) = {
    [AGENT_MALLOC] = hook_malloc,
    [AGENT_FREE] = hook_free,
    [AGENT_CALLOC] = hook_calloc,
    [AGENT_REALLOC] = hook_realloc,
};
