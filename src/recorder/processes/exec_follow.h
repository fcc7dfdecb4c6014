// SPDX-License-Identifier: MIT
// exec_follow: puts the agent into programs that recorded processes execute, before they begin.
//
// A static program, or one of musl, does not load the preload library, and what an attached process
// executes is not told to. The process waits before its exec (target/producer/exec_note.h). A
// thread of the recorder traces it, lets it execute the program, and holds that at its beginning
// (attach.h):
//
//   QUEUED --started--> RUNNING --agent is in--> HELD --accepted--> OVER
//                          `--------------- failed ---------------> OVER
//
// Each exec has a thread of its own, because only the tracer may act on a traced process. A program
// that cannot be recorded runs as without cairn, and so does each if the recorder is killed.
//
// Trust: a note may name any process. Only one that maps the session's memory is traced.
// Owns: the items, and the entries of their notes until they are removed.
// Context: H, the recorder's main thread, except what says so. Failure: ERR_NO_MEMORY.
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "attach/attach.h"
#include "base/err.h"
#include "host/containers/vec.h"
#include "recorder/processes/unrecorded_list.h"

#define FOLLOW_THREADS_MAX 8u

struct session;

enum follow_stage {
    FOLLOW_QUEUED,
    FOLLOW_RUNNING,
    FOLLOW_HELD, // the main thread takes `attach`, and accepts it
    FOLLOW_OVER,
};

struct followed_exec {
    struct wanted_exec wanted;
    const struct exec_follow *follow; // borrowed
    struct fresh_start start;         // of its thread; start.pid is the program's from HELD on
    struct attach *attach;            // owned until it is taken; NULL: taken, or it has failed
    pthread_t thread;                 // if has_thread
    bool has_thread;
    sem_t is_accepted;
    sem_t has_news;            // posted at HELD and OVER
    _Atomic uint32_t stage;    // enum follow_stage; release by the one who moves it
    _Atomic bool is_withdrawn; // the exec has failed, or the recording ends
    bool was_taken_back;       // the exec has failed: there is no program
    bool has_failed;           // with OVER: the program is not recorded
};
DEFINE_VEC(followed_exec_vec, struct followed_exec *);

// Zeroed is valid. It must not move.
struct exec_follow {
    const struct session *session;          // borrowed
    const struct allocator_name_vec *names; // the user's, or NULL
    struct followed_exec_vec items;
};

// Take what processes want: follow an exec, or forget one that has failed.
enum err exec_follow_take(struct exec_follow *follow, const struct wanted_exec *wanted) MUST_USE;

// Start what is queued, as far as there is room. Two execs of one process follow one another.
void exec_follow_start(struct exec_follow *follow);

static inline enum follow_stage exec_follow_stage(const struct followed_exec *item)
{
    // Acquire: pairs with the release of the thread; the other fields are final for that stage.
    return (enum follow_stage)atomic_load_explicit(&item->stage, memory_order_acquire);
}

// Let a held program begin.
void exec_follow_accept(struct followed_exec *item);

// Remove an item that is over.
void exec_follow_remove(struct exec_follow *follow, size_t index);

// Withdraw all, and wait until each is held or over.
void exec_follow_stop(struct exec_follow *follow);

// After that: let what is held begin, and wait until none is traced. Then their functions can be
// restored.
void exec_follow_finish(struct exec_follow *follow);

// Accepts one without items, or whose items are over.
void exec_follow_release(struct exec_follow *follow);
