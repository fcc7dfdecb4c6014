// SPDX-License-Identifier: MIT
// pid_lookup: finds the pid, in our namespace, of a process of another pid namespace.
//
// A process knows its pid in its own namespace. In ours that pid belongs to another process or to
// none. Using it would sample the memory of an unrelated process, or declare a live process dead
// and take its lanes away. pid_namespaces(7): proc's status lists a process's pids (NSpid), ours
// first and its own last, and the inode number of ns/pid identifies a namespace.
//
// Context: H, the recorder's main thread.
// Cost: one read for each process of the machine; in the namespace that was asked for last, one
// call of a kernel that translates pids (Linux 6.11).
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// Return our pid of the process `inner_pid` in the namespace with this inode number, which differs
// from ours. 0: none any more.
pid_t pid_lookup(uint32_t inner_pid, uint32_t pid_namespace);

struct inner_pid {
    uint32_t pid;           // in its own namespace,
    uint32_t pid_namespace; // with this inode number
};

// Return what one of our processes takes for its pid; zeros if it has ended.
struct inner_pid pid_lookup_inner(pid_t pid);

// Return the namespace of a process that could not see it for lack of /proc. It maps this file, as
// only recorded processes do. If no process maps it, a process with this pid whose mappings are
// unreadable is taken. 0: none (any more).
uint32_t pid_lookup_namespace(uint32_t inner_pid, int mapped_file);

// Return whether one of our processes maps this file, as far as its mappings are readable.
bool pid_lookup_maps(pid_t pid, int mapped_file);

// Return whether one of our processes may map this file: it does, or its mappings are unreadable
// and it is not older than the recorder. This distinguishes a recorded process from an unrelated
// one whose pid was written into a slot, and from the next image of a process, which is not
// recorded.
bool pid_lookup_may_map(pid_t pid, int mapped_file);
