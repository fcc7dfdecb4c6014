// SPDX-License-Identifier: MIT
// process_search: finds processes by name, and the children of one.
//
// Context: H. Processes may begin and end meanwhile.
#pragma once

#include <sys/types.h>

#include "base/err.h"
#include "host/containers/vec.h"

// Append the pids of the processes whose command name (/proc/PID/comm) or whose executable's file
// name is `name`, in any order. Threads of the kernel, processes that have ended, and this process
// are left out. ERR_NO_MEMORY, ERR_IO if there is no /proc or no descriptor to read it.
enum err process_search(const char *name, struct u32_vec *out, struct err_info *info) MUST_USE;

// Append the children that the threads of a process have started; none if the kernel does not list
// them (proc(5), /proc/PID/task/TID/children). ERR_NOT_FOUND if the process has ended,
// ERR_NO_MEMORY, ERR_IO without descriptors.
enum err process_search_children(pid_t pid, struct u32_vec *out) MUST_USE;

// Append the threads of a process, the first one first, at most `most` of them. ERR_NOT_FOUND if
// the process has ended, ERR_NO_MEMORY, ERR_IO without descriptors.
enum err process_search_threads(pid_t pid, size_t most, struct u32_vec *out) MUST_USE;
