// SPDX-License-Identifier: MIT
// target_refusal: why a process cannot be a target, as a sentence that says what to do.
//
// Context: H; one thread. Reads only /proc.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "inject/process/target_process.h"

// Find what is known to be refused before anything is opened: no process, a thread's number, a
// kernel thread, this process, another tracer, another kind of program. Notes whether the target
// has seccomp filters.
enum err target_refusal_find(struct target_process *target, struct err_info *info) MUST_USE;

// Fill `info` for `err` of a step at this target, and return the error that fits: of ERR_NOT_FOUND,
// and of any error at a process without memory or with another program, that the process has ended
// or has executed another one, of ERR_PERMISSION which rule of the kernel refuses. What `info` says
// already of ERR_IO or ERR_NO_MEMORY stays.
enum err target_refusal_explain(const struct target_process *target,
                                enum err err,
                                struct err_info *info) MUST_USE;

// The same if `err` is an error and the process has left the memory that it had when it was opened,
// by its end or for another program: steps fail in many ways then. Else return `err`.
enum err target_refusal_if_gone(const struct target_process *target,
                                enum err err,
                                struct err_info *info) MUST_USE;

// Do the same for a write into the target's memory that has failed.
enum err target_refusal_of_write(const struct target_process *target, struct err_info *info)
    MUST_USE;

// Say that the process cannot map memory for the agent, by this errno, and what limit it has.
enum err target_refusal_of_room(const struct target_process *target,
                                int problem,
                                struct err_info *info) MUST_USE;

// Return whether the process has memory. It loses that before it becomes a zombie, and its list of
// mappings is empty then.
bool target_refusal_has_memory(const struct target_process *target);

// Return whether the process has executed another program since it was opened: nothing is mapped
// any more in the memory that it had then.
bool target_refusal_is_replaced(const struct target_process *target);
