// SPDX-License-Identifier: MIT
// background_symbolizer: looks up the names of a program's code while the program runs, so that
// little is left to do when it has ended.
//
//   recorder's thread:   background_symbolizer_see (copies new frames) --> inbox --+
//   a thread of its own:                              deferred_lookup_step <-------+
//   at the end:          background_symbolizer_end joins the thread; the caller goes on with its
//                        deferred_lookup
//
// The thread is one that others go before (nice 5, SCHED_BATCH), and it rests four times as long
// as it works, after the first second of work fifty times: a program that needs all processors
// loses little to it, and what it did not get to is looked up at the end, as without it. The files
// that it keeps open are bounded (KEEP_BYTES). Context: H; the two threads share the inbox alone,
// under its lock. Failure costs only the head start.
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "aggregate/tables/stack_table.h"
#include "host/containers/vec.h"
#include "profile/model/deferred_symbols.h"
#include "recorder/recorder.h"

DEFINE_VEC(owned_text_vec, char *);

struct code_list {
    struct late_code_module_vec modules; // their texts are background_symbolizer.texts
    struct rec_frame_vec frames;
};

struct background_symbolizer {
    pthread_t thread;
    bool is_running;
    bool has_failed;                // no thread could be had: everything is left to the end
    size_t seen_modules;            // so many were handed over; the recorder's thread alone
    size_t seen_frames;             // the same
    struct owned_text_vec texts;    // the same; owned, paths and build-ids
    struct code_list code;          // all that the thread has taken; its own while it runs
    struct deferred_lookup *lookup; // the same; owned
    struct name_sources sources;    // for the lookup; what they point to is borrowed
    uint64_t spent_ns;              // on all steps so far; the same

    pthread_mutex_t lock; // guards the inbox
    pthread_cond_t news;  // there is something in it, or the end
    pthread_cond_t end;
    struct code_list inbox;
    _Atomic bool is_ending;
};

// A zeroed one need not be initialised if it is never used. `ahead` must stay where it is, and what
// the sources point to must outlive it.
void background_symbolizer_init(struct background_symbolizer *ahead,
                                const struct name_sources *sources);

// Frames and modules may have been added to `stacks`. Starts the thread with the first.
void background_symbolizer_see(struct background_symbolizer *ahead,
                               const struct stack_table *stacks);

// Ends the thread, perhaps not for the first time. Returns the lookup so far, which remains ours;
// NULL if there is none.
struct deferred_lookup *background_symbolizer_end(struct background_symbolizer *ahead);

void background_symbolizer_release(struct background_symbolizer *ahead);
