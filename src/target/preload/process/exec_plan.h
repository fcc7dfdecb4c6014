// SPDX-License-Identifier: MIT
// exec_plan: what an exec is given of our environment, and what the recorder is told of it.
//
//   exec_plan_make()     looks at the file (session/exec_check.h) and chooses the environment:
//
//     what stands in the way           LD_PRELOAD and CAIRN_SESSION      the recorder is told
//     nothing                          as they are                       -
//     nothing, the environment was     put back                          -
//     cleared, or LD_PRELOAD replaced
//     LD_PRELOAD was taken out alone   as they are: somebody meant it    yes
//     static, or another identity      as they are: no harm, and who     yes
//                                      is executed by it may be recorded
//     musl, a sanitizer, 32 bits, ...  taken out                         yes
//     the library or the recorder is   taken out                         yes
//     out of reach; a seccomp filter
//
//   exec_plan_announce()   just before an exec, or after a spawn, whose pid is known then
//   exec_plan_end()        the exec has failed, or the spawn is over
//
// Context: T, whoever executes: threads, forked children that have not joined, children of vfork in
// the memory of their parent, signal handlers. Only the stack is used, about 3 KiB, and where an
// environment has more than ENVIRONMENT_SLOTS variables a mapping, which an exec by a child of
// vfork leaves behind in its parent. errno is kept. Failure: the environment is what it was.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "session/exec_check.h"
#include "target/preload/real/environment.h"

struct session_header;

struct exec_plan {
    struct made_environment environment;
    struct session_header *session; // that is to be told; NULL: none
    const char *path;               // borrowed
    enum exec_obstacle obstacle;
    uint64_t number; // of the note, 0: none
};

// `path` is what will be executed, NULL if it cannot be found.
void exec_plan_make(struct exec_plan *plan, const char *path, char *const *variables);

// `pid` is that of the process whose image it becomes.
void exec_plan_announce(struct exec_plan *plan, uint32_t pid);

void exec_plan_end(struct exec_plan *plan, bool has_failed);
