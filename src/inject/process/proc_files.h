// SPDX-License-Identifier: MIT
// proc_files: the files of a target and of its threads in /proc.
//
// All are read through the table of kernel calls. Context: H.
#pragma once

#include "base/err.h"
#include "host/containers/vec.h"
#include "host/text/strbuf.h"
#include "inject/process/target_process.h"

// Return the error for the errno of a call at a file of the target, ERR_NOT_FOUND, ERR_PERMISSION,
// or one with a sentence as below.
enum err proc_files_fail(int errno_value, const char *path, struct err_info *info) MUST_USE;

// Append /proc/PID/task/TID/`name`. ERR_NOT_FOUND if the thread has ended, ERR_PERMISSION,
// ERR_LIMIT above 256 MiB. ERR_NO_MEMORY and ERR_IO, with a sentence, for what cairn itself lacks,
// such as descriptors: they say nothing of the target.
enum err proc_files_read(const struct target_process *target,
                         int tid,
                         const char *name,
                         struct strbuf *out,
                         struct err_info *info) MUST_USE;

// Return the state of a thread as proc(5) names it: 'R', 'S', 'D', 'T', 't', 'Z', ...; 'X' if it
// has ended, '?' if it cannot be read.
char proc_files_thread_state(const struct target_process *target, int tid);

// Whether a thread has a seccomp filter, or may have one.
bool proc_files_is_confined(const struct target_process *target, int tid);

// Append the threads of the target. Fails as proc_files_read does.
enum err proc_files_list_threads(const struct target_process *target,
                                 struct u32_vec *out,
                                 struct err_info *info) MUST_USE;

struct current_call {
    long number; // -1: none
    bool is_running;
    uint64_t first_argument; // these three are set if it is in a call
    uint64_t sp;
    uint64_t pc; // behind the call's instruction
    // How often the thread had slept, the call included; set by interrupted_call_before alone, and
    // counted on by the stops that follow.
    uint64_t sleeps;
};

// Return which system call a thread is in, without stopping it. A thread that runs or has ended is
// in none.
struct current_call proc_files_current_call(const struct target_process *target, int tid);

// Return how often a thread has slept, or sleeps now.
uint64_t proc_files_sleeps(const struct target_process *target, int tid);
