// SPDX-License-Identifier: MIT
// exec_note: what a process says before it executes a program that will not be recorded.
//
// Who executes has no time after it, and the child of a vfork has only its parent's thread: so a
// note is a place in the session's memory, claimed by one compare and swap, which needs neither
// lane nor lock nor system call. The recorder takes the notes out. If the exec fails after all, a
// second note with the first one's number takes it back. When all places are taken, the exec is
// counted and not named (NOTE_unnamed_execs).
//
//   FREE --P, compare and swap--> CLAIMED --P, release--> READY --R, release--> FREE
//
// Context: T writes, async-signal-safe; R reads, and treats what it finds as hostile.
#pragma once

#include <stdint.h>

#include "session/exec_check.h"
#include "session/layout.h"

// Notes that the program behind `path` is executed unrecorded by the process `pid` (0: unknown) of
// that pid namespace. Returns the note's number; 0 if there was no room.
uint64_t exec_note_put(struct session_header *session,
                       enum exec_obstacle obstacle,
                       const char *path,
                       uint32_t pid,
                       uint32_t pid_namespace);

// The exec of that note has failed. Nothing if `number` is 0.
void exec_note_take_back(struct session_header *session, uint64_t number);
