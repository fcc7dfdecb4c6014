// SPDX-License-Identifier: MIT
// call_without_table (AArch64): see ../guesses.c. It has no unwind table.
    .text
    .globl call_without_table
    .type call_without_table, %function
call_without_table:
    stp x29, x30, [sp, #-16]!
    mov x29, x2
    blr x1
    ldp x29, x30, [sp], #16
    ret
    .size call_without_table, . - call_without_table
    .section .note.GNU-stack, "", %progbits
