// SPDX-License-Identifier: MIT
// pid_lookup: the pid by which we know a process of another pid namespace.
//
// A process knows itself by the pid of its own namespace, which for us is somebody else's, or
// nobody's: who believed it would sample a stranger's memory, and take a living process for dead
// and its lanes away from it. pid_namespaces(7): proc's status lists a process's pids (NSpid), ours
// first and its own last, and ns/pid tells one namespace from another by its inode number.
//
// Context: H. Cost: one look at each process of the machine.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

// The pid that we know the process by that is `inner_pid` in the namespace with this inode number,
// which is not ours. 0: there is none any more.
pid_t pid_lookup(uint32_t inner_pid, uint32_t pid_namespace);

// The namespace of a process that could not see it, since it has no /proc, but has mapped this file
// as nobody does but those who are recorded. Where there is none such, but one that we know by this
// pid and whose mappings are closed to us, it is taken for that. 0: there is none (any more).
uint32_t pid_lookup_namespace(uint32_t inner_pid, int mapped_file);

// The parent of one of our processes, by our own pid; 0 if it has none or is gone.
uint32_t pid_lookup_parent(pid_t pid);

// Whether one of our processes may have mapped this file: it has, or it cannot be seen and is not
// older than we are. So who is recorded is told from a stranger whose pid was written into a slot,
// and from the next image of a process, which is not recorded.
bool pid_lookup_may_map(pid_t pid, int mapped_file);

// For pid_lookup, and for its tests: the last number of the line NSpid in the text of a status; 0
// if there is none.
uint32_t pid_lookup_innermost(const char *status);
