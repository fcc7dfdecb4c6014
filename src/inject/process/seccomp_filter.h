// SPDX-License-Identifier: MIT
// seccomp_filter: whether the seccomp filters of a process permit the agent's system calls.
//
// A filter is a program for the kernel's classic BPF machine (seccomp(2)). It is read from a
// stopped thread and run here for each call that the agent makes in hooks. Anything but a plain
// permission counts as a refusal: a call that kills the process, raises a signal or asks a
// supervisor harms it, and hooks cannot wait for the recorder by calls that fail.
// Context: H. Trust: the program is hostile; it runs forwards only, as the kernel demands.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "inject/process/target_process.h"

// Run a filter. Return what it says, SECCOMP_RET_KILL_PROCESS if it makes no sense.
uint32_t
seccomp_filter_run(const struct sock_filter *code, size_t count, const struct seccomp_data *data);

// Whether the filters of a thread, which is stopped and traced by the caller, permit all calls of
// the agent. ERR_PERMISSION: they cannot be read. ERR_NOT_FOUND: the thread has none, but the
// strict mode. ERR_NO_MEMORY.
enum err seccomp_filter_check(const struct target_process *target, int tid, bool *out_permits)
    MUST_USE;
