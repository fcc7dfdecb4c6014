// SPDX-License-Identifier: MIT
// limit_hooks: the exported functions by which a program limits its own address space.
//
// The session reserves gigabytes of it, without access, for lanes that other processes may use. A
// program that limits itself would lack them. So before it does, the unused room is given back
// (session_map_leanly): the header stays, and a lane of 1.3 MiB for each thread that has allocated,
// and getrlimit returns the limit that was set. A limit that is set from outside, or by a raw
// system call, finds the room still reserved; an inherited limit is seen when the process joins.
// Context: T, any caller.
#include <asm/resource.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/sys.h"
#include "target/preload/process/process.h"
#include "target/preload/real/real_process.h"

// As in the kernel; libc's header declares the functions, with other types.
struct rlimit {
    uint64_t rlim_cur;
    uint64_t rlim_max;
};

// Own prototypes, as in exec_hooks.c.
EXPORT int setrlimit(unsigned resource, const struct rlimit *limit);
EXPORT int setrlimit64(unsigned resource, const struct rlimit *limit);
EXPORT int prlimit(pid_t pid, unsigned resource, const struct rlimit *limit, struct rlimit *old);
EXPORT int prlimit64(pid_t pid, unsigned resource, const struct rlimit *limit, struct rlimit *old);

static void make_room(unsigned resource, const struct rlimit *limit)
{
    if (resource == RLIMIT_AS && limit != NULL && limit->rlim_cur != RLIM_INFINITY) {
        session_map_leanly(process_mapping());
    }
}

EXPORT int setrlimit(unsigned resource, const struct rlimit *limit)
{
    make_room(resource, limit);
    return g_real_process.setrlimit(resource, limit);
}

EXPORT int setrlimit64(unsigned resource, const struct rlimit *limit)
{
    make_room(resource, limit);
    return g_real_process.setrlimit64(resource, limit);
}

static void make_room_of(pid_t pid, unsigned resource, const struct rlimit *limit)
{
    if (pid == 0 || pid == sys_getpid()) {
        make_room(resource, limit);
    }
}

EXPORT int prlimit(pid_t pid, unsigned resource, const struct rlimit *limit, struct rlimit *old)
{
    make_room_of(pid, resource, limit);
    return g_real_process.prlimit(pid, resource, limit, old);
}

EXPORT int prlimit64(pid_t pid, unsigned resource, const struct rlimit *limit, struct rlimit *old)
{
    make_room_of(pid, resource, limit);
    return g_real_process.prlimit64(pid, resource, limit, old);
}
