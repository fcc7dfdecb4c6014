// SPDX-License-Identifier: MIT
// aside: work on a thread of its own, for which the recorder waits only as long as it wants.
//
// What is read of another process comes when that lets it: a page of its own file system (FUSE) may
// never come, the lock of its memory map may be held without end, a file may be huge. The recorder
// serves all other processes meanwhile (recorder_aside.c). Work that is not over in time is left:
// its thread releases what it works on when it comes back, if ever.
//
//   RUNNING --work is over--> TELLING --told--> OVER      the starter has `context` again
//    | ^                                         | |
//    | `--------------aside_again----------------' `--aside_free--> ENDED: the thread ends
//    `------starter-------> LEFT                          the thread has `context`
//
// The starter never waits for the end of the thread: on a busy machine that may come late. A thread
// whose work is over takes further work: to start one takes as long as most of what is read.
//
// Context: H. One thread starts, awaits, and frees or leaves.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct aside_work {
    void (*run)(void *context);
    void (*release)(void *context); // by the thread, of work that was left; NULL: nothing is owned
    void (*tell)(void *context);    // by the thread, just before the work is over; may be NULL
    void *context;
};

struct aside;

// Start the work. NULL: there is no memory or no thread; errno says why, and `context` is still the
// caller's.
struct aside *aside_start(const struct aside_work *work) MUST_USE;

// Give further work to the thread whose work is over; the context of the work before is the
// caller's.
void aside_again(struct aside *aside, const struct aside_work *work);

bool aside_is_over(const struct aside *aside);

// Wait for it, at most `limit_ns`. Return whether it is over.
bool aside_await(const struct aside *aside, uint64_t limit_ns);

// Return for how long something else than the lack of a processor has held the work up: it neither
// ran nor waited for a processor. 0 while it can run.
uint64_t aside_held_up_ns(const struct aside *aside);

// Free work that is over, or that could not be left, and end its thread; `context` is the caller's
// again. Accepts NULL.
void aside_free(struct aside *aside);

// Leave the work to its thread, together with `context`. Return false if it is over by now, or
// about to be.
bool aside_leave(struct aside *aside) MUST_USE;
