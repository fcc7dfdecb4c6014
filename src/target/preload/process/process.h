// SPDX-License-Identifier: MIT
// process: this process's part in the session, from its first event to its last.
//
// What is known of "this process" lies on one page of its own with MADV_WIPEONFORK: a forked child
// finds it zeroed by the kernel, however it was made (fork, _Fork, clone without CLONE_VM), and so
// knows at its first event that the slot and the lanes which it inherited are its parent's. It then
// claims a slot of its own. There is no pthread_atfork and no getpid() on the way. A vfork child
// shares the page, the memory and the thread-local storage with its parent, whose thread sleeps:
// it counts as the parent. An exec loads us anew.
//
//   UNDECIDED --join--> JOINED --recorder dead or done--> OFF
//        |                 `--fork--> (the child) UNDECIDED
//        |--no session, or children are not followed----> OFF
//        `--1024 processes already----------------------> NO_SLOT --a slot is free later--> JOINED
//
// There is no lock, so a child of many threads inherits none that is taken. What its parent's other
// threads were in the middle of lies in their own lanes, which stay the parent's, or on the wiped
// page (walkers in use, a join that has begun). One thread joins, with all signals blocked and
// nothing but system calls on its way; others that meet it in the middle yield until it is done.
//
// Context: T. Errno is kept. Failure: OFF; every hook passes through for ever, silently.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "target/producer/session_join.h"

// Zero in a fresh image and in a forked child.
struct process_page {
    // The session while it is joined, else NULL. The first word that a hook looks at.
    _Atomic(struct session_header *) session;
    // (slot + 1) << 32 | how often code was unloaded; the upper half is 0 while there is no
    // session, and then no thread state is of this generation. One of another generation is stale
    // or another process's.
    _Atomic uint64_t generation;
    uint32_t index;            // our slot
    _Atomic uint32_t verdict;  // enum process_verdict
    _Atomic uint32_t walkers;  // bit i: walker i of deferred.c is in use
    _Atomic uint64_t retry_ms; // session clock at the last attempt to get a slot
    _Atomic uint64_t mappings; // changes of its mappings that were numbered so far
    uint64_t left_generation;  // what `generation` was when the process left the session
};

// Never NULL: at first a page that is always zero.
extern struct process_page *g_process;

// Decides whether this process takes part. `g_process->session` was NULL. True if it is joined now.
bool process_join(void);

// An event came and the process is not joined: counts it, if that is for want of a slot, or because
// a seccomp filter is over it.
void process_count_unrecorded(void);

// The session that was left because its recorder was found dead, NULL if there is none.
struct session_header *process_abandoned_session(void);

// Recording is over for this process: from now on all hooks pass through.
void process_leave(void);

// The process begins to exit: its slot notes when, and the recorder gets its last look at the
// memory map, if it wants one. Events go on to be recorded.
void process_note_exit(void);

// The caller is about to end its process, which may also be a child of vfork: then nothing is
// noted, for the process that recorded here lives on.
void process_note_own_exit(void);

// Code was unloaded: what threads remember of it is void.
void process_code_unloaded(void);

// The session that the programs are to join which this process, or one that was forked from it,
// executes now; NULL: none.
struct session_header *process_followed_session(void);

// pid_namespaces(7): the inode number of the calling process's; 0 where there is no /proc.
uint32_t process_pid_namespace(void);

// The mapping that was joined; header NULL before.
struct session_mapping *process_mapping(void);

// The name of the thread that joined, as prctl(PR_GET_NAME) says; 16 bytes.
const char *process_name(void);

ALWAYS_INLINE struct session_header *process_session(void)
{
    // Relaxed: what it points to was there before it was stored, and is never unmapped.
    return atomic_load_explicit(&g_process->session, memory_order_relaxed);
}

ALWAYS_INLINE uint64_t process_generation(void)
{
    // Relaxed: whoever runs new code has synchronized with the dlclose that made room for it.
    return atomic_load_explicit(&g_process->generation, memory_order_relaxed);
}

// The next number for a change of this process's mappings (mapping_hooks.c); 0 while it has not
// joined, which is before all others.
ALWAYS_INLINE uint64_t process_next_mapping(void)
{
    // Relaxed: one counter is in one order for all threads, and whoever hands an address to another
    // has synchronized with it.
    return process_session() == NULL
               ? 0
               : 1 + atomic_fetch_add_explicit(&g_process->mappings, 1, memory_order_relaxed);
}
