// SPDX-License-Identifier: MIT
// told_stacks: whole call stacks in an answer, as the tables "stacks" and "frames".
//
// Stacks are nodes of a tree by location (call_sites.tree); their frames are read off on the way to
// its root. Context: H; one thread at a time.
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "profile/calls/call_tree.h"
#include "server/columns/code_tables.h"

struct told_stacks {
    struct u32_vec first;     // by stack: position of its first frame
    struct u32_vec locations; // by frame: position in code.locations
    struct u32_vec inlined;   // by frame
};

void told_stacks_release(struct told_stacks *stacks);

// Adds the stack that ends at `node`, innermost frame first.
enum err told_stacks_add(struct told_stacks *stacks,
                         const struct call_tree *tree,
                         uint32_t node,
                         struct code_tables *tables) MUST_USE;

// Adds a stack whose locations, innermost first, are those of the code index.
enum err told_stacks_add_frames(struct told_stacks *stacks,
                                const struct u32_vec *locations,
                                const struct u32_vec *inlined,
                                struct code_tables *tables) MUST_USE;

// The columns frame_first and frame_count of stacks first .. first + count - 1.
void told_stacks_write_columns(const struct told_stacks *stacks,
                               size_t first,
                               size_t count,
                               struct json_writer *w);

// The table "frames".
void told_stacks_write_frames(const struct told_stacks *stacks, struct json_writer *w);
