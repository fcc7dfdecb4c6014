// SPDX-License-Identifier: MIT
// attach_step: one step of attaching to a process, aside (aside.h).
//
// A process may hinder those who attach to it: its threads may not stop, its files may not answer.
// The recorder's loop starts a step, sees later whether it is over, and takes its result. A step
// that is not over in time is left: its thread cleans up after itself when it comes back, and
// undoes what it did to the process.
//
// The thread owns `attach` while the step runs, the starter before and afterwards.
// Context: H, the recorder's main thread. Failure: ERR_NO_MEMORY.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "attach/attach.h"
#include "base/err.h"
#include "host/containers/vec.h"

struct aside;
struct session;

enum attach_step_kind {
    STEP_OPEN,        // attach_open, unless the process is recorded already
    STEP_BEGIN,       // attach_begin
    STEP_SEARCH,      // attach_late
    STEP_SEARCH_COPY, // attach_late_copy
    STEP_END,         // attach_end
    STEP_END_COPY,    // attach_end_copy
};

struct attach_step {
    enum attach_step_kind kind;
    int pid;
    struct attach *attach;         // owned while it runs; NULL for STEP_END_COPY
    struct attach_options options; // what they point to outlives the step, also a left one
    struct session *session;       // borrowed until the step is over or left; NULL: none yet
    int session_fd;                // owned
    // Results, valid once it is over:
    enum err result; // never ERR_NO_MEMORY
    struct err_info trouble;
    bool is_known; // of STEP_OPEN: it is recorded already, or was started by one that is;
                   // of STEP_SEARCH_COPY: it is not recorded
    // The rest is private.
    struct aside *aside; // owned; NULL: it had no thread, and is over
    uint64_t begun_ms;   // CLOCK_MONOTONIC
};

// Start a step: a copy of `wanted`, whose first five fields are set. If its thread cannot be
// started, the step is over at once, and its result is that error. NULL: out of memory.
struct attach_step *attach_step_start(const struct attach_step *wanted);

// Return whether a step is over; then its result is valid.
bool attach_step_is_over(const struct attach_step *step);

// Return whether a step is to be left: the process has kept it waiting for a minute, or it works
// for ten. A step that lacks the processor is not late before.
bool attach_step_is_late(const struct attach_step *step);

// How a step is that is not over.
enum attach_step_pace {
    STEP_IS_NEW,     // it takes no longer than usual
    STEP_IS_SLOW,    // it had little of the processors, or has much to do
    STEP_IS_HELD_UP, // the process keeps it waiting
};
enum attach_step_pace attach_step_pace_of(const struct attach_step *step);

// Wait for a step, at most `limit_ms`. Return whether it is over.
bool attach_step_await(const struct attach_step *step, uint64_t limit_ms);

// Free a step that is over, or that could not be left; `attach` is the caller's again. Accepts
// NULL.
void attach_step_free(struct attach_step *step);

// Leave a step to its thread, together with `attach`. Return false if it is over by now, or about
// to be.
bool attach_step_leave(struct attach_step *step);
