// SPDX-License-Identifier: MIT
// memory_headroom: how near a process is to the memory limit that would kill it.
//
// The limit is that of the control group around the process that has the least left (memory.max;
// memory.limit_in_bytes in version 1), or the machine's memory and swap. The cache of files counts
// as free: the kernel drops it before it kills. The stall is from memory.pressure (PSI): the part
// of the last ten seconds in which no process of that group could work for lack of memory.
// Kills count in the groups around a process (memory.events; memory.oom_control in version 1), or
// in those of the machine where no group counts them. Context: H. Each call reads a few files.
#pragma once

#include <stdint.h>

struct memory_headroom {
    uint64_t limit_bytes; // 0: unknown
    uint64_t used_bytes;  // at most the limit
    uint64_t stall_percent;
};

// `proc_cgroup` and `cgroup_root` as in memory_groups.h; `proc` is the folder of meminfo and
// pressure/memory of the machine.
struct memory_headroom
memory_headroom_of(const char *proc_cgroup, const char *cgroup_root, const char *proc);

// Return how many processes the kernel has killed so far for lack of memory. A later count that is
// higher says that one was killed meanwhile.
uint64_t memory_kills_of(const char *proc_cgroup, const char *cgroup_root, const char *proc);
