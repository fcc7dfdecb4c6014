// SPDX-License-Identifier: MIT
// confinement: what a process does before it installs a seccomp filter, and after it.
//
// The hooks of the calls that install one use it (exports/confinement_hooks.c, the agent's). A
// filter may kill for any system call that the program does not make itself, so from the moment
// before on none is made (sys_forbid). A thread without events gets its lane before, because later
// it could not (guard_prepare). The calling thread learns what it may need of its stack. The strict
// mode also takes the processor's clock from it: a thread that stamps its events closes its lane
// before.
//
// Context: T, any caller; makes no system call but to close a lane. Failure: none.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum confinement {
    CONFINEMENT_NONE = 0,
    CONFINEMENT_FILTER,
    CONFINEMENT_STRICT,
};

// Return what prctl(option, mode, ...) or syscall(number, a, b, ...) would install.
enum confinement confinement_of_prctl(uint64_t option, uint64_t mode);
enum confinement confinement_of_syscall(uint64_t number, uint64_t a, uint64_t b);

// Forbid system calls, just before the call. Return whether they were forbidden.
bool confinement_begin(enum confinement kind);

// Permit them again unless they were forbidden or the call has succeeded.
void confinement_end(bool was_forbidden, bool has_succeeded);
