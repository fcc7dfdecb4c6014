// SPDX-License-Identifier: MIT
// confinement: what a process does before it installs a seccomp filter, and after it.
//
// The hooks of the calls that install one use it (exports/confinement_hooks.c, the agent's). A
// filter may kill for any system call that the program does not make itself, so from the moment
// before on none is made (sys_forbid). A thread without events gets its lane before, because later
// it could not (guard_prepare). The calling thread learns what it may need of its stack, and room
// that is not in use is given back.
//
// Context: T, any caller; makes system calls only before it forbids them. Failure: none.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Return whether prctl(option, mode, filter) or syscall(number, a, b, c) may install one.
bool confinement_is_prctl(uint64_t option, uint64_t mode, uint64_t filter);
bool confinement_is_syscall(uint64_t number, uint64_t a, uint64_t b, uint64_t c);

// Forbid system calls, just before the call. Return whether they were forbidden.
bool confinement_begin(void);

// Permit them again unless they were forbidden or the call has succeeded.
void confinement_end(bool was_forbidden, bool has_succeeded);
