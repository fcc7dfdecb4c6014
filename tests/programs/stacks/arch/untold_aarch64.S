// SPDX-License-Identifier: MIT
// call_untold (AArch64): see ../guesses.c. It has no unwind table.
    .text
    .globl call_untold
    .type call_untold, %function
call_untold:
    stp x29, x30, [sp, #-16]!
    mov x29, x2
    blr x1
    ldp x29, x30, [sp], #16
    ret
    .size call_untold, . - call_untold
    .section .note.GNU-stack, "", %progbits
