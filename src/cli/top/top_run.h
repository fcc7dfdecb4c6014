// SPDX-License-Identifier: MIT
// top_run: the recording that `cairn top` shows: starts it, finds it, and leaves it.
//
//   cairn top PROGRAM   `cairn record -o FILE -- PROGRAM` in a session of its own: Ctrl-C and the
//                       end of the terminal do not reach it. It goes on when the user quits
//   cairn top -p PID    the running recording of the process; without one `cairn record -p PID`,
//                       which is detached when the user quits
//   cairn top FILE      a running recording, or one that is complete; it is only read
//
// The standard output and error of a started program go to a file beside the recording, and its
// standard input is /dev/null, because the terminal shows the figures.
// Context: H; one thread, before others exist.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "host/text/strbuf.h"

struct top_run_options {
    char **argv;                // of the program; NULL: none
    const char *file;           // of the recording; NULL: none
    uint32_t pid;               // 0: none
    const char *output;         // pattern of the new recording's name; NULL: the default
    const char *program_output; // file; NULL: beside the recording
};

struct top_run {
    pid_t recorder;       // process id; 0: none runs
    bool is_child;        // it was started here, and has not been reaped
    int recorder_fd;      // owned; pidfd of the recorder; -1: none runs
    int exit_status;      // of the recorder that was started here and has ended; as the program's
    uint32_t program;     // process id, 0 if unknown
    bool is_attached;     // by us
    struct strbuf path;   // owned; of the recording
    struct strbuf output; // owned; of the program's output; empty: it is not ours
};

#define TOP_RUN_INIT      \
    {                     \
        .recorder_fd = -1 \
    }

// Start or find the recording. *status is the exit status of a failure, whose sentence may be on
// stderr already; `info` has an empty text then.
enum err top_run_open(struct top_run *run,
                      const struct top_run_options *options,
                      int *status,
                      struct err_info *info) MUST_USE;

// Send SIGTERM to the program.
enum err top_run_end_program(const struct top_run *run, struct err_info *info) MUST_USE;

// Leave the recording, and print on stderr what goes on and where the files are. `has_ended`: its
// file says that the program has ended, so the recorder ends soon. Return the exit status: the
// program's if it was started here and has ended.
int top_run_leave(struct top_run *run, bool has_ended);

void top_run_release(struct top_run *run);
