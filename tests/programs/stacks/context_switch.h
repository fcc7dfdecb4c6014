// SPDX-License-Identifier: MIT
// context_switch: a switch of stacks in assembly (arch/switch_*.S), as boost.context and the
// run-times of languages do it: the registers that a call keeps go onto the old stack, sp moves,
// and the new stack gives the rest.
#pragma once

// The stack pointer of the side that is left goes to *save; returns on the other side.
void switch_plain(void **save, void *to);     // without any unwind table, as boost.context's
void switch_described(void **save, void *to); // the same instructions, with tables

// Lays out an empty stack below `top` so that the first switch to the result calls
// function(argument), which must never return.
void *context_begin(void *top, void (*function)(void *), void *argument);
