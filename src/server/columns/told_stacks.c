// SPDX-License-Identifier: MIT
// told_stacks: see told_stacks.h.
#include "server/columns/told_stacks.h"

#include "server/columns/columns.h"

void told_stacks_release(struct told_stacks *stacks)
{
    u32_vec_release(&stacks->first);
    u32_vec_release(&stacks->locations);
    u32_vec_release(&stacks->inlined);
}

enum err told_stacks_add(struct told_stacks *stacks,
                         const struct call_tree *tree,
                         uint32_t node,
                         struct code_tables *tables)
{
    TRY(u32_vec_push(&stacks->first, (uint32_t)stacks->locations.len));
    for (; node != 0; node = tree->nodes.items[node].parent) {
        const struct call_tree_node *frame = &tree->nodes.items[node];
        uint32_t position = code_tables_location(tables, SIDE_NEW, frame->location);
        TRY(u32_vec_push(&stacks->locations, position));
        TRY(u32_vec_push(&stacks->inlined, frame->is_inlined));
    }
    return ERR_OK;
}

enum err told_stacks_add_frames(struct told_stacks *stacks,
                                const struct u32_vec *locations,
                                const struct u32_vec *inlined,
                                struct code_tables *tables)
{
    TRY(u32_vec_push(&stacks->first, (uint32_t)stacks->locations.len));
    for (size_t i = 0; i < locations->len; i++) {
        uint32_t position = code_tables_location(tables, SIDE_NEW, locations->items[i]);
        TRY(u32_vec_push(&stacks->locations, position));
        TRY(u32_vec_push(&stacks->inlined, inlined->items[i]));
    }
    return ERR_OK;
}

static size_t end_of(const struct told_stacks *stacks, size_t stack)
{
    return stack + 1 < stacks->first.len ? stacks->first.items[stack + 1] : stacks->locations.len;
}

void told_stacks_write_columns(const struct told_stacks *stacks,
                               size_t first,
                               size_t count,
                               struct json_writer *w)
{
    column_of_positions(w, "frame_first", count > 0 ? stacks->first.items + first : NULL, count);
    column_begin(w, "frame_count");
    for (size_t i = first; i < first + count; i++) {
        json_u64(w, end_of(stacks, i) - stacks->first.items[i]);
    }
    column_end(w);
}

void told_stacks_write_frames(const struct told_stacks *stacks, struct json_writer *w)
{
    table_begin(w, "frames", stacks->locations.len);
    column_of_positions(w, "location", stacks->locations.items, stacks->locations.len);
    column_begin(w, "inlined");
    for (size_t i = 0; i < stacks->inlined.len; i++) {
        json_bool(w, stacks->inlined.items[i] != 0);
    }
    column_end(w);
    table_end(w);
}
