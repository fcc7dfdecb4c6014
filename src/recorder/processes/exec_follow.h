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
// A process may hinder its thread (aside.h). At the end of the recording such a thread is left,
// which lets the process go when it comes back; it touches the session no more.
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
#define EXEC_FOLLOW_END_MS 1000u // for programs that are about to be followed, at the end

struct aside;
struct session;

enum follow_stage {
    FOLLOW_QUEUED,
    FOLLOW_RUNNING,
    FOLLOW_HELD, // the main thread takes `attach`, and accepts it
    FOLLOW_OVER,
};

struct followed_exec {
    struct wanted_exec wanted;
    const struct allocator_name_vec *names; // borrowed
    bool reads_python;                      // attach_options
    struct fresh_start start; // of its thread; start.pid is the program's from HELD on
    struct attach *attach;    // owned until it is taken; NULL: taken, or it has failed
    struct aside *aside;      // owned; NULL: not started
    int session_fd;           // owned
    pthread_mutex_t lock;     // protects `session`, also what that points to
    struct session *session;  // borrowed; NULL: the thread was left
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
    struct session *session;                // borrowed
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

// Withdraw all, and wait until each is held or over, at most `limit_ms`; those that are not are
// left and removed. Return how many.
uint32_t exec_follow_stop(struct exec_follow *follow, uint64_t limit_ms);

// After that: let what is held begin, and wait until none is traced, in the same way. Then their
// functions can be restored.
uint32_t exec_follow_finish(struct exec_follow *follow, uint64_t limit_ms);

// Accepts one without items, or whose items are over.
void exec_follow_release(struct exec_follow *follow);
