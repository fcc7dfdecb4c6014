// SPDX-License-Identifier: MIT
// memory_limit: how much memory this process can hope for.
//
// That is the machine's, or what the tightest control group around us may have, whichever is less:
// memory.max and memory.high of version 2 (cgroups(7), "Documentation/admin-guide/cgroup-v2.rst"),
// memory.limit_in_bytes of version 1. Context: H. What cannot be read limits nothing.
#pragma once

#include <stdint.h>

// In bytes. `proc_cgroup` is /proc/self/cgroup, `cgroup_root` where the hierarchies are mounted
// (/sys/fs/cgroup); `machine_bytes` is what there is in all.
uint64_t memory_limit_of(const char *proc_cgroup, const char *cgroup_root, uint64_t machine_bytes);

// Of this process, on this machine.
uint64_t memory_limit_here(void);
