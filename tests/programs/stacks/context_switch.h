// SPDX-License-Identifier: MIT
// context_switch: a switch of stacks in assembly (arch/switch_*.S), as in boost.context and in the
// run-times of languages. The callee-saved registers are pushed onto the old stack, sp changes, and
// the registers are popped from the new stack.
#pragma once

// Save the present stack pointer in *save; return on the other stack.
void switch_plain(void **save, void *to);     // without any unwind table, as boost.context's
void switch_described(void **save, void *to); // the same instructions, with tables

// Prepare an empty stack below `top` so that the first switch to the result calls
// function(argument), which must never return.
void *context_begin(void *top, void (*function)(void *), void *argument);
