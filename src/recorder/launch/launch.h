// SPDX-License-Identifier: MIT
// launch: starts the program as a child that is, but for two environment variables, what it would
// be without us.
//
// fork, then in the child: LD_PRELOAD gets our library in front of what was there, CAIRN_SESSION is
// set, signal mask and dispositions are those that we were started with, execve. A failure of
// execve travels back through a close-on-exec pipe. The child keeps its terminal and process group,
// so that Ctrl-C and Ctrl-Z reach it as ever; we ignore SIGINT and SIGQUIT meanwhile and pass on
// SIGTERM and SIGHUP.
// Context: H, the recorder's main thread, before other threads exist (fork copies one thread).
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "base/err.h"

// What the parent's signals were before we touched them, to give the child the same.
struct launch_signals {
    sigset_t mask;
    struct sigaction interrupt;
    struct sigaction quit;
    struct sigaction terminate;
    struct sigaction hangup;
    struct sigaction child;
    struct sigaction file_size;
};

struct launch_plan {
    const char *path;            // for execve
    char *const *argv;           // argv[0] as the user typed it
    const char *preload_library; // absolute path
    const char *session;         // value of CAIRN_SESSION
    const struct launch_signals *signals;
};

struct launched {
    pid_t pid;
    int pidfd; // readable when the process has ended; -1 if the kernel has none
};

// Remembers the signals, then ignores SIGINT and SIGQUIT and blocks them, SIGTERM, SIGHUP and
// SIGCHLD for this and all later threads; they are read from the signalfd in `*signal_fd` (close
// it). A file that may not grow (SIGXFSZ) is an error of write and nothing more.
enum err launch_take_signals(struct launch_signals *saved, int *signal_fd, struct err_info *info)
    MUST_USE;

// Gives the signals back as they were. For the time after the recording.
void launch_restore_signals(const struct launch_signals *saved);

// Starts the program. ERR_NOT_FOUND or ERR_PERMISSION if execve refused it, ERR_IO, ERR_NO_MEMORY.
enum err launch_program(const struct launch_plan *plan, struct launched *out, struct err_info *info)
    MUST_USE;
