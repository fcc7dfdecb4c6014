// SPDX-License-Identifier: MIT
// call_untold (x86-64): see ../guesses.c. It has no unwind table.
    .text
    .globl call_untold
    .type call_untold, @function
call_untold:
    pushq %rbp
    movq %rdx, %rbp
    callq *%rsi
    popq %rbp
    retq
    .size call_untold, . - call_untold
    .section .note.GNU-stack, "", @progbits
