// SPDX-License-Identifier: MIT
#include "host/memory/memory_limit.h"

#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "host/memory/memory_groups.h"

static void take_limit(void *context, const char *folder, bool is_version_1)
{
    uint64_t *limit = context;
    const uint64_t most =
        memory_group_number(folder, is_version_1 ? "memory.limit_in_bytes" : "memory.max");
    const uint64_t high = is_version_1 ? UINT64_MAX : memory_group_number(folder, "memory.high");
    *limit = min_u64(*limit, min_u64(most, high));
}

uint64_t memory_limit_of(const char *proc_cgroup, const char *cgroup_root, uint64_t machine_bytes)
{
    uint64_t limit = machine_bytes;
    memory_groups_visit(proc_cgroup, cgroup_root, take_limit, &limit);
    return limit;
}

uint64_t memory_of_machine(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long page_bytes = sysconf(_SC_PAGESIZE);
    return pages > 0 && page_bytes > 0 ? (uint64_t)pages * (uint64_t)page_bytes : UINT64_MAX;
}

// A short run asks at its start and at its end, and the answer takes twenty system calls.
// Either one may be seen first: then the old limit holds a second longer, or it is looked up again.
static _Atomic uint64_t last_limit;
static _Atomic uint64_t last_ns;

uint64_t memory_limit_here(void)
{
    const uint64_t now_ns = clock_read_ns(CLOCK_MONOTONIC_COARSE);
    const uint64_t known = atomic_load_explicit(&last_limit, memory_order_relaxed);
    if (known != 0 && now_ns - atomic_load_explicit(&last_ns, memory_order_relaxed) < NS_PER_S) {
        return known;
    }
    const uint64_t limit =
        memory_limit_of("/proc/self/cgroup", "/sys/fs/cgroup", memory_of_machine());
    atomic_store_explicit(&last_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&last_limit, limit, memory_order_relaxed);
    return limit;
}
