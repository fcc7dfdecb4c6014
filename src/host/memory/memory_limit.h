// SPDX-License-Identifier: MIT
// memory_limit: the memory that this process may expect to get.
//
// It is the smaller of the machine's memory and the tightest limit of the control groups around the
// process: memory.max and memory.high of version 2 (cgroups(7),
// "Documentation/admin-guide/cgroup-v2.rst"), memory.limit_in_bytes of version 1. An unreadable
// limit does not count. Context: H.
#pragma once

#include <stdint.h>

// Return the limit in bytes. `proc_cgroup` is /proc/self/cgroup, `cgroup_root` the mount point of
// the hierarchies (/sys/fs/cgroup), `machine_bytes` the memory of the machine.
uint64_t memory_limit_of(const char *proc_cgroup, const char *cgroup_root, uint64_t machine_bytes);

// Return the memory of this machine; UINT64_MAX: it is not known.
uint64_t memory_of_machine(void);

// Return the limit of this process on this machine.
uint64_t memory_limit_here(void);
