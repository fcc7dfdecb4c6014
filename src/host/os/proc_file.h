// SPDX-License-Identifier: MIT
// proc_file: reads the texts of /proc/PID; host/text/proc_text.h finds the figures in them.
//
// A process may end at any time, so a text that cannot be read is not an error in itself.
// Context: H.
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "host/text/strbuf.h"

// Far above the limit of execve: a quarter of the stack's.
#define PROC_FILE_ENVIRONMENT_BYTES (8u << 20)

// Append /proc/PID/NAME to `out`. False: the process has ended, or the
// text is unreadable, or longer than `max_bytes`.
bool proc_file_read(pid_t pid, const char *name, size_t max_bytes, struct strbuf *out);

// Open /proc/PID/NAME for reading. -1, with errno: it cannot be opened. The caller closes it.
int proc_file_open(pid_t pid, const char *name);

// Write the path of the program that a process executes. False: it has ended, or may not be asked;
// the path is empty.
bool proc_file_executable(pid_t pid, char path[static PATH_MAX]);

// Open a descriptor that tells of the end of a process. ERR_NOT_FOUND: it has ended. The caller
// closes it.
enum err proc_file_watch(pid_t pid, int *out_fd, struct err_info *info) MUST_USE;

// Return the number under which /proc shows the memory and the files of a process: its pid, or, if
// its first thread has ended before the others (pthread_exit in main), that of one which lives. A
// process whose first thread is dead shows no memory under its pid.
pid_t proc_file_living(pid_t pid);

// Return the start of a process in kernel ticks, which tells it from a later one with the same pid.
// 0: it cannot be read.
uint64_t proc_file_start(pid_t pid);

// The same of this process, whatever its pid is there.
uint64_t proc_file_own_start(void);

// Return the state of a process (proc_text_state); X: it has ended, or cannot be read.
char proc_file_state(pid_t pid);

// Return whether a process is stopped by a signal or a tracer, or has gone, or cannot be read.
bool proc_file_is_stopped(pid_t pid);

// Return the pid of the parent of a process; 0 if it has none or has ended.
pid_t proc_file_parent(pid_t pid);
