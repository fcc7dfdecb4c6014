// SPDX-License-Identifier: MIT
// unrecorded_tree: counts the descendants of unrecorded processes.
//
// The session does not know the children of an unrecorded program, but /proc lists the children of
// each running process. So while an unrecorded process runs, its tree is walked from time to time.
// Each process that two walks find and that has not joined counts once. A process that lived
// between two walks, or got another parent before, is not found: the count is a lower bound.
//
// Cost: at most a fiftieth of a processor; at most TREE_PROCESSES_MAX processes are followed.
// Context: H, the recorder's main thread.
// Failure: ERR_NO_MEMORY; an unreadable process has no children.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"
#include "recorder/processes/unrecorded_list.h"

#define TREE_PROCESSES_MAX 1024u

struct tree_process {
    struct unrecorded_exec exec; // its ancestor
    pid_t pid;
    bool is_root;
    bool is_counted;
    bool is_recorded; // it has joined: the recording has it
    bool was_seen;    // in the present walk
};

DEFINE_VEC(tree_process_vec, struct tree_process);

// A zeroed tree is empty.
struct unrecorded_tree {
    struct tree_process_vec processes;
    struct map_u64 known; // pid: 1
    uint64_t next_walk_ns;
};

void unrecorded_tree_release(struct unrecorded_tree *tree);

// Follow the new execs of the list, and walk if it is time.
enum err unrecorded_tree_round(struct unrecorded_tree *tree,
                               struct unrecorded_list *list,
                               struct aggregator *aggregator,
                               uint64_t now_ns) MUST_USE;
