// SPDX-License-Identifier: MIT
// exec_note: notes a program that a process is about to execute and that does not load the library.
//
// A process has no time after an exec, and the child of a vfork has only its parent's thread. So a
// note is an entry in the session's memory, claimed by one compare and swap, without a lane, lock
// or system call. The recorder takes the notes out. If the exec fails after all, a second note with
// the first one's number takes it back. When all entries are in use, the exec is counted but not
// named (NOTE_unnamed_execs).
//
//   FREE --P, compare and swap--> CLAIMED --P, release--> READY --R, release--> FREE
//                                                           `--R--> HEARD --R, followed--> FREE
//
// The recorder can follow most programs: it traces the exec and puts its agent into the program
// before that begins. Then the process waits for the tracer:
//
//   WANTED --R, traces the thread--> TRACED
//        | `--R, cannot--> NO
//        `--P, has waited long enough--> LEFT
//
// It waits as long as the recorder lives, and FOLLOW_WAIT_MS at most. Whatever R answers, the
// program is executed next.
//
// The agent also puts notes of libraries that the dynamic loader has mapped (has_loaded), and waits
// in the same way until R has hooked the allocators in them, before their first function runs.
// Context: T writes, async-signal-safe; errno kept; R reads, and treats
// the contents as hostile.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "session/exec_check.h"
#include "session/layout.h"

struct exec_notice {
    const char *path;
    enum exec_obstacle obstacle;
    uint32_t pid; // of the process that executes it, 0: unknown
    uint32_t pid_namespace;
    bool is_to_be_followed; // by the recorder; the caller's thread executes the program
    bool makes_child;       // with that: or makes the child that will, by posix_spawn
    bool has_loaded;        // no exec: the process has loaded libraries, and waits for their hooks
};

// Whether the recorder follows such an exec.
bool exec_note_may_follow(const struct session_header *session, enum exec_obstacle obstacle);

// Note the exec. *out_is_traced: the recorder follows it. Returns the note's number; 0 if there was
// no room.
uint64_t exec_note_put(struct session_header *session,
                       const struct exec_notice *notice,
                       bool *out_is_traced);

// Take back that note, because the exec failed. Does nothing if `number` is 0.
void exec_note_take_back(struct session_header *session, uint64_t number);
