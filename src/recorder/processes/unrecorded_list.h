// SPDX-License-Identifier: MIT
// unrecorded_list: the programs that recorded processes executed and that are not in the recording.
//
//   unrecorded_list_take()       takes the notes out of the session (target/producer/exec_note.h)
//                                those that are to be followed wait in `wanted` for their taker,
//                                those of loaded libraries in `loaded`
//   unrecorded_list_count_due()  counts those that were not withdrawn within WITHDRAW_MS, by
//                                program and reason
//
// A note is written before the exec, which may still fail; its writer then withdraws it. A program
// that was expected to be unrecordable may be recorded nevertheless, for example a setuid program
// on a file system that ignores the bit. An image of the same process then joins, and the note is
// void.
//
// Trust: notes are hostile. They are checked on a copy, names are bounded, and beyond
// UNRECORDED_PROGRAMS_MAX programs only reasons are counted.
// Context: H, the recorder's main thread.
// Failure: ERR_NO_MEMORY, ERR_LIMIT.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"
#include "symbols/runtimes/runtime_files.h"

struct aggregator;
struct exec_note;
struct session;

#define UNRECORDED_PROGRAMS_MAX 256u
#define UNRECORDED_RECENT_MAX   4096u // further ones are counted at once

// An exec that may still be withdrawn.
struct unrecorded_exec {
    uint64_t number;  // of its note
    uint64_t joins;   // images that had joined by then
    uint64_t time_ms; // time of the note, as it states
    uint64_t heard_ms;
    pid_t pid; // in our namespace; 0: not known
    uint32_t obstacle;
    rec_string program;
};

DEFINE_VEC(unrecorded_exec_vec, struct unrecorded_exec);

// A static program whose file is to be read for its runtime, by the caller: that takes as long as
// its process wants.
struct unread_program {
    rec_string program;
    pid_t pid;
};
DEFINE_VEC(unread_program_vec, struct unread_program);

// An exec whose process waits until the recorder follows it (target/producer/exec_note.h).
struct wanted_exec {
    struct unrecorded_exec exec; // obstacle EXEC_NONE: it has failed, forget its number
    struct exec_note *note;      // borrowed from the session; the taker frees the entry
    pid_t thread;                // in our namespace
    bool makes_child;
};
DEFINE_VEC(wanted_exec_vec, struct wanted_exec);

// A process that has loaded libraries, and waits until allocators in them are hooked.
struct loaded_note {
    pid_t pid;              // in our namespace; 0: not known
    struct exec_note *note; // borrowed from the session; the taker frees the entry
};
DEFINE_VEC(loaded_note_vec, struct loaded_note);
DEFINE_VEC(rec_unrecorded_vec, struct rec_unrecorded);

// A zeroed list is empty.
struct unrecorded_list {
    struct rec_unrecorded_vec entries;
    struct unrecorded_exec_vec recent;
    struct unrecorded_exec_vec fresh; // new ones, for unrecorded_tree to take
    struct wanted_exec_vec wanted;    // new ones, for exec_follow to take
    struct loaded_note_vec loaded;    // new ones, for the recorder to take
    struct runtime_files runtimes;    // of static programs
    struct unread_program_vec unread; // of those; the caller takes them and fills `runtimes`
    bool may_follow;                  // otherwise no exec is followed
    uint64_t seen_count;              // of notes, as the session counts them
};

void unrecorded_list_release(struct unrecorded_list *list);

// UINT64_MAX: at the end of the recording.
enum err unrecorded_list_take(struct unrecorded_list *list,
                              struct aggregator *aggregator,
                              const struct session *session,
                              uint64_t now_ms) MUST_USE;

// UINT64_MAX: all.
enum err unrecorded_list_count_due(struct unrecorded_list *list,
                                   struct aggregator *aggregator,
                                   uint64_t now_ms) MUST_USE;

// Add an exec that was to be followed and is not recorded after all.
enum err unrecorded_list_add(struct unrecorded_list *list,
                             struct aggregator *aggregator,
                             const struct unrecorded_exec *exec) MUST_USE;

// Add processes that the program of that exec started. If it is not counted yet, its entry has no
// execs so far.
enum err unrecorded_list_add_descendants(struct unrecorded_list *list,
                                         struct aggregator *aggregator,
                                         const struct unrecorded_exec *exec,
                                         uint64_t count) MUST_USE;
