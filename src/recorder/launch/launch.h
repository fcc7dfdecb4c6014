// SPDX-License-Identifier: MIT
// launch: starts the program as a child that differs from an unrecorded one in two environment
// variables only.
//
// It makes a child by clone, or by fork if the child is held. The child puts the preload library in
// front of LD_PRELOAD, sets CAIRN_SESSION, restores the original signal mask and dispositions, and
// calls execve. A close-on-exec pipe reports a failure of execve. The child keeps its terminal and
// process group, so Ctrl-C and Ctrl-Z reach it as usual. The recorder ignores SIGINT and SIGQUIT
// meanwhile, and passes on SIGTERM and SIGHUP. A program that is recorded by the agent (attach.h)
// keeps its environment, and is held before its first instruction.
// Context: H, the recorder's main thread, before other threads exist (fork copies one thread, and
// they would write to the memory that a child shares).
#pragma once

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

// The recorder's original signal state, which the child gets back.
struct launch_signals {
    sigset_t mask;
    struct sigaction actions[6]; // SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD, SIGXFSZ
};

// What to do with the child before and after it becomes the program.
struct launch_hold {
    void *context;
    enum err (*begin)(void *context, pid_t pid, struct err_info *info); // it waits
    enum err (*run)(void *context, struct err_info *info);              // it may execve
};

struct launch_plan {
    const char *path;            // for execve
    char *const *argv;           // argv[0] as the user typed it
    const char *preload_library; // absolute path; NULL: leave the environment as it is
    const char *session;         // value of CAIRN_SESSION
    const struct launch_signals *signals;
    const struct launch_hold *hold; // NULL: none
    uint32_t *out_pid;              // shared: the child notes its pid there; NULL: nowhere
};

struct launched {
    pid_t pid;
    int pidfd; // readable when the process has ended; -1 if the kernel has none
};

// Save the signal state. Then ignore SIGINT and SIGQUIT, and block them, SIGTERM, SIGHUP and
// SIGCHLD for this and all later threads; `*signal_fd` reads them (close it). SIGXFSZ becomes a
// mere error of write.
enum err launch_take_signals(struct launch_signals *saved, int *signal_fd, struct err_info *info)
    MUST_USE;

// Restore the signal state after the recording.
void launch_restore_signals(const struct launch_signals *saved);

// Start the program. ERR_NOT_FOUND or ERR_PERMISSION if execve refused it, ERR_IO, ERR_NO_MEMORY,
// or the error of plan->hold, which is called in this thread; then the child has been killed.
enum err launch_program(const struct launch_plan *plan, struct launched *out, struct err_info *info)
    MUST_USE;
