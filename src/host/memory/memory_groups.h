// SPDX-License-Identifier: MIT
// memory_groups: the control groups around a process that account for memory (cgroups(7)), and the
// container and the pod that their names tell.
//
// Both versions: /memory.max in the unified hierarchy, /memory/.../memory.limit_in_bytes in
// version 1. Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/text/strbuf.h"

// One group: `folder` has its files. Version 1 has other files than version 2.
typedef void memory_group_visit(void *context, const char *folder, bool is_version_1);

// Call `visit` for the group of a process and all groups around it, innermost first. `proc_cgroup`
// is /proc/PID/cgroup, `cgroup_root` the mount point of the hierarchies (/sys/fs/cgroup). A group
// whose folder does not exist is visited, too.
void memory_groups_visit(const char *proc_cgroup,
                         const char *cgroup_root,
                         memory_group_visit *visit,
                         void *context);

// Append the text of a file in the folder of a group, or in /proc. False: it cannot be read.
bool memory_group_read(const char *folder, const char *file, struct strbuf *out);

// Return the number at the start of the file of a group; UINT64_MAX if it has none ("max").
uint64_t memory_group_number(const char *folder, const char *file);

// Return the number behind `key` and a space, or =, in the text of a file; 0 if it is not there.
uint64_t memory_group_entry(const char *text, const char *key);

// A part of the text of a /proc/PID/cgroup; borrowed.
struct cgroup_part {
    const char *text;
    size_t len; // 0: not found
};

// Find the last run of 64 hexadecimal digits: docker-ID.scope, cri-containerd-ID.scope, /docker/ID.
struct cgroup_part cgroup_names_container(const char *cgroup);

// Find podUID, in which systemd writes '_' for '-'.
struct cgroup_part cgroup_names_pod(const char *cgroup);
