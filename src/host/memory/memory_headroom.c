// SPDX-License-Identifier: MIT
// memory_headroom: see memory_headroom.h.
#include "host/memory/memory_headroom.h"

#include <stdio.h>

#include "base/minmax.h"
#include "host/memory/memory_groups.h"

enum {
    KIB = 1024
};

// The files of a group, by version.
static const struct {
    const char *limit;
    const char *used;
    const char *caches[2]; // in memory.stat
} files[2] = {
    {"memory.max", "memory.current", {"inactive_file", "active_file"}},
    {"memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}},
};

// PSI: "full avg10=0.12 ...", in percent.
static uint64_t stall_of(const char *folder, const char *file)
{
    return memory_group_entry(folder, file, "full avg10", 0);
}

static void take_nearest(void *context, const char *folder, bool is_version_1)
{
    struct memory_headroom *nearest = context;
    const uint64_t limit = memory_group_number(folder, files[is_version_1].limit);
    const uint64_t used = memory_group_number(folder, files[is_version_1].used);
    if (limit == UINT64_MAX || used == UINT64_MAX || limit == 0) {
        return;
    }
    uint64_t cache = 0;
    for (size_t i = 0; i < 2; i++) {
        cache += memory_group_entry(folder, "memory.stat", files[is_version_1].caches[i], 0);
    }
    const uint64_t needed = min_u64(used > cache ? used - cache : 0, limit);
    if (nearest->limit_bytes == 0 || limit - needed < nearest->limit_bytes - nearest->used_bytes) {
        *nearest = (struct memory_headroom){
            .limit_bytes = limit,
            .used_bytes = needed,
            .stall_percent = is_version_1 ? 0 : stall_of(folder, "memory.pressure")};
    }
}

static struct memory_headroom headroom_of_machine(const char *proc)
{
    // "MemTotal:" is a key of its own; the spaces after it are many, so the value is read here.
    struct memory_headroom machine = {.stall_percent = stall_of(proc, "pressure/memory")};
    char path[256];
    char line[128];
    unsigned long long total = 0;
    unsigned long long available = 0;
    unsigned long long swap_total = 0;
    unsigned long long swap_free = 0;
    const int len = snprintf(path, sizeof(path), "%s/meminfo", proc);
    FILE *meminfo = len < (int)sizeof(path) ? fopen(path, "re") : NULL;
    while (meminfo != NULL && fgets(line, sizeof(line), meminfo) != NULL) {
        (void)(sscanf(line, "MemTotal: %llu", &total) == 1 ||
               sscanf(line, "MemAvailable: %llu", &available) == 1 ||
               sscanf(line, "SwapTotal: %llu", &swap_total) == 1 ||
               sscanf(line, "SwapFree: %llu", &swap_free) == 1); // any other line
    }
    if (meminfo != NULL) {
        (void)fclose(meminfo); // read only
    }
    const uint64_t all = total + swap_total;
    machine.limit_bytes = all * KIB;
    machine.used_bytes = (all - min_u64(available + swap_free, all)) * KIB;
    return machine;
}

struct memory_headroom
memory_headroom_of(const char *proc_cgroup, const char *cgroup_root, const char *proc)
{
    struct memory_headroom nearest = headroom_of_machine(proc);
    memory_groups_visit(proc_cgroup, cgroup_root, take_nearest, &nearest);
    return nearest;
}
