// SPDX-License-Identifier: MIT
// agent_entries (AArch64): the code that stubs jump to, one entry for each kind of function.
//
//   caller -bl-> patched function -b-> stub -w17 = index, br x16-> entry -bl-> agent_on_...
//                                                                  `-ret-> caller
//
// Compilers rely on what they see of functions in the same module (-fipa-ra): a caller may keep a
// value in a register that malloc does not use. So an entry restores x1 to x15 and the flags, and
// the agent uses no vector register and not x18, which some systems reserve. It changes x16 and
// x17, as the stub does before it: linkers may put a veneer that uses them in front of any
// function, so no caller relies on them (AAPCS64, 6.1.1). What the original function changes
// besides, it changes as before. x0 is the first argument and the result. So a function that
// returns nothing and leaves x0 alone leaves in it what the caller had there.
//
// A throwing operator new must not throw through our frames, which the program's unwinder does not
// know. The hook calls the form that returns NULL instead. If that fails, the entry removes its
// frame and jumps to the throwing form, which then fails for the caller. The CFI describes each
// instruction, for our own unwinder. One block of assembler, because the compiler knows no naked
// functions here; it numbers the entries in the order of the kinds.
//
// Context: T, in place of any patched function.
#include <stddef.h>

#include "session/agent_page.h"
#include "target/agent/agent_calls.h"
#include "thread_way.h"

_Static_assert(offsetof(struct agent_call, return_address) == 8, "a frame record");
_Static_assert(offsetof(struct agent_call, arguments) == 16, "x0");
_Static_assert(offsetof(struct agent_call, temporaries) == 80, "x8");
_Static_assert(offsetof(struct agent_call, flags) == 144, "beside the index");
_Static_assert(offsetof(struct agent_call, patch) == 152, "x17");
_Static_assert(sizeof(struct agent_call) == 160, "the distance of the CFA");

// The code of each effect: a macro of the assembler, and the function that the entry calls.
#define CODE_OF_AGENT_ALLOCATES           "entry_that_returns", "agent_on_allocation"
#define CODE_OF_AGENT_ALLOCATES_OR_THROWS "entry_that_may_jump", "agent_on_throwing"
#define CODE_OF_AGENT_ALLOCATES_AT        "entry_that_returns", "agent_on_allocation_at"
#define CODE_OF_AGENT_COPIES_TEXT         "entry_that_returns", "agent_on_text"
#define CODE_OF_AGENT_RESIZES             "entry_that_returns", "agent_on_resize"
#define CODE_OF_AGENT_RESIZES_OR_FREES    "entry_that_returns", "agent_on_resize"
#define CODE_OF_AGENT_RESIZES_IN_PLACE    "entry_that_returns", "agent_on_resize_in_place"
#define CODE_OF_AGENT_FREES               "entry_that_returns", "agent_on_free"
#define CODE_OF_AGENT_CHANGES_MODULES     "entry_that_returns", "agent_on_modules"
#define CODE_OF_AGENT_EXECUTES            "entry_that_returns", "agent_on_exec"
#define CODE_OF_AGENT_CONFINES            "entry_that_may_jump", "agent_on_confinement"
#define CODE_OF_AGENT_MAPS                "entry_that_returns", "agent_on_mapping"
#define CODE_OF_AGENT_EXITS               "entry_that_may_jump", "agent_on_exit"
#define CODE_OF_AGENT_LIMITS              "entry_that_returns", "agent_on_limit"

#define ENTRY(hook, code)                 ENTRY_LINE(hook, code)
#define ENTRY_LINE(hook, macro, function) "    " macro " entry_" #hook ", " function "\n"

__asm__(".text\n"

        ".macro entry_begins name, function\n"
        "    .balign 16\n"
        "    .type \\name, @function\n"
        "\\name:\n"
        "    .cfi_startproc\n"
        "    stp x29, x30, [sp, #-160]!\n"
        "    .cfi_def_cfa_offset 160\n"
        "    .cfi_offset x29, -160\n"
        "    .cfi_offset x30, -152\n"
        "    mov x29, sp\n"
        "    stp x0, x1, [sp, #16]\n"
        "    stp x2, x3, [sp, #32]\n"
        "    stp x4, x5, [sp, #48]\n"
        "    stp x6, x7, [sp, #64]\n"
        "    stp x8, x9, [sp, #80]\n"
        "    stp x10, x11, [sp, #96]\n"
        "    stp x12, x13, [sp, #112]\n"
        "    stp x14, x15, [sp, #128]\n"
        "    mrs x16, nzcv\n"
        "    stp x16, x17, [sp, #144]\n"
        "    mov x0, sp\n"
        "    mov w1, #entry_kind\n"
        "    .set entry_kind, entry_kind + 1\n"
        "    bl \\function\n"
        ".endm\n"

        // All but x0. Leaves the index, or the address that has replaced it, in x17.
        ".macro entry_restores\n"
        "    ldp x16, x17, [sp, #144]\n"
        "    msr nzcv, x16\n"
        "    ldp x14, x15, [sp, #128]\n"
        "    ldp x12, x13, [sp, #112]\n"
        "    ldp x10, x11, [sp, #96]\n"
        "    ldp x8, x9, [sp, #80]\n"
        "    ldp x6, x7, [sp, #64]\n"
        "    ldp x4, x5, [sp, #48]\n"
        "    ldp x2, x3, [sp, #32]\n"
        "    ldr x1, [sp, #24]\n"
        ".endm\n"

        ".macro entry_leaves jump:vararg\n"
        "    ldp x29, x30, [sp], #160\n"
        "    .cfi_def_cfa_offset 0\n"
        "    .cfi_restore x29\n"
        "    .cfi_restore x30\n"
        "    \\jump\n"
        ".endm\n"

        ".macro entry_that_returns name, function\n"
        "    entry_begins \\name, \\function\n"
        "    entry_restores\n"
        "    entry_leaves ret\n"
        "    .cfi_endproc\n"
        "    .size \\name, . - \\name\n"
        ".endm\n"

        // 0: the hook has put the address of the original in place of the index.
        ".macro entry_that_may_jump name, function\n"
        "    entry_begins \\name, \\function\n"
        "    cbz x0, 1f\n"
        "    entry_restores\n"
        "    .cfi_remember_state\n"
        "    entry_leaves ret\n"
        "    .cfi_restore_state\n"
        "1:  entry_restores\n"
        "    ldr x0, [sp, #16]\n"
        "    entry_leaves br x17\n"
        "    .cfi_endproc\n"
        "    .size \\name, . - \\name\n"
        ".endm\n"

        ".set entry_kind, 0\n"
#define X(hook, effect, size, count, block) ENTRY(hook, CODE_OF_##effect)
        AGENT_HOOKS(X)
#undef X
);

__asm__(".text\n"
        ".globl agent_call_keeping_result\n"
        ".hidden agent_call_keeping_result\n"
        ".type agent_call_keeping_result, @function\n"
        "agent_call_keeping_result:\n"
        "    .cfi_startproc\n"
        "    mov x16, x1\n"
        "    ldp x6, x7, [x0, #64]\n"
        "    ldp x4, x5, [x0, #48]\n"
        "    ldp x2, x3, [x0, #32]\n"
        "    ldp x0, x1, [x0, #16]\n"
        "    br x16\n"
        "    .cfi_endproc\n"
        "    .size agent_call_keeping_result, . - agent_call_keeping_result\n");

#define X(hook, effect, size, count, block) void entry_##hook(void);
AGENT_HOOKS(X)
#undef X

_Alignas(PAGE_GRAIN) struct agent_page g_agent_page = {.magic = AGENT_MAGIC,
                                                       .version = AGENT_VERSION,
                                                       .hooks = {
#define X(hook, effect, size, count, block) [hook] = entry_##hook,
                                                           AGENT_HOOKS(X)
#undef X
                                                       }};

// The name by which the recorder finds it. The other one is hidden, for direct access.
extern struct agent_page agent_page __attribute__((alias("g_agent_page"), visibility("default")));
