// SPDX-License-Identifier: MIT
// exec_plan: decides for an exec about our environment variables and about a note to the recorder.
//
//   exec_plan_make()     checks the file (session/exec_check.h) and chooses the environment:
//
//     obstacle                         LD_PRELOAD and CAIRN_SESSION      note to the recorder
//     none                             unchanged                         -
//     none, the environment was        put back                          -
//     cleared, or LD_PRELOAD replaced
//     LD_PRELOAD alone was removed     unchanged: this was deliberate    yes
//     static, or another identity      unchanged: harmless, and its      yes
//                                      children may be recorded
//     musl, a sanitizer, 32 bits, ...  taken out                         yes
//     static, musl                     as above                          yes, and waits until the
//                                                                        recorder traces the exec
//     the library or the recorder is   taken out                         yes
//     out of reach; a seccomp filter
//
//   exec_plan_announce()   just before an exec
//   exec_plan_announce_spawn(), exec_plan_spawned()   just before a spawn, and after it
//   exec_plan_end()        the exec has failed, or the spawn is over
//
// Context: T, any caller of exec: threads, forked children that have not joined, children of vfork
// in the memory of their parent, signal handlers. Memory: about 3 KiB of stack. For an environment
// of more than ENVIRONMENT_SLOTS variables also a mapping, which an exec by a child of vfork leaves
// behind in its parent. errno is kept. Failure: the environment is unchanged.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "session/exec_check.h"
#include "target/preload/real/environment.h"

struct session_header;

struct exec_plan {
    struct made_environment environment;
    struct session_header *session; // receives the note; NULL: none
    const char *path;               // borrowed
    enum exec_obstacle obstacle;
    uint64_t number; // of the note, 0: none
    bool is_traced;  // the recorder follows the exec
    bool may_list;   // no program may follow: the loader may only print, as for ldd
};

// Whether a program that is executed here with these variables could join, or loads no library of
// ours.
bool exec_plan_may_join(char *const *variables);

// Make the plan. `path` is the file to execute, NULL if it cannot be found.
void exec_plan_make(struct exec_plan *plan, const char *path, char *const *variables);

// Announce the exec, by the calling process.
void exec_plan_announce(struct exec_plan *plan);

// Announce that the calling thread makes a child which executes the program. Afterwards: it has
// this pid, 0: it has failed.
void exec_plan_announce_spawn(struct exec_plan *plan);
void exec_plan_spawned(struct exec_plan *plan, uint32_t pid);

void exec_plan_end(struct exec_plan *plan, bool has_failed);
