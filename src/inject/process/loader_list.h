// SPDX-License-Identifier: MIT
// loader_list: the dynamic loader's list of modules in a target (struct r_debug, <link.h>).
//
// An executable's dynamic section has its address as soon as the loader runs. Everything that is
// read is the target's, and may be anything. Context: H, one thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "inject/process/target_process.h"

// Return the address of the list; 0: none, or not yet.
uint64_t loader_list_find(const struct target_process *target);

// Return whether a module is the program that the loader started. glibc's libc.so.6 has an
// interpreter, too, because it can be executed; but only the program has a place for the list, if
// any module has one.
bool loader_list_is_program(const struct target_process *target,
                            const struct target_module *module);

// Return whether the process has a program: none while the kernel carries out an exec.
bool loader_list_has_program(const struct target_process *target);

// Return whether the loader has mapped and relocated what the program needs, and loads nothing now.
// Until then the modules of the target are incomplete. False as well without a program. True for
// programs without a loader, and for those whose list cannot be found. glibc's state is the same
// for a moment before it maps the first library.
bool loader_list_is_complete(const struct target_process *target);
