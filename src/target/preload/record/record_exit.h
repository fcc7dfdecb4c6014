// SPDX-License-Identifier: MIT
// record_exit: what a process does when it begins to exit, or to execute another program.
//
// The exiting thread sends what it holds, so that the recorder knows all live blocks at once, and
// the process's wait for the last memory snapshot (exit_wait.h) is short. Context: T, any caller,
// signal handlers too.
#pragma once

// Begin the exit of this process, and wait for the recorder if it asked for that.
void record_exit(void);

// The same, unless the caller is a child that has this process's memory (vfork), or a filter may
// forbid system calls.
void record_own_exit(void);

// Before this process executes a program. If that fails, nothing has changed. Not in a child that
// has its parent's memory.
void record_exec(void);
