// SPDX-License-Identifier: MIT
// changed_registers: whether a function changes every register that the ABI lets it change.
//
// Callers that gcc compiles together with a function keep values in registers that it leaves alone
// (-fipa-ra). For this gcc collects each register that an instruction of the function writes, or of
// the functions that it calls. So if some path writes a register, no caller relies on it, and a
// hook in front of a function that writes all of them needs to save none.
//
//   entry -> branch -> branch -> call f      the walk follows branches and direct jumps,
//               `-> ret       `-> jmp *p     and then f; behind a call where unwind tables show
//                                            that the function goes on there
//
// It follows only code that certainly is of the function: a call may not return, and then the next
// function may be behind it. An indirect call may lead to code written by hand that keeps
// registers. So may a direct one, and that code may keep a register in two ways:
//
//   push, pop    a function that pushes a register may restore it: neither this function nor those
//                that it calls count as writing it
//   mov, mov     a function may copy the register's first value to memory or to another register,
//                and read it back: what itself and others write does not count if a path leads from
//                there to such an instruction, or out of sight
//
// A place on the stack is known whichever register points to it. One elsewhere is known only by the
// same registers and the same distance: allocators store arguments and load others all the time.
//
// Where the walk finds less than is there, the result is false, which is safe. The bytes are
// hostile, and the walk is bounded.
// Context: H; any thread; no failure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "inject/code/code_reader.h"

struct changed_source {
    struct code_reader code;
    // Return the start of the function that has the address; 0: unknown.
    uint64_t (*function_of)(void *context, uint64_t addr);
};

// Whether the function at `addr` writes rax, rcx, rdx, rsi, rdi and r8 to r11. False if that is not
// known, also for lack of memory.
bool changed_registers_are_all(uint64_t addr, const struct changed_source *source);
