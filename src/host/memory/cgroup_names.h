// SPDX-License-Identifier: MIT
// cgroup_names: the container and the pod that the path of a control group names, as in
// /proc/PID/cgroup.
//
// Context: H; pure.
#pragma once

#include <stddef.h>

// A part of the text; borrowed.
struct cgroup_part {
    const char *text;
    size_t len; // 0: not found
};

// Find the last run of 64 hexadecimal digits: docker-ID.scope, cri-containerd-ID.scope, /docker/ID.
struct cgroup_part cgroup_names_container(const char *cgroup);

// Find podUID, in which systemd writes '_' for '-'.
struct cgroup_part cgroup_names_pod(const char *cgroup);
