// SPDX-License-Identifier: MIT
// call_without_table (x86-64): see ../guesses.c. It has no unwind table.
    .text
    .globl call_without_table
    .type call_without_table, @function
call_without_table:
    pushq %rbp
    movq %rdx, %rbp
    callq *%rsi
    popq %rbp
    retq
    .size call_without_table, . - call_without_table
    .section .note.GNU-stack, "", @progbits
