// SPDX-License-Identifier: MIT
// target_reading: open a running process, and read its mappings and modules.
//
// Everything that is read is hostile: headers are copied once and checked against the mappings.
// Nothing of the target changes, and no thread is stopped. Context: H, one thread at a time.
// Failure: a sentence that names the process and what to do.
#pragma once

#include "base/err.h"
#include "inject/process/kernel_calls.h"
#include "inject/process/target_process.h"

// Open the process `pid` and read its mappings and modules. `calls` makes the system calls.
// ERR_NOT_FOUND if there is no such process, ERR_UNSUPPORTED for another kind of program, a kernel
// thread or this process itself, ERR_PERMISSION if someone else traces it or the kernel refuses,
// ERR_NO_MEMORY, ERR_IO. Nothing of the target changes, and no thread is stopped.
enum err target_process_open(struct target_process *target,
                             int pid,
                             const struct kernel_calls *calls,
                             struct err_info *info) MUST_USE;

// Accepts a zeroed one, and leaves one.
void target_process_close(struct target_process *target);

// Read mappings and modules again. Fails as target_process_open does, and leaves the old ones then.
enum err target_process_refresh(struct target_process *target, struct err_info *info) MUST_USE;
