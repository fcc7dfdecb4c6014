// SPDX-License-Identifier: MIT
// memory_groups: the control groups around a process that account for memory (cgroups(7)).
//
// Both versions: /memory.max in the unified hierarchy, /memory/.../memory.limit_in_bytes in
// version 1. Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// One group: `folder` has its files. Version 1 has other files than version 2.
typedef void memory_group_visit(void *context, const char *folder, bool is_version_1);

// Call `visit` for the group of a process and all groups around it, innermost first. `proc_cgroup`
// is /proc/PID/cgroup, `cgroup_root` the mount point of the hierarchies (/sys/fs/cgroup). A group
// whose folder does not exist is visited, too.
void memory_groups_visit(const char *proc_cgroup,
                         const char *cgroup_root,
                         memory_group_visit *visit,
                         void *context);

// Return the number at the start of the file of a group; UINT64_MAX if it has none ("max").
uint64_t memory_group_number(const char *folder, const char *file);

// Return the number behind `key` and a space, or =, in the file of a group; `otherwise` if it is
// not there.
uint64_t
memory_group_entry(const char *folder, const char *file, const char *key, uint64_t otherwise);
