// SPDX-License-Identifier: MIT
// context_switch (AArch64): see ../context_switch.h. Vector registers are not saved: no caller here
// uses them.
    .text

.macro switch_function name, described
    .globl \name
    .type \name, %function
\name:
    .if \described
    .cfi_startproc
    .endif
    sub sp, sp, #96
    .if \described
    .cfi_adjust_cfa_offset 96
    .endif
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    .if \described
    .cfi_rel_offset x29, 80
    .cfi_rel_offset x30, 88
    .endif
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    .if \described
    .cfi_restore x29
    .cfi_restore x30
    .endif
    add sp, sp, #96
    .if \described
    .cfi_adjust_cfa_offset -96
    .endif
    ret
    .if \described
    .cfi_endproc
    .endif
    .size \name, . - \name
.endm

    switch_function switch_plain, 0
    switch_function switch_described, 1

// x19: the function, x20: its argument.
    .type begin, %function
begin:
    mov x0, x20
    blr x19
    udf #0
    .size begin, . - begin

    .globl context_begin
    .type context_begin, %function
context_begin:
    .cfi_startproc
    and x0, x0, #-16
    sub x0, x0, #96
    stp x1, x2, [x0, #0]
    adr x3, begin
    stp xzr, x3, [x0, #80]
    ret
    .cfi_endproc
    .size context_begin, . - context_begin

    .section .note.GNU-stack, "", %progbits
