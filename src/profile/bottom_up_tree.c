// SPDX-License-Identifier: MIT
// bottom_up_tree: see bottom_up_tree.h.
//
// Partition refinement: `order` holds the selected rows so that those of one node lie together.
// Expanding a node moves each of its rows one location outwards and sorts them by where they came
// to; each run is a child. Nodes are expanded in the order in which they were made, so a parent's
// id is below its children's.
#include "profile/bottom_up_tree.h"

#include "base/compiler.h"
#include "host/map_u64.h"

const struct bottom_up_bounds bottom_up_default_bounds = {.whole_frames = 1000000, .share = 20000};

// Where a row's stack has been followed to: the location that comes next.
struct cursor {
    uint32_t node;     // of the recording; 0 at the stack's outer end
    uint32_t position; // in the chain of the node's frame
};

// Rows of one node: order[first .. end).
struct run {
    size_t first;
    size_t end;
};

DEFINE_VEC(cursor_vec, struct cursor);
DEFINE_VEC(run_vec, struct run);

struct builder {
    const struct selection *selection;
    enum call_tree_key key;
    bool collapses;
    uint64_t share;            // a node goes on with 1/share of any cost; 0: always
    struct cursor_vec cursors; // by index in the selection
    struct u32_vec order;      // of indices in the selection
    struct u32_vec scratch;    // the same, while a run is sorted
    struct u32_vec child_of;   // by place in a run: the child; REC_NONE where a stack ends
    struct run_vec runs;       // by node
    struct map_u64 children;   // (parent, id, inlined) -> child; not of runs of a single row
    struct bottom_up_tree out;
};

static void builder_release(struct builder *builder)
{
    cursor_vec_release(&builder->cursors);
    u32_vec_release(&builder->order);
    u32_vec_release(&builder->scratch);
    u32_vec_release(&builder->child_of);
    run_vec_release(&builder->runs);
    map_u64_release(&builder->children);
    bottom_up_tree_release(&builder->out);
}

static struct code_chain chain_at(const struct builder *builder, uint32_t node)
{
    const struct profile *profile = builder->selection->profile;
    return code_index_chain(&profile->code, profile->recording.nodes[node].frame);
}

static void advance(const struct builder *builder, struct cursor *cursor)
{
    cursor->position++;
    if (cursor->position == chain_at(builder, cursor->node).count) {
        cursor->node = builder->selection->profile->recording.nodes[cursor->node].parent;
        cursor->position = 0;
    }
}

static uint32_t location_at(const struct builder *builder, struct cursor cursor)
{
    return chain_at(builder, cursor.node).locations[cursor.position];
}

static uint32_t function_of(const struct builder *builder, uint32_t location)
{
    return builder->selection->profile->code.locations.items[location].function;
}

// Past the locations of the same function that follow directly.
static void
skip_same_function(const struct builder *builder, struct cursor *cursor, uint32_t function)
{
    while (cursor->node != 0 && function_of(builder, location_at(builder, *cursor)) == function) {
        advance(builder, cursor);
    }
}

static MUST_USE enum err add_node(struct builder *builder, struct call_tree_node node)
{
    struct call_tree *tree = &builder->out.tree;
    static const struct costs nothing = {0};
    if (tree->nodes.len >= UINT32_MAX) {
        return ERR_LIMIT;
    }
    TRY(costs_vec_push(&tree->self, nothing));
    TRY(costs_vec_push(&tree->total, nothing));
    TRY(flag_vec_push(&builder->out.pruned, 0));
    TRY(run_vec_push(&builder->runs, (struct run){0}));
    return call_tree_node_vec_push(&tree->nodes, node);
}

// The child of `parent` for the location at the cursor, found or made. A run of a single row has no
// child before it comes.
static MUST_USE enum err find_child(
    struct builder *builder, uint32_t parent, struct cursor cursor, bool is_single, uint32_t *out)
{
    struct call_tree_node_vec *nodes = &builder->out.tree.nodes;
    uint32_t location = location_at(builder, cursor);
    bool by_location = builder->key == CALL_TREE_BY_LOCATION;
    bool is_inlined = cursor.position + 1 < chain_at(builder, cursor.node).count;
    uint32_t id = by_location ? location : function_of(builder, location);
    uint64_t key = (uint64_t)parent << 32 | id << 1 | (by_location && is_inlined);
    const uint32_t *known = is_single ? NULL : map_u64_find(&builder->children, key);
    if (known != NULL) {
        *out = *known;
        return ERR_OK;
    }
    uint32_t child = (uint32_t)nodes->len;
    struct call_tree_node node = {
        .parent = parent,
        .first_child = REC_NONE,
        .next_sibling = nodes->items[parent].first_child,
        .id = id,
        .location = location,
        .frame = builder->selection->profile->recording.nodes[cursor.node].frame,
        .depth = nodes->items[parent].depth + 1,
        .is_inlined = is_inlined};
    TRY(add_node(builder, node));
    if (!is_single) {
        TRY(map_u64_put(&builder->children, key, child));
    }
    nodes->items[parent].first_child = child;
    *out = child;
    return ERR_OK;
}

// Sends the rows of a node to its children; those whose stacks end here count as its own.
static MUST_USE enum err send_rows(struct builder *builder, uint32_t node, struct run run)
{
    struct call_tree *tree = &builder->out.tree;
    for (size_t i = run.first; i < run.end; i++) {
        TRY(cancel_step(builder->selection->cancel));
        uint32_t row = builder->order.items[i];
        struct cursor *cursor = &builder->cursors.items[row];
        struct costs costs = selection_costs(builder->selection, row);
        uint32_t child = REC_NONE;
        if (cursor->node == 0) {
            costs_add(&tree->self.items[node], &costs);
        } else {
            TRY(find_child(builder, node, *cursor, run.end - run.first == 1, &child));
            costs_add(&tree->total.items[child], &costs);
            uint32_t function = function_of(builder, location_at(builder, *cursor));
            advance(builder, cursor);
            if (builder->collapses) {
                skip_same_function(builder, cursor, function);
            }
            tree->row_nodes.items[row] = child;
            builder->runs.items[child].end++; // a count, for now
        }
        builder->child_of.items[i] = child;
    }
    return ERR_OK;
}

// Lays the rows of each child together. The children are those from `first_child` on.
static void sort_rows(struct builder *builder, struct run run, size_t first_child)
{
    size_t begin = run.first;
    for (size_t child = first_child; child < builder->runs.len; child++) {
        struct run *own = &builder->runs.items[child];
        size_t count = own->end;
        own->first = begin;
        own->end = begin;
        begin += count;
    }
    for (size_t i = run.first; i < run.end; i++) {
        uint32_t child = builder->child_of.items[i];
        if (child != REC_NONE) {
            builder->scratch.items[builder->runs.items[child].end++] = builder->order.items[i];
        }
    }
    memcpy(builder->order.items + run.first, builder->scratch.items + run.first,
           (begin - run.first) * sizeof(builder->order.items[0]));
}

static bool goes_on(const struct builder *builder, uint32_t node)
{
    const struct costs *root = &builder->out.tree.total.items[0];
    const struct costs *own = &builder->out.tree.total.items[node];
    if (builder->share == 0) {
        return true;
    }
    for (int cost = 0; cost < COST_COUNT; cost++) {
        if (own->values[cost] > 0 && own->values[cost] >= root->values[cost] / builder->share) {
            return true;
        }
    }
    return false;
}

// Whether any of the node's stacks goes on outwards.
static bool has_more(const struct builder *builder, struct run run)
{
    for (size_t i = run.first; i < run.end; i++) {
        if (builder->cursors.items[builder->order.items[i]].node != 0) {
            return true;
        }
    }
    return false;
}

static MUST_USE enum err expand(struct builder *builder, uint32_t node)
{
    struct run run = builder->runs.items[node];
    if (!goes_on(builder, node) && has_more(builder, run)) {
        builder->out.pruned.items[node] = 1;
        for (size_t i = run.first; i < run.end; i++) {
            uint32_t row = builder->order.items[i];
            if (builder->cursors.items[row].node == 0) {
                struct costs costs = selection_costs(builder->selection, row);
                costs_add(&builder->out.tree.self.items[node], &costs);
            }
        }
        return ERR_OK;
    }
    size_t first_child = builder->runs.len;
    TRY(send_rows(builder, node, run));
    if (run.end > run.first) {
        sort_rows(builder, run, first_child);
    }
    return ERR_OK;
}

static MUST_USE enum err begin(struct builder *builder)
{
    const struct selection *selection = builder->selection;
    const struct recording *recording = &selection->profile->recording;
    struct call_tree *tree = &builder->out.tree;
    struct call_tree_node root = {.parent = REC_NONE,
                                  .first_child = REC_NONE,
                                  .next_sibling = REC_NONE,
                                  .id = REC_NONE,
                                  .location = REC_NONE,
                                  .frame = REC_NONE};
    size_t count = selection->rows.len;
    TRY(add_node(builder, root));
    TRY(cursor_vec_resize(&builder->cursors, count));
    TRY(u32_vec_resize(&builder->order, count));
    TRY(u32_vec_resize(&builder->scratch, count));
    TRY(u32_vec_resize(&builder->child_of, count));
    TRY(u32_vec_resize(&tree->row_nodes, count));
    for (size_t i = 0; i < count; i++) {
        struct costs costs = selection_costs(selection, i);
        costs_add(&tree->total.items[0], &costs);
        builder->order.items[i] = (uint32_t)i;
        builder->cursors.items[i].node = recording->rows[selection->rows.items[i]].node;
    }
    builder->runs.items[0].end = count;
    return ERR_OK;
}

// The frames of all selected stacks, inlined ones included.
static MUST_USE enum err count_frames(const struct selection *selection, uint64_t *out)
{
    const struct profile *profile = selection->profile;
    const struct recording *recording = &profile->recording;
    CLEANUP(u32_vec_release) struct u32_vec depths = {0};
    TRY(u32_vec_resize(&depths, recording->node_count));
    for (size_t i = 1; i < recording->node_count; i++) {
        struct rec_node node = recording->nodes[i];
        size_t own = code_index_chain(&profile->code, node.frame).count;
        depths.items[i] = depths.items[node.parent] + (uint32_t)own;
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < selection->rows.len; i++) {
        sum += depths.items[recording->rows[selection->rows.items[i]].node];
    }
    *out = sum;
    return ERR_OK;
}

enum err bottom_up_tree_build(const struct selection *selection,
                              enum call_tree_key key,
                              bool collapses,
                              const struct bottom_up_bounds *bounds,
                              struct bottom_up_tree *out)
{
    CLEANUP(builder_release)
    struct builder builder = {.selection = selection, .key = key, .collapses = collapses};
    uint64_t frames;
    TRY(count_frames(selection, &frames));
    builder.share = frames > bounds->whole_frames ? bounds->share : 0;
    TRY(begin(&builder));
    // What is pruned cannot be known beforehand.
    cancel_stage(selection->cancel, builder.share == 0 ? frames + selection->rows.len : 0);
    for (uint32_t node = 0; node < builder.out.tree.nodes.len; node++) {
        TRY(expand(&builder, node));
    }
    *out = builder.out;
    builder.out = (struct bottom_up_tree){0};
    return ERR_OK;
}

void bottom_up_tree_release(struct bottom_up_tree *tree)
{
    call_tree_release(&tree->tree);
    flag_vec_release(&tree->pruned);
}
