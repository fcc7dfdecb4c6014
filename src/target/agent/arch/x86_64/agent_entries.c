// SPDX-License-Identifier: MIT
// agent_entries (x86-64): the code that stubs jump to, one entry for each kind of function.
//
//   caller -call-> patched function -jmp-> stub -push index, jmp-> entry -call-> agent_on_...
//                                                                   `-ret-> caller
//
// Compilers rely on what they see of functions in the same module (-fipa-ra): a caller may keep a
// value in a register that malloc does not use. So an entry restores every register but rax, and
// the agent has no vector instruction. What the original function changes, it changes as before.
// A function that returns nothing may leave rax alone, too, so it is called with the caller's.
//
// A throwing operator new must not throw through our frames, which the program's unwinder does not
// know. The hook calls the form that returns NULL instead. If that fails, the entry removes its
// frame and jumps to the throwing form, which then fails for the caller. The stack pointer is a
// multiple of 16 at each call. The CFI describes each instruction, for our own unwinder.
//
// Context: T, in place of any patched function.
#include <stddef.h>

#include "session/agent_page.h"
#include "target/agent/agent_calls.h"
#include "target/agent/arch/x86_64/abi_hooks.h"
#include "thread_way.h"

_Static_assert(offsetof(struct agent_call, patch) == 80, "ten pushes");
_Static_assert(offsetof(struct agent_call, rax) == 72, "the first of them");
_Static_assert(offsetof(struct agent_call, arguments) == 8, "after rbp");
_Static_assert(sizeof(struct agent_call) == 96, "the CFA's distance from rbp");

#define PUSH(reg) "pushq %%" #reg "\n\t.cfi_adjust_cfa_offset 8\n\t"
#define POP(reg)  "popq %%" #reg "\n\t.cfi_adjust_cfa_offset -8\n\t"

#define SAVE                                                                               \
    ".cfi_def_cfa_offset 16\n\t" PUSH(rax) PUSH(r11) PUSH(r10) PUSH(r9) PUSH(r8) PUSH(rcx) \
        PUSH(rdx) PUSH(rsi) PUSH(rdi) PUSH(rbp) ".cfi_offset rbp, -96\n\t"                 \
                                                "movq %%rsp, %%rbp\n\t"                    \
                                                ".cfi_def_cfa_register rbp\n\t"
#define CALL(function)        \
    "movq %%rsp, %%rdi\n\t"   \
    "movl %[kind], %%esi\n\t" \
    "cld\n\t"                 \
    "call " function "\n\t"   \
    ".cfi_def_cfa_register rsp\n\t"
#define RESTORE \
    POP(rbp)    \
    ".cfi_restore rbp\n\t" POP(rdi) POP(rsi) POP(rdx) POP(rcx) POP(r8) POP(r9) POP(r10) POP(r11)
#define RETURN                       \
    "addq $16, %%rsp\n\t"            \
    ".cfi_adjust_cfa_offset -16\n\t" \
    "ret\n\t"

#define ENTRY(hook, code)                                 \
    static __attribute__((naked)) void entry_##hook(void) \
    {                                                     \
        __asm__ volatile(code : : [kind] "i"(hook));      \
    }

#define ENTRY_TO(hook, function) ENTRY(hook, SAVE CALL(function) RESTORE RETURN)

// NULL: the hook has put the address of the original in place of the index.
#define ENTRY_THAT_MAY_JUMP(hook, function)                                                   \
    ENTRY(hook,                                                                               \
          SAVE CALL(function) "testq %%rax, %%rax\n\t"                                        \
                              "jz 1f\n\t"                                                     \
                              ".cfi_remember_state\n\t" RESTORE RETURN ".cfi_restore_state\n" \
                              "1:\t" RESTORE POP(rax) POP(rax) "jmpq *%%rax\n\t")

#define ENTRY_AGENT_ALLOCATES(hook)           ENTRY_TO(hook, "agent_on_allocation")
#define ENTRY_AGENT_ALLOCATES_OR_THROWS(hook) ENTRY_THAT_MAY_JUMP(hook, "agent_on_throwing")
#define ENTRY_AGENT_ALLOCATES_AT(hook)        ENTRY_TO(hook, "agent_on_allocation_at")
#define ENTRY_AGENT_COPIES_TEXT(hook)         ENTRY_TO(hook, "agent_on_text")
#define ENTRY_AGENT_RESIZES(hook)             ENTRY_TO(hook, "agent_on_resize")
#define ENTRY_AGENT_RESIZES_OR_FREES(hook)    ENTRY_TO(hook, "agent_on_resize")
#define ENTRY_AGENT_RESIZES_IN_PLACE(hook)    ENTRY_TO(hook, "agent_on_resize_in_place")
#define ENTRY_AGENT_FREES(hook)               ENTRY_TO(hook, "agent_on_free")
#define ENTRY_AGENT_CHANGES_MODULES(hook)     ENTRY_TO(hook, "agent_on_modules")
#define ENTRY_AGENT_EXECUTES(hook)            ENTRY_TO(hook, "agent_on_exec")
#define ENTRY_AGENT_CONFINES(hook)            ENTRY_THAT_MAY_JUMP(hook, "agent_on_confinement")
#define ENTRY_AGENT_MAPS(hook)                ENTRY_TO(hook, "agent_on_mapping")
#define ENTRY_AGENT_EXITS(hook)               ENTRY_THAT_MAY_JUMP(hook, "agent_on_exit")
#define ENTRY_AGENT_LIMITS(hook)              ENTRY_TO(hook, "agent_on_limit")

#define X(hook, effect, size, count, block) ENTRY_##effect(hook)
AGENT_HOOKS(X)
#undef X

// Outside of any function of C, so that the compiler does not believe that it keeps registers.
__asm__(".text\n"
        ".globl agent_call_keeping_result\n"
        ".hidden agent_call_keeping_result\n"
        ".type agent_call_keeping_result, @function\n"
        "agent_call_keeping_result:\n"
        "    .cfi_startproc\n"
        "    pushq %rbp\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset rbp, -16\n"
        "    movq %rsp, %rbp\n"
        "    .cfi_def_cfa_register rbp\n"
        "    movq %rsi, %r11\n"
        "    movq 72(%rdi), %rax\n"
        "    movq 48(%rdi), %r9\n"
        "    movq 40(%rdi), %r8\n"
        "    movq 32(%rdi), %rcx\n"
        "    movq 24(%rdi), %rdx\n"
        "    movq 16(%rdi), %rsi\n"
        "    movq 8(%rdi), %rdi\n"
        "    call *%r11\n"
        "    popq %rbp\n"
        "    .cfi_def_cfa rsp, 8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size agent_call_keeping_result, . - agent_call_keeping_result\n");

_Alignas(PAGE_GRAIN) struct agent_page g_agent_page = {
    .magic = AGENT_MAGIC,
    .version = AGENT_VERSION,
    .hooks =
        {
#define X(hook, effect, size, count, block) [hook] = entry_##hook,
            AGENT_HOOKS(X)
#undef X
        },
    .abi_hooks = {
#define HOOK(function) (void (*)(void))(function)
        [AGENT_MALLOC] = HOOK(abi_hook_malloc),
        [AGENT_CALLOC] = HOOK(abi_hook_calloc),
        [AGENT_ALIGNED_ALLOC] = HOOK(abi_hook_aligned_alloc),
        [AGENT_POSIX_MEMALIGN] = HOOK(abi_hook_posix_memalign),
        [AGENT_REALLOC] = HOOK(abi_hook_realloc),
        [AGENT_NEW] = HOOK(abi_hook_new),
        [AGENT_NEW_ALIGNED] = HOOK(abi_hook_new),
        [AGENT_FREE] = HOOK(abi_hook_free),
#undef HOOK
    }};

// The name by which the recorder finds it. The other one is hidden, for direct access.
extern struct agent_page agent_page __attribute__((alias("g_agent_page"), visibility("default")));
