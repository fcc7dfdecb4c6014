// SPDX-License-Identifier: MIT
// agent: a small agent for the tests of src/inject. Its hooks count calls and go on to the original
// function; they keep every register and use nothing of any library.
//
// A stub enters a hook with the patch's number on the stack (session/agent_hooks.h). The hook puts
// the trampoline's address in its place and returns to it, so it is gone when the function runs.
#include <stdint.h>

#include "session/agent_hooks.h"

#define EXPORT __attribute__((visibility("protected")))

EXPORT uint64_t agent_originals[512];
EXPORT uint64_t agent_counts[AGENT_HOOK_COUNT];

#define HOOK(name, kind)                                         \
    void hook_##name(void);                                      \
    __asm__(".text\n"                                            \
            ".globl hook_" #name "\n"                            \
            ".hidden hook_" #name "\n"                           \
            "hook_" #name ":\n"                                  \
            "    lock incq agent_counts + 8 * " #kind "(%rip)\n" \
            "    jmp go_on\n")
HOOK(malloc, 0);
HOOK(free, 1);
HOOK(calloc, 2);
HOOK(realloc, 3);
_Static_assert(AGENT_MALLOC == 0 && AGENT_FREE == 1 && AGENT_CALLOC == 2 && AGENT_REALLOC == 3,
               "the numbers above");

__asm__(".text\n"
        "go_on:\n"
        "    pushq %rax\n"
        "    pushq %rcx\n"
        "    movq 16(%rsp), %rcx\n"
        "    leaq agent_originals(%rip), %rax\n"
        "    movq (%rax, %rcx, 8), %rax\n"
        "    movq %rax, 16(%rsp)\n"
        "    popq %rcx\n"
        "    popq %rax\n"
        "    ret\n");

EXPORT void (*const agent_hooks[AGENT_HOOK_COUNT])(void) = {
    [AGENT_MALLOC] = hook_malloc,
    [AGENT_FREE] = hook_free,
    [AGENT_CALLOC] = hook_calloc,
    [AGENT_REALLOC] = hook_realloc,
};
