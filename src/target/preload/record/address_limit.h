// SPDX-License-Identifier: MIT
// address_limit: makes room for a program that limits its own address space.
//
// The session reserves gigabytes of it, without access, for lanes that other processes may use. A
// program that limits itself would lack them. So before it does, the unused room is given back
// (session_map_leanly): the header stays, and a lane of 1.3 MiB for each thread that has allocated.
// Of words (process_words.h) the directory of 16 MiB stays, and what blocks have used
// (region_cut.h). getrlimit returns the limit that was set. A limit that is set from outside, or
// by a raw system call, finds the room still reserved; an inherited limit is seen when the process
// joins.
// Context: T, before setrlimit and its kin, any caller.
#pragma once

#include <asm/resource.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sys.h"
#include "target/preload/process/process.h"
#include "target/preload/record/record_guard.h"

// As in the kernel; libc's header declares the functions, with other types.
struct rlimit {
    uint64_t rlim_cur;
    uint64_t rlim_max;
};

// Prepare for setrlimit with these arguments.
static inline void address_limit_expect(unsigned resource, const struct rlimit *limit)
{
    if (resource == RLIMIT_AS && limit != NULL && limit->rlim_cur != RLIM_INFINITY) {
        session_map_leanly(process_mapping());
        process_words_map_leanly(&g_process->words, guard_is_nested());
    }
}

// Prepare for prlimit with these arguments.
static inline void
address_limit_expect_of(int32_t pid, unsigned resource, const struct rlimit *limit)
{
    if (pid == 0 || pid == sys_getpid()) {
        address_limit_expect(resource, limit);
    }
}
