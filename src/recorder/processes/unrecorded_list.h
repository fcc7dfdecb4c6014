// SPDX-License-Identifier: MIT
// unrecorded_list: the programs that recorded processes executed and that are not in the recording.
//
//   unrecorded_list_hear()    takes the notes out of the session (target/producer/exec_note.h)
//   unrecorded_list_settle()  those that nobody took back within SETTLE_MS are counted, by program
//                             and reason
//
// A note is written before the exec, which may still fail: then its writer takes it back. And what
// was expected not to be recorded may be, for a setuid program on a file system that ignores that,
// say: then an image of the same process joins, and the note is void.
//
// Trust: notes are hostile. What they say is checked on a copy, names are bounded, and beyond
// UNRECORDED_PROGRAMS_MAX programs only reasons are told apart. Context: H, the recorder's main
// thread. Failure: ERR_NO_MEMORY, ERR_LIMIT.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

struct aggregator;
struct session;

#define UNRECORDED_PROGRAMS_MAX 256u
#define UNRECORDED_YOUNG_MAX    4096u // what comes above is counted at once

// An exec that may yet be taken back.
struct unrecorded_exec {
    uint64_t number;  // of its note
    uint64_t joins;   // images that had joined by then
    uint64_t time_ms; // when it was written, as it says
    uint64_t heard_ms;
    pid_t pid; // of ours, 0: not known
    uint32_t obstacle;
    rec_string program;
};

DEFINE_VEC(unrecorded_exec_vec, struct unrecorded_exec);
DEFINE_VEC(rec_unrecorded_vec, struct rec_unrecorded);

// A zeroed list is empty.
struct unrecorded_list {
    struct rec_unrecorded_vec entries;
    struct unrecorded_exec_vec young;
    struct unrecorded_exec_vec fresh; // heard of, for unrecorded_tree to take
    uint64_t seen_count;              // of notes, as the session counts them
};

void unrecorded_list_release(struct unrecorded_list *list);

enum err unrecorded_list_hear(struct unrecorded_list *list,
                              struct aggregator *aggregator,
                              const struct session *session,
                              uint64_t now_ms) MUST_USE;

// UINT64_MAX: all.
enum err unrecorded_list_settle(struct unrecorded_list *list,
                                struct aggregator *aggregator,
                                uint64_t now_ms) MUST_USE;

// Adds processes that the program of that exec started. It may not be settled yet: then its entry
// has no execs so far.
enum err unrecorded_list_add_descendants(struct unrecorded_list *list,
                                         struct aggregator *aggregator,
                                         const struct unrecorded_exec *exec,
                                         uint64_t count) MUST_USE;
