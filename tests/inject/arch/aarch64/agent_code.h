// SPDX-License-Identifier: MIT
// agent_code (AArch64): the instructions of the tests' agent.
//
// A stub enters a hook with the patch's number in w17 (session/agent_hooks.h). The hook goes on to
// the trampoline by x16, which a stub may change, too. The flags are not touched.
// Context: in the target, in place of any hooked function; each register but x16 and x17 is kept.
#pragma once

#define HOOK(name, kind)                             \
    void hook_##name(void);                          \
    __asm__(".text\n"                                \
            ".globl hook_" #name "\n"                \
            ".hidden hook_" #name "\n"               \
            "hook_" #name ":\n"                      \
            "    stp x0, x1, [sp, #-16]!\n"          \
            "    adrp x16, agent_counts\n"           \
            "    add x16, x16, :lo12:agent_counts\n" \
            "    add x16, x16, #(8 * " #kind ")\n"   \
            "1:  ldxr x0, [x16]\n"                   \
            "    add x0, x0, #1\n"                   \
            "    stxr w1, x0, [x16]\n"               \
            "    cbnz w1, 1b\n"                      \
            "    ldp x0, x1, [sp], #16\n"            \
            "    b go_on\n")

__asm__(".text\n"
        "go_on:\n"
        "    adrp x16, agent_originals\n"
        "    add x16, x16, :lo12:agent_originals\n"
        "    ldr x16, [x16, w17, uxtw #3]\n"
        "    br x16\n");
