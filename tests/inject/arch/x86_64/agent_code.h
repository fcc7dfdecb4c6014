// SPDX-License-Identifier: MIT
// agent_code (x86-64): the instructions of the tests' agent.
//
// A stub enters a hook with the patch's number on the stack (session/agent_hooks.h). The hook puts
// the trampoline's address in its place and returns to it, so it is gone when the function runs.
// Context: in the target, in place of any hooked function; each register is kept.
#pragma once

#define HOOK(name, kind)                                         \
    void hook_##name(void);                                      \
    __asm__(".text\n"                                            \
            ".globl hook_" #name "\n"                            \
            ".hidden hook_" #name "\n"                           \
            "hook_" #name ":\n"                                  \
            "    lock incq agent_counts + 8 * " #kind "(%rip)\n" \
            "    jmp go_on\n")

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
