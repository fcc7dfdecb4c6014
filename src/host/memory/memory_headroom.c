// SPDX-License-Identifier: MIT
#include "host/memory/memory_headroom.h"

#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/memory/memory_groups.h"
#include "host/text/proc_text.h"

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
    CLEANUP(strbuf_release) struct strbuf text = {0};
    return memory_group_read(folder, file, &text)
               ? memory_group_entry(strbuf_text(&text), "full avg10")
               : 0;
}

static uint64_t cache_of(const char *folder, bool is_version_1)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    uint64_t cache = 0;
    if (!memory_group_read(folder, "memory.stat", &text)) {
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(files[is_version_1].caches); i++) {
        cache += memory_group_entry(strbuf_text(&text), files[is_version_1].caches[i]);
    }
    return cache;
}

static void take_nearest(void *context, const char *folder, bool is_version_1)
{
    struct memory_headroom *nearest = context;
    const uint64_t limit = memory_group_number(folder, files[is_version_1].limit);
    const uint64_t used = memory_group_number(folder, files[is_version_1].used);
    if (limit == UINT64_MAX || used == UINT64_MAX || limit == 0) {
        return;
    }
    const uint64_t cache = cache_of(folder, is_version_1);
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
    struct memory_headroom machine = {.stall_percent = stall_of(proc, "pressure/memory")};
    CLEANUP(strbuf_release) struct strbuf meminfo = {0};
    if (memory_group_read(proc, "meminfo", &meminfo)) {
        const char *text = strbuf_text(&meminfo);
        const uint64_t free_bytes =
            proc_text_kib(text, "MemAvailable") + proc_text_kib(text, "SwapFree");
        machine.limit_bytes = proc_text_kib(text, "MemTotal") + proc_text_kib(text, "SwapTotal");
        machine.used_bytes = machine.limit_bytes - min_u64(free_bytes, machine.limit_bytes);
    }
    return machine;
}

struct memory_headroom
memory_headroom_of(const char *proc_cgroup, const char *cgroup_root, const char *proc)
{
    struct memory_headroom nearest = headroom_of_machine(proc);
    memory_groups_visit(proc_cgroup, cgroup_root, take_nearest, &nearest);
    return nearest;
}

struct kills {
    uint64_t count;
    bool is_counted;
};

static void add_kills(void *context, const char *folder, bool is_version_1)
{
    struct kills *kills = context;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    if (memory_group_read(folder, is_version_1 ? "memory.oom_control" : "memory.events", &text) &&
        strstr(strbuf_text(&text), "oom_kill ") != NULL) {
        kills->count += memory_group_entry(strbuf_text(&text), "oom_kill");
        kills->is_counted = true;
    }
}

uint64_t memory_kills_of(const char *proc_cgroup, const char *cgroup_root, const char *proc)
{
    struct kills kills = {0};
    CLEANUP(strbuf_release) struct strbuf text = {0};
    memory_groups_visit(proc_cgroup, cgroup_root, add_kills, &kills);
    if (kills.is_counted || !memory_group_read(proc, "vmstat", &text)) {
        return kills.count;
    }
    return memory_group_entry(strbuf_text(&text), "oom_kill");
}
