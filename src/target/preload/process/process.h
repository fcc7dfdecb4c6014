// SPDX-License-Identifier: MIT
// process: this process's part in the session, from its first event to its last.
//
// The state of "this process" is on one page of its own with MADV_WIPEONFORK. The kernel zeroes
// that page in a forked child, however the child was made (fork, _Fork, clone without CLONE_VM). So
// the child knows at its first event that its inherited slot and lanes belong to its parent, and
// claims a slot of its own. This needs neither pthread_atfork nor getpid(). A vfork child shares
// the page, the memory and the thread-local storage with its parent, whose thread sleeps: it counts
// as the parent. An exec loads the library anew.
//
//   UNDECIDED --join--> JOINED --recorder dead or done--> LEFT --it goes on recording--> JOINED
//        |                 `--fork--> (the child) UNDECIDED
//        |--no session, or children are not followed----> OFF
//        `--1024 processes already----------------------> NO_SLOT --a slot is free later--> JOINED
//
// There is no lock, so a child of many threads cannot inherit a locked one. Unfinished work of its
// parent's other threads is in their own lanes, which stay the parent's, or on the wiped page
// (walkers in use, a join that has begun). One thread joins, with all signals blocked and by system
// calls only; other threads that arrive meanwhile yield until it is done.
//
// A recorder that was found dead may only have been stopped. When it runs again it sets the session
// back to SESSION_RUNNING, and the next event of each process takes part again: in the same slot,
// by a new generation, so that each thread makes its state anew (thread_state_renew) and sends what
// its lane still holds. A process that began meanwhile joins then.
//
// Context: T. Errno is kept. Failure: OFF; every hook passes through from then on, silently.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "target/producer/session_join.h"
#include "target/producer/words/process_words.h"

// Zero in a fresh image and in a forked child.
struct process_page {
    // The session while it is joined, else NULL. A hook reads this word first.
    _Atomic(struct session_header *) session;
    // (slot + 1) << 32 | how often code was unloaded. The upper half is 0 while there is no
    // session, and then no thread state is of this generation. A thread state of another generation
    // is stale or another process's.
    _Atomic uint64_t generation;
    uint32_t index;             // our slot
    _Atomic uint32_t verdict;   // enum process_verdict
    _Atomic uint32_t walkers;   // bit i: walker i of deferred.c is in use
    _Atomic uint64_t retry_ms;  // session clock at the last attempt to get a slot
    _Atomic uint64_t mappings;  // number of changes of its mappings so far
    uint64_t left_generation;   // `generation` when the process left the session
    uint64_t back_generation;   // when it came back last; 0: never
    struct process_words words; // of its blocks
    bool has_looked;            // for the session, and then
    bool was_in;                // process_entry_is_in
};

// Never NULL: points to a page of zeros at first.
extern struct process_page *g_process __attribute__((visibility("hidden")));

// The session's `recording`; never NULL, and once the process has joined, never changed.
extern const _Atomic uint32_t *g_process_recording __attribute__((visibility("hidden")));

// Decide whether this process takes part. `g_process->session` was NULL. True if it is joined now.
bool process_join(void);

// Count an event of a process that is not joined, if it lacks a slot or has a seccomp filter.
void process_count_unrecorded(void);

// Return the session that was left because its recorder was found dead, also if that goes on
// recording by now; NULL if there is none.
struct session_header *process_abandoned_session(void);

// End recording for this process: all hooks pass through, until the recorder of an abandoned
// session goes on. Other threads may be inside one: what those still need of the session, they have
// from process_mapping().
void process_leave(void);

// Count an event in the session that this process has joined, although another thread may have left
// it meanwhile.
void process_count(enum session_counter counter);

// Note the beginning of the process's exit in its slot, and let the recorder take its last memory
// snapshot, if it wants one. Events continue to be recorded.
void process_note_exit(void);

// Whether the caller is the process that recorded here, and no child of vfork, which has its
// memory.
bool process_is_this(void);

// Say that the process may end without a note: under a seccomp filter it cannot be asked whether
// the caller is this process or its child of vfork. The recorder takes no such end for a kill.
void process_forgo_exit_note(void);

// Say that threads of this process can wake the recorder no more: it gets a seccomp filter.
void process_note_confinement(void);

// Void what threads remember of code, because code was unloaded.
void process_code_unloaded(void);

// Return the session for programs that this process, or one forked from it, executes now; NULL:
// none.
struct session_header *process_followed_session(void);

// Return the inode number of the calling process's pid namespace (pid_namespaces(7)); 0 without
// /proc.
uint32_t process_pid_namespace(void);

// Return the joined mapping; its header is NULL before the join.
struct session_mapping *process_mapping(void);

// Return the name of the thread that joined, from prctl(PR_GET_NAME); 16 bytes.
const char *process_name(void);

ALWAYS_INLINE struct session_header *process_session(void)
{
    // Relaxed: the session was mapped before the pointer was stored, and is never unmapped.
    return atomic_load_explicit(&g_process->session, memory_order_relaxed);
}

ALWAYS_INLINE uint64_t process_generation(void)
{
    // Relaxed: a thread that runs new code has synchronized with the dlclose that made room for it.
    return atomic_load_explicit(&g_process->generation, memory_order_relaxed);
}

// Return the events to record now: enum session_recording; 0 before the process has joined.
ALWAYS_INLINE uint32_t process_recording(void)
{
    return atomic_load_explicit(g_process_recording, memory_order_relaxed); // see layout.h
}

// Return the next number for a change of this process's mappings (mapping_hooks.c). 0, which is
// before all others, while the process has not joined.
ALWAYS_INLINE uint64_t process_next_mapping(void)
{
    // Relaxed: all threads agree on the order of one counter, and a thread that hands an address to
    // another has synchronized with it.
    return process_session() == NULL
               ? 0
               : 1 + atomic_fetch_add_explicit(&g_process->mappings, 1, memory_order_relaxed);
}
