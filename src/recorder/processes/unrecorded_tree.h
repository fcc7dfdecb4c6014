// SPDX-License-Identifier: MIT
// unrecorded_tree: how many processes come from those that are not recorded.
//
// What an unrecorded program starts says nothing in the session; but /proc tells the children of
// each process that runs. So as long as an unrecorded one runs its tree is walked now and then, and
// each process that is met twice and has not joined counts once. Who lived between two walks, or
// was given to another parent before, is not met: the count is a lower bound.
//
// Cost: at most a fiftieth of a processor, and TREE_PROCESSES_MAX processes are followed. Context:
// H, the recorder's main thread. Failure: ERR_NO_MEMORY; who cannot be read has no children.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/vec.h"
#include "recorder/processes/unrecorded_list.h"

#define TREE_PROCESSES_MAX 1024u

struct tree_process {
    struct unrecorded_exec exec; // from which it comes
    pid_t pid;
    bool is_root;
    bool is_counted;
    bool is_recorded; // it has joined: it speaks for itself
    bool was_seen;    // in the walk that goes on
};

DEFINE_VEC(tree_process_vec, struct tree_process);

// A zeroed tree is empty.
struct unrecorded_tree {
    struct tree_process_vec processes;
    struct map_u64 known; // pid: 1
    uint64_t next_walk_ns;
};

void unrecorded_tree_release(struct unrecorded_tree *tree);

// Follows those that the list has heard of since, and walks if it is time.
enum err unrecorded_tree_round(struct unrecorded_tree *tree,
                               struct unrecorded_list *list,
                               struct aggregator *aggregator,
                               uint64_t now_ns) MUST_USE;
