// SPDX-License-Identifier: MIT
// bottom_up_tree: see bottom_up_tree.h.
//
// Partition refinement: `order` holds the selected rows, grouped by node. Expanding a node moves
// each of its rows one location outwards and sorts them by their new location; each run is a child.
// A node makes its children when it is expanded, so a parent's id is below its children's. Rows are
// numbered by their innermost function, and a branch is built as a whole: its rows are near each
// other, and stay in the processor's caches.
//
// Rows that reach the same place of the recording's tree in the same node share the rest of their
// path. From there on one of them represents all, with the costs of all.
#include "profile/calls/bottom_up_tree.h"

#include "base/compiler.h"
#include "base/minmax.h"
#include "profile/calls/stack_cursor.h"

const struct bottom_up_bounds bottom_up_default_bounds = {.whole_frames = 1000000, .share = 20000};

enum {
    ROWS_AHEAD = 8, // of the row that takes its step: their passages are fetched
};

// The rows of one node: order[first .. end).
struct run {
    size_t first;
    size_t end;
};

// The newest node of a function or a location. All children of a node are made consecutively,
// so a child is either the newest node or does not exist yet.
struct newest {
    uint32_t parent;
    uint32_t node; // 0: none yet; the root has no function
};

DEFINE_VEC(newest_vec, struct newest);
DEFINE_VEC(run_vec, struct run);

// Rows are numbered by `indices`.
struct builder {
    const struct selection *selection;
    enum call_tree_key key;
    bool collapses;
    struct stack_steps steps;
    uint64_t share;                  // a node is extended with 1/share of any cost; 0: always
    struct costs least;              // 1/share of each cost
    struct u32_vec indices;          // by row: its index in the selection
    struct stack_cursor_vec cursors; // by row
    struct costs_vec costs;          // by row; with the rows that it represents
    struct u32_vec goes_with;        // by row; the representing row; REC_NONE: none
    struct u32_vec row_nodes;        // by row: where its stack ends
    struct u32_vec order;            // of rows without a representative
    struct u32_vec scratch;          // buffer for sorting a run
    struct u32_vec child_of;         // by place in a run: the child; REC_NONE: the row ends here
    struct run_vec runs;             // by node
    struct u32_vec waiting;          // nodes to expand, the next one last
    struct newest_vec newest;        // by function; by location, as itself and as inlined
    struct bottom_up_tree out;
};

static void builder_release(struct builder *builder)
{
    u32_vec_release(&builder->indices);
    stack_cursor_vec_release(&builder->cursors);
    costs_vec_release(&builder->costs);
    u32_vec_release(&builder->goes_with);
    u32_vec_release(&builder->row_nodes);
    stack_steps_release(&builder->steps);
    u32_vec_release(&builder->order);
    u32_vec_release(&builder->scratch);
    u32_vec_release(&builder->child_of);
    run_vec_release(&builder->runs);
    u32_vec_release(&builder->waiting);
    newest_vec_release(&builder->newest);
    bottom_up_tree_release(&builder->out);
}

static MUST_USE enum err add_node(struct builder *builder, struct call_tree_node node)
{
    struct call_tree *tree = &builder->out.tree;
    if (tree->nodes.len >= UINT32_MAX) {
        return ERR_LIMIT;
    }
    TRY(tree_costs_push(&tree->costs));
    TRY(flag_vec_push(&builder->out.pruned, 0));
    TRY(run_vec_push(&builder->runs, (struct run){0}));
    return call_tree_node_vec_push(&tree->nodes, node);
}

static MUST_USE enum err
add_child(struct builder *builder, uint32_t parent, uint32_t id, const struct stack_cursor *cursor)
{
    struct call_tree_node_vec *nodes = &builder->out.tree.nodes;
    uint32_t child = (uint32_t)nodes->len;
    const uint32_t from = builder->steps.passages.items[cursor->node].node;
    struct call_tree_node node = {
        .parent = parent,
        .first_child = REC_NONE,
        .next_sibling = nodes->items[parent].first_child,
        .id = id,
        .location = *cursor->at,
        .frame = builder->selection->profile->recording.nodes[from].frame,
        .depth = nodes->items[parent].depth + 1,
        .is_inlined = cursor->left > 1,
        .path = call_tree_path_below(&builder->out.tree, builder->steps.folds,
                                     builder->selection->profile, parent, *cursor->at)};
    TRY(add_node(builder, node));
    nodes->items[parent].first_child = child;
    return ERR_OK;
}

// Find or make the child of `parent` for the location at the cursor.
static MUST_USE enum err find_child(struct builder *builder,
                                    uint32_t parent,
                                    const struct stack_cursor *cursor,
                                    uint32_t *out)
{
    bool by_location = builder->key == CALL_TREE_BY_LOCATION;
    uint32_t id =
        by_location ? *cursor->at : profile_function_at(builder->selection->profile, *cursor->at);
    size_t place = by_location ? (size_t)id * 2 + (cursor->left > 1) : id;
    struct newest *newest = &builder->newest.items[place];
    if (newest->node == 0 || newest->parent != parent) {
        *newest = (struct newest){.parent = parent, .node = (uint32_t)builder->out.tree.nodes.len};
        TRY(add_child(builder, parent, id, cursor));
    }
    *out = newest->node;
    return ERR_OK;
}

// Move the row's cursor from its node to the next one.
static void step_outwards(struct builder *builder, struct stack_cursor *cursor, uint32_t node)
{
    uint32_t function = profile_function_at(builder->selection->profile, *cursor->at);
    call_tree_hide(&builder->out.tree, node, cursor->hidden);
    if (cursor->unfolded_by != 0) {
        builder->out.tree.nodes.items[node].unfolded_by = cursor->unfolded_by;
    }
    stack_cursor_advance(&builder->steps, cursor, node);
    if (builder->collapses) {
        stack_cursor_skip(&builder->steps, cursor, node, function);
    }
}

// Let an earlier row represent this one, if it reached the same place in the same node.
static bool join_other(struct builder *builder, uint32_t row, uint32_t node)
{
    struct stack_cursor *cursors = builder->cursors.items;
    struct stack_passage *last = &builder->steps.passages.items[cursors[row].node];
    if (last->tree_node == node && cursors[last->row].at == cursors[row].at) {
        struct stack_cursor *other = &cursors[last->row];
        other->hidden = (uint32_t)max_u64(other->hidden, cursors[row].hidden);
        costs_add(&builder->costs.items[last->row], &builder->costs.items[row]);
        builder->goes_with.items[row] = last->row;
        return true;
    }
    last->tree_node = node;
    last->row = row;
    return false;
}

// Move a row of the node to a child, *out: REC_NONE if the row ends here or is represented.
static MUST_USE enum err
send_row(struct builder *builder, uint32_t node, uint32_t row, uint32_t *out)
{
    struct call_tree *tree = &builder->out.tree;
    struct stack_cursor *cursor = &builder->cursors.items[row];
    uint32_t child;
    *out = REC_NONE;
    if (cursor->node == 0) {
        return tree_costs_add(&tree->costs, node, &builder->costs.items[row]);
    }
    TRY(find_child(builder, node, cursor, &child));
    costs_add(&tree->costs.totals.items[child], &builder->costs.items[row]);
    step_outwards(builder, cursor, child);
    builder->row_nodes.items[row] = child;
    if (!join_other(builder, row, child)) {
        builder->runs.items[child].end++; // only a count, until sort_rows
        *out = child;
    }
    return ERR_OK;
}

// Move the rows of a node to its children. Rows whose stacks end here add to its own costs.
static MUST_USE enum err send_rows(struct builder *builder, uint32_t node, struct run run)
{
    const struct stack_cursor *cursors = builder->cursors.items;
    const uint32_t *order = builder->order.items;
    for (size_t i = run.first; i < run.end; i++) {
        const uint32_t ahead = order[min_u64(i + ROWS_AHEAD, run.end - 1)];
        __builtin_prefetch(builder->steps.passages.items + cursors[ahead].outer, 1);
        TRY(cancel_step(builder->selection->cancel));
        TRY(send_row(builder, node, builder->order.items[i], &builder->child_of.items[i]));
    }
    return ERR_OK;
}

// Group the rows by child. The children have the ids from `first_child` on.
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
    const struct costs *own = tree_costs_total(&builder->out.tree.costs, node);
    if (builder->share == 0) {
        return true;
    }
    for (int cost = 0; cost < COST_COUNT; cost++) {
        if (own->values[cost] > 0 && own->values[cost] >= builder->least.values[cost]) {
            return true;
        }
    }
    return false;
}

// Whether any of the node's stacks continues outwards.
static bool has_more(const struct builder *builder, struct run run)
{
    for (size_t i = run.first; i < run.end; i++) {
        if (builder->cursors.items[builder->order.items[i]].node != 0) {
            return true;
        }
    }
    return false;
}

static MUST_USE enum err expand_node(struct builder *builder, uint32_t node)
{
    struct tree_costs *costs = &builder->out.tree.costs;
    struct run run = builder->runs.items[node];
    if (!has_more(builder, run)) {
        tree_costs_ends(costs, node);
        return ERR_OK;
    }
    if (!goes_on(builder, node)) {
        builder->out.pruned.items[node] = 1;
        for (size_t i = run.first; i < run.end; i++) {
            uint32_t row = builder->order.items[i];
            if (builder->cursors.items[row].node == 0) {
                TRY(tree_costs_add(costs, node, &builder->costs.items[row]));
            }
        }
        return ERR_OK;
    }
    size_t first_child = builder->runs.len;
    TRY(send_rows(builder, node, run));
    sort_rows(builder, run, first_child);
    return ERR_OK;
}

// Expand the nodes, each branch as a whole.
static MUST_USE enum err expand_all(struct builder *builder)
{
    TRY(u32_vec_push(&builder->waiting, 0));
    while (builder->waiting.len > 0) {
        const size_t first_child = builder->runs.len;
        TRY(expand_node(builder, builder->waiting.items[--builder->waiting.len]));
        for (size_t child = builder->runs.len; child-- > first_child;) {
            TRY(u32_vec_push(&builder->waiting, (uint32_t)child));
        }
    }
    return ERR_OK;
}

static MUST_USE enum err make_room(struct builder *builder)
{
    const struct profile *profile = builder->selection->profile;
    const struct code_index *code = &profile->code;
    size_t count = builder->selection->rows.len;
    TRY(stack_cursor_vec_resize(&builder->cursors, count));
    TRY(costs_vec_resize(&builder->costs, count));
    TRY(u32_vec_resize(&builder->goes_with, count));
    TRY(u32_vec_resize(&builder->order, count));
    TRY(u32_vec_resize(&builder->scratch, count));
    TRY(u32_vec_resize(&builder->child_of, count));
    TRY(u32_vec_resize(&builder->indices, count));
    TRY(u32_vec_resize(&builder->row_nodes, count));
    TRY(u32_vec_resize(&builder->out.tree.row_nodes, count));
    TRY(stack_steps_begin(&builder->steps));
    return newest_vec_resize(&builder->newest, builder->key == CALL_TREE_BY_LOCATION
                                                   ? code->locations.len * 2
                                                   : code->functions.len);
}

// Begin the stack of the row at `index` in the selection.
static struct stack_cursor begin_row(const struct builder *builder, size_t index)
{
    const struct selection *selection = builder->selection;
    return stack_cursor_begin(
        &builder->steps, selection->profile->recording.rows[selection->rows.items[index]].node);
}

// Count the rows by their innermost function. Functions are numbered from 1 in the order in which
// they come first. `next` gets the place of the first row of each, `own` the number of each row.
static MUST_USE enum err
count_rows(const struct builder *builder, struct u32_vec *next, uint32_t *own)
{
    CLEANUP(u32_vec_release) struct u32_vec numbers = {0}; // by function; 0: none yet
    const size_t functions = builder->selection->profile->code.functions.len;
    uint32_t last = 0;
    TRY(u32_vec_resize(&numbers, functions + 1)); // and one for rows without a frame
    TRY(u32_vec_resize(next, functions + 3));
    for (size_t i = 0; i < builder->selection->rows.len; i++) {
        const struct stack_cursor cursor = begin_row(builder, i);
        uint32_t *number =
            &numbers.items[cursor.node != 0
                               ? profile_function_at(builder->selection->profile, *cursor.at)
                               : functions];
        *number = *number != 0 ? *number : ++last;
        own[i] = *number;
        next->items[own[i] + 1]++;
    }
    for (size_t i = 1; i <= last; i++) {
        next->items[i] += next->items[i - 1];
    }
    return ERR_OK;
}

// Number the rows by their innermost function, and begin their stacks.
static MUST_USE enum err begin_rows(struct builder *builder)
{
    CLEANUP(u32_vec_release) struct u32_vec next = {0}; // by function's number: its next row
    const uint32_t *own = builder->scratch.items;
    TRY(count_rows(builder, &next, builder->scratch.items));
    for (size_t i = 0; i < builder->selection->rows.len; i++) {
        const uint32_t row = next.items[own[i]]++;
        builder->indices.items[row] = (uint32_t)i;
        builder->costs.items[row] = selection_costs(builder->selection, i);
        builder->cursors.items[row] = begin_row(builder, i);
        builder->goes_with.items[row] = REC_NONE;
        builder->order.items[row] = row;
    }
    return ERR_OK;
}

static MUST_USE enum err begin_tree(struct builder *builder)
{
    const size_t row_count = builder->selection->rows.len;
    struct call_tree *tree = &builder->out.tree;
    TRY(make_room(builder));
    TRY(add_node(builder, call_tree_root));
    TRY(begin_rows(builder));
    for (size_t row = 0; row < row_count; row++) {
        costs_add(&tree->costs.totals.items[0], &builder->costs.items[row]);
    }
    builder->runs.items[0].end = row_count;
    for (int cost = 0; cost < COST_COUNT && builder->share > 0; cost++) {
        builder->least.values[cost] =
            tree_costs_total(&tree->costs, 0)->values[cost] / builder->share;
    }
    return ERR_OK;
}

// Count the frames of all selected stacks, inlined ones included.
static MUST_USE enum err count_frames(const struct selection *selection, uint64_t *out)
{
    const struct recording *recording = &selection->profile->recording;
    CLEANUP(u32_vec_release) struct u32_vec depths = {0};
    TRY(u32_vec_resize(&depths, recording->node_count));
    for (size_t i = 1; i < recording->node_count; i++) {
        const size_t own = selection_chain(selection, (uint32_t)i).count;
        depths.items[i] = depths.items[recording->nodes[i].parent] + (uint32_t)own;
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < selection->rows.len; i++) {
        sum += depths.items[recording->rows[selection->rows.items[i]].node];
    }
    *out = sum;
    return ERR_OK;
}

// Note where all stacks end: those of represented rows where those of their representatives do.
static void place_rows(struct builder *builder)
{
    uint32_t *goes_with = builder->goes_with.items;
    for (size_t row = 0; row < builder->goes_with.len; row++) {
        uint32_t last = (uint32_t)row;
        while (goes_with[last] != REC_NONE) {
            last = goes_with[last];
        }
        for (uint32_t at = (uint32_t)row; at != last;) { // each path is walked once
            uint32_t next = goes_with[at];
            goes_with[at] = last;
            at = next;
        }
        builder->out.tree.row_nodes.items[builder->indices.items[row]] =
            builder->row_nodes.items[last];
    }
}

enum err bottom_up_tree_build(const struct selection *selection,
                              enum call_tree_key key,
                              const struct call_tree_folds *folds,
                              bool collapses,
                              const struct bottom_up_bounds *bounds,
                              struct bottom_up_tree *out)
{
    CLEANUP(builder_release)
    struct builder builder = {
        .selection = selection,
        .key = key,
        .collapses = collapses,
        .steps = {.selection = selection, .folds = folds, .tree = &builder.out.tree}};
    uint64_t frame_count;
    TRY(count_frames(selection, &frame_count));
    builder.share = frame_count > bounds->whole_frames ? bounds->share : 0;
    TRY(begin_tree(&builder));
    TRY(expand_all(&builder));
    place_rows(&builder);
    *out = TAKE(builder.out);
    return ERR_OK;
}

void bottom_up_tree_release(struct bottom_up_tree *tree)
{
    call_tree_release(&tree->tree);
    flag_vec_release(&tree->pruned);
}
