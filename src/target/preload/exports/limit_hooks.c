// SPDX-License-Identifier: MIT
// limit_hooks: the exported functions by which a program limits its own address space
// (address_limit.h). Context: T, any caller.
#include "target/preload/record/address_limit.h"

#include "base/compiler.h"
#include "target/preload/real/real_process.h"

// Own prototypes, as in exec_hooks.c.
EXPORT int setrlimit(unsigned resource, const struct rlimit *limit);
EXPORT int setrlimit64(unsigned resource, const struct rlimit *limit);
EXPORT int prlimit(pid_t pid, unsigned resource, const struct rlimit *limit, struct rlimit *old);
EXPORT int prlimit64(pid_t pid, unsigned resource, const struct rlimit *limit, struct rlimit *old);

EXPORT int setrlimit(unsigned resource, const struct rlimit *limit)
{
    address_limit_expect(resource, limit);
    return g_real_process.setrlimit(resource, limit);
}

EXPORT int setrlimit64(unsigned resource, const struct rlimit *limit)
{
    address_limit_expect(resource, limit);
    return g_real_process.setrlimit64(resource, limit);
}

EXPORT int prlimit(pid_t pid, unsigned resource, const struct rlimit *limit, struct rlimit *old)
{
    address_limit_expect_of(pid, resource, limit);
    return g_real_process.prlimit(pid, resource, limit, old);
}

EXPORT int prlimit64(pid_t pid, unsigned resource, const struct rlimit *limit, struct rlimit *old)
{
    address_limit_expect_of(pid, resource, limit);
    return g_real_process.prlimit64(pid, resource, limit, old);
}
