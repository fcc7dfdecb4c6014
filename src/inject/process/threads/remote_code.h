// SPDX-License-Identifier: MIT
// remote_code: the machine code with which a thread of the target makes a list of system calls.
//
// The code is followed by its constants, which include the registers that it restores at its end.
// It changes no flags, no stack, and no vector register. A signal may interrupt it anywhere. On
// AArch64 a jump that keeps all registers reaches 128 MB, so the code is near where the thread
// continues.
//
//   for each call:  make it; if `must` is not 0 and not the negated result: restore, without done
//                   store the result
//   store 1 at `done`; restore the registers; jump to regs.rip
//
// Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

#include "inject/process/target_process.h"

// A call as the code reads it.
struct remote_code_call {
    uint64_t number;
    uint64_t arguments[6];
    uint64_t must; // minus the only result after which to go on; 0: any
};

struct remote_code_run {
    uint64_t addr;    // of the code
    uint64_t calls;   // address of an array of remote_code_call
    uint64_t results; // address of an array of uint64_t
    uint64_t done;    // address of a uint64_t
    uint64_t count;
    const struct user_regs_struct *regs; // borrowed; how the thread continues
};

enum {
    REMOTE_CODE_BYTES_MAX = 512,
};

// Return whether code at an address, REMOTE_CODE_BYTES_MAX of it, can let a thread continue at
// `pc`.
bool remote_code_reaches(uint64_t addr, uint64_t pc);

// Write the code and its constants. Returns its length.
size_t remote_code_write(const struct remote_code_run *run, uint8_t out[REMOTE_CODE_BYTES_MAX]);

// Return whether the target has such code at an address.
bool remote_code_is_at(const struct target_process *target, uint64_t addr);
