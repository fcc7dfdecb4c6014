// SPDX-License-Identifier: MIT
// exec_note: notes a program that a process is about to execute and that will not be recorded.
//
// A process has no time after an exec, and the child of a vfork has only its parent's thread. So a
// note is an entry in the session's memory, claimed by one compare and swap, without a lane, lock
// or system call. The recorder takes the notes out. If the exec fails after all, a second note with
// the first one's number takes it back. When all entries are in use, the exec is counted but not
// named (NOTE_unnamed_execs).
//
//   FREE --P, compare and swap--> CLAIMED --P, release--> READY --R, release--> FREE
//
// Context: T writes, async-signal-safe; R reads, and treats the contents as hostile.
#pragma once

#include <stdint.h>

#include "session/exec_check.h"
#include "session/layout.h"

// Note that the process `pid` (0: unknown) of that pid namespace executes the program at `path`
// unrecorded. Returns the note's number; 0 if there was no room.
uint64_t exec_note_put(struct session_header *session,
                       enum exec_obstacle obstacle,
                       const char *path,
                       uint32_t pid,
                       uint32_t pid_namespace);

// Take back that note, because the exec failed. Does nothing if `number` is 0.
void exec_note_take_back(struct session_header *session, uint64_t number);
