// SPDX-License-Identifier: MIT
// context_switch (x86-64): see ../context_switch.h.
    .text

// With `described`, tables have the place of each register from the instruction that moves it.
.macro keep register, described
    pushq %\register
    .if \described
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset \register, 0
    .endif
.endm

.macro give_back register, described
    popq %\register
    .if \described
    .cfi_adjust_cfa_offset -8
    .cfi_restore \register
    .endif
.endm

.macro switch_function name, described
    .globl \name
    .type \name, @function
\name:
    .if \described
    .cfi_startproc
    .endif
    keep rbp, \described
    keep rbx, \described
    keep r12, \described
    keep r13, \described
    keep r14, \described
    keep r15, \described
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    give_back r15, \described
    give_back r14, \described
    give_back r13, \described
    give_back r12, \described
    give_back rbx, \described
    give_back rbp, \described
    ret
    .if \described
    .cfi_endproc
    .endif
    .size \name, . - \name
.endm

    switch_function switch_plain, 0
    switch_function switch_described, 1

// rbx: the function, r12: its argument. The stack is aligned for a call.
    .type begin, @function
begin:
    movq %r12, %rdi
    callq *%rbx
    ud2
    .size begin, . - begin

    .globl context_begin
    .type context_begin, @function
context_begin:
    .cfi_startproc
    andq $-16, %rdi
    leaq -72(%rdi), %rax   // so that sp is aligned where `begin` calls
    movq $0, (%rax)        // r15
    movq $0, 8(%rax)       // r14
    movq $0, 16(%rax)      // r13
    movq %rdx, 24(%rax)    // r12
    movq %rsi, 32(%rax)    // rbx
    movq $0, 40(%rax)      // rbp
    leaq begin(%rip), %rcx
    movq %rcx, 48(%rax)    // where the switch returns to
    movq $0, 56(%rax)
    ret
    .cfi_endproc
    .size context_begin, . - context_begin

    .section .note.GNU-stack, "", @progbits
