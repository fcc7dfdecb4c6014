// SPDX-License-Identifier: MIT
// stack_table: the call stacks of all recorded processes, as one tree of code locations.
//
// A module has a path and a build-id, a frame a module and an offset, a node a parent and a frame.
// So the same stack is the same node in every process, on every thread, at any load address. The
// tables have the layout of the recording, which borrows them without a copy.
// Memory: 8 bytes a node and 24 a frame, and 6 to 11 each for finding them.
// Invariants: node 0 is the root; every other node's parent has a lower index; all indices are in
// range.
// Context: H, one thread. Paths and offsets are hostile and only stored.
// Failure: ERR_NO_MEMORY leaves the tables usable, without the new entry.
#pragma once

#include <stdint.h>

#include "aggregate/tables/id_index.h"
#include "base/bytes.h"
#include "base/err.h"
#include "host/containers/map_u64.h"
#include "host/containers/string_table.h"
#include "host/containers/vec.h"
#include "recording/format/tables.h"

DEFINE_VEC(rec_module_vec, struct rec_module);
DEFINE_VEC(rec_frame_vec, struct rec_frame);
DEFINE_VEC(rec_node_vec, struct rec_node);

struct stack_table {
    struct string_table *strings; // borrowed
    struct rec_module_vec modules;
    struct rec_frame_vec frames;
    struct rec_node_vec nodes;
    struct map_u64 module_index; // (path, build id) -> module
    struct id_index frame_index;
    struct id_index node_index;
};

// Make the table with its root. `strings` must outlive it.
enum err stack_table_init(struct stack_table *table, struct string_table *strings) MUST_USE;
void stack_table_release(struct stack_table *table);

// Get the module of this path and build-id (raw bytes), added if it is new.
enum err stack_table_module(struct stack_table *table,
                            struct bytes path,
                            struct bytes build_id,
                            uint32_t *out_module) MUST_USE;

// Get an executable whose path is not known yet: any of this build-id, or a new one without a path.
enum err stack_table_unnamed_executable(struct stack_table *table,
                                        struct bytes build_id,
                                        uint32_t *out_module) MUST_USE;

// Give a module its path if it has none.
enum err stack_table_name_module(struct stack_table *table, uint32_t module, struct bytes path)
    MUST_USE;

// Get the frame, added if it is new. `module` is an id of this table or REC_NONE.
enum err stack_table_frame(struct stack_table *table,
                           uint32_t module,
                           uint64_t offset,
                           uint32_t flags,
                           uint32_t *out_frame) MUST_USE;

// Get the child of `parent` by `frame`, added if it is new. Both are ids of this table.
enum err
stack_table_node(struct stack_table *table, uint32_t parent, uint32_t frame, uint32_t *out_node)
    MUST_USE;

// Return the child of `parent` by the frame at `offset` of `module`, or REC_NONE if there is none.
uint32_t stack_table_find_child(const struct stack_table *table,
                                uint32_t parent,
                                uint32_t module,
                                uint64_t offset,
                                uint32_t flags);

// Get the node of merged stacks (REC_CUT_MERGED): `parent`, the pseudo frame, and the frame `leaf`
// unless it is REC_NONE or the pseudo frame itself. A node of merged stacks is its own parent here.
enum err
stack_table_merged(struct stack_table *table, uint32_t parent, uint32_t leaf, uint32_t *out_node)
    MUST_USE;

// Keep only the nodes with places[node] != REC_NONE. places[node] becomes the new number of each;
// the order stays. The root and the parents of kept nodes must be kept.
enum err stack_table_keep(struct stack_table *table, uint32_t *places) MUST_USE;

// Return whether `node` is the child of `parent` by this frame. Verifies cached nodes.
static inline bool stack_table_is_child(const struct stack_table *table,
                                        uint32_t node,
                                        uint32_t parent,
                                        uint32_t module,
                                        uint64_t offset)
{
    const struct rec_node *n = table->nodes.items + node;
    if (n->parent != parent) {
        return false;
    }
    const struct rec_frame *frame = table->frames.items + n->frame;
    return frame->module == module && frame->offset == offset;
}
