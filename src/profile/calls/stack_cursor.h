// SPDX-License-Identifier: MIT
// stack_cursor: walks outwards over a stack of the recording, by the frames of a bottom-up tree.
//
//   recording's stack   alloc <- operator new <- grow <- load <- main      outwards
//   frames of the tree                            grow     load    main     with folds
//
// With folds a frame may hide wrapper frames, whose number goes to the node of the tree that hides
// them. Context: H; pure but for that.
#pragma once

#include "host/containers/vec.h"
#include "profile/calls/call_tree.h"

// How far a stack was followed: its next location. Nodes are places of passages.
struct stack_cursor {
    uint32_t node;        // 0 at the stack's outer end
    uint32_t left;        // remaining locations in the chain of the node's frame
    const uint32_t *at;   // in that chain; NULL at the stack's outer end
    uint32_t hidden;      // wrapper frames inside of it that are not shown
    uint32_t outer;       // parent of the node
    uint64_t unfolded_by; // the path that unfolded its run; 0: none
};

DEFINE_VEC(stack_cursor_vec, struct stack_cursor);

// A node of the recording, and the last row that reached it. What a step needs is in one place: it
// costs one access to memory that is in no cache. Nodes as far from the inner ends of their stacks
// are neighbours: many stacks pass through the few outer ones, which then do stay in the caches.
struct stack_passage {
    uint32_t parent;    // its place; 0: the root
    uint32_t chain;     // code_index_chain_number
    uint32_t node;      // of the recording
    uint32_t tree_node; // where the row is; 0: none yet; no row reaches the root
    uint32_t row;
};

DEFINE_VEC(stack_passage_vec, struct stack_passage);

// What all steps need.
struct stack_steps {
    const struct selection *selection;   // borrowed
    const struct call_tree_folds *folds; // borrowed; NULL: no frames are folded
    struct stack_passage_vec passages;   // owned; by place
    struct u32_vec places;               // owned; by node of the recording
    struct call_tree *tree;              // borrowed
};

// Fill passages and places. ERR_NO_MEMORY.
enum err stack_steps_begin(struct stack_steps *steps) MUST_USE;
void stack_steps_release(struct stack_steps *steps);

// Begin the stack of a node of the recording at its innermost frame of the tree.
struct stack_cursor stack_cursor_begin(const struct stack_steps *steps, uint32_t node);

// Move the cursor outwards from `node` of the tree by one frame. Of several wrapper frames in a row
// the outermost is one, if another frame follows.
void stack_cursor_advance(const struct stack_steps *steps,
                          struct stack_cursor *cursor,
                          uint32_t node);

// Skip the locations of the same function that follow directly.
void stack_cursor_skip(const struct stack_steps *steps,
                       struct stack_cursor *cursor,
                       uint32_t node,
                       uint32_t function);
