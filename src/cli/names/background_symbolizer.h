// SPDX-License-Identifier: MIT
// background_symbolizer: symbolizes a program's code while the program runs, so that little work is
// left at its end.
//
//   recorder's thread:   background_symbolizer_see (copies new frames) --> inbox --+
//   own thread:          deferred_lookup_step <------------------------------------+
//   at the end:          background_symbolizer_end stops the thread; the caller continues with
//                        its deferred_lookup
//
// The thread has a low priority (nice 5, SCHED_BATCH). It rests four times as long as it works, and
// fifty times as long after its first second of work. A program that needs all processors loses
// little time to it. Symbols that are missing at the end are looked up then. KEEP_BYTES bounds the
// open files. Context: H. The two threads share only the inbox, under its lock. Failure costs only
// the head start.
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
    bool has_failed;     // the thread could not be started: everything is looked up at the end
    size_t seen_modules; // modules handed over so far; recorder's thread only
    size_t seen_frames;  // frames handed over so far; recorder's thread only
    struct owned_text_vec texts;    // owned, paths and build-ids; recorder's thread only
    struct code_list code;          // everything that the thread has taken; its own while it runs
    struct deferred_lookup *lookup; // owned; the thread's own while it runs
    struct name_sources sources;    // for the lookup; it borrows its texts
    uint64_t spent_ns;              // time of all steps so far; the thread's own while it runs

    pthread_mutex_t lock; // guards what follows
    pthread_cond_t news;  // signals new code in the inbox, or the end
    pthread_cond_t end;   // signals the end, or that of a step
    struct code_list inbox;
    bool is_over;           // the thread shall end, and takes no further step
    bool is_stepping;       // the thread uses the lookup
    _Atomic bool is_ending; // not under the lock: stops a step
};

// Initialize `ahead`. A zeroed one that is never used needs no initialization. `ahead` must not
// move, and what `sources` points to must outlive it.
void background_symbolizer_init(struct background_symbolizer *ahead,
                                const struct name_sources *sources);

// Take the frames and modules that were added to `stacks`. The first call with new code starts the
// thread.
void background_symbolizer_see(struct background_symbolizer *ahead,
                               const struct stack_table *stacks);

// Take the lookup from the thread and return it; `ahead` still owns it. NULL without a lookup. This
// waits for the present step, not for the thread, which may get no processor for long on a busy
// machine. More calls are allowed.
struct deferred_lookup *background_symbolizer_end(struct background_symbolizer *ahead);

// After background_symbolizer_end, in place of release: let the thread end by itself. `ahead` must
// stay until the process ends.
void background_symbolizer_leave(struct background_symbolizer *ahead);

void background_symbolizer_release(struct background_symbolizer *ahead);
