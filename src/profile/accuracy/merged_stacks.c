// SPDX-License-Identifier: MIT
#include "profile/accuracy/merged_stacks.h"

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/containers/vec.h"

static bool is_mark(const struct recording *recording, uint32_t node)
{
    const uint32_t frame = recording->nodes[node].frame;
    return frame != REC_NONE && (recording->frames[frame].flags & REC_FRAME_CUT) != 0 &&
           recording->frames[frame].offset == REC_CUT_MERGED;
}

// Return the node below which the stack `node` was merged, or REC_NONE.
static uint32_t merged_below(const struct recording *recording, uint32_t node)
{
    const uint32_t parent = recording->nodes[node].parent;
    if (parent == REC_NONE) {
        return REC_NONE;
    }
    return is_mark(recording, node)     ? parent
           : is_mark(recording, parent) ? recording->nodes[parent].parent
                                        : REC_NONE;
}

enum err merged_stacks_of(const struct recording *recording, struct merged_stacks *out)
{
    struct merged_stacks merged = {.times = rec_counter_value(recording, "merged_stacks")};
    CLEANUP(u64_vec_release) struct u64_vec allocations = {0}; // below each node
    CLEANUP(u64_vec_release) struct u64_vec bytes = {0};
    *out = merged;
    if (merged.times == 0) {
        return ERR_OK;
    }
    TRY(u64_vec_resize(&allocations, recording->node_count));
    TRY(u64_vec_resize(&bytes, recording->node_count));
    for (size_t i = 0; i < recording->row_count; i++) {
        const struct rec_row *row = &recording->rows[i];
        const uint32_t node = merged_below(recording, row->node);
        if (node != REC_NONE) {
            allocations.items[node] += row->allocations;
            bytes.items[node] += row->allocated_bytes;
            merged.allocations += row->allocations;
            merged.allocated_bytes += row->allocated_bytes;
        }
    }
    for (size_t i = 0; i < recording->node_count; i++) { // parents come first
        const uint32_t parent = recording->nodes[i].parent;
        allocations.items[i] += parent != REC_NONE ? allocations.items[parent] : 0;
        bytes.items[i] += parent != REC_NONE ? bytes.items[parent] : 0;
        merged.most_missing_allocations =
            max_u64(merged.most_missing_allocations, allocations.items[i]);
        merged.most_missing_bytes = max_u64(merged.most_missing_bytes, bytes.items[i]);
    }
    *out = merged;
    return ERR_OK;
}
