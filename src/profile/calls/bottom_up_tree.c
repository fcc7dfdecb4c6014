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

const struct bottom_up_bounds bottom_up_default_bounds = {.whole_frames = 1000000, .share = 20000};

enum {
    ROWS_AHEAD = 8, // of the row that takes its step: their passages are fetched
};

// How far a row's stack was followed: its next location.
struct cursor {
    uint32_t node;        // of the recording; 0 at the stack's outer end
    uint32_t left;        // remaining locations in the chain of the node's frame
    const uint32_t *at;   // in that chain; NULL at the stack's outer end
    uint32_t hidden;      // wrapper frames inside of it that are not shown
    uint32_t outer;       // parent of the node
    uint64_t unfolded_by; // the path that unfolded its run; 0: none
};

// The rows of one node: order[first .. end).
struct run {
    size_t first;
    size_t end;
};

// A node of the recording, and the last row that reached it. What a step needs is in one place: it
// costs one access to memory that is in no cache.
struct passage {
    uint32_t parent;
    uint32_t chain;     // code_index_chain_number
    uint32_t tree_node; // where the row is; 0: none yet; no row reaches the root
    uint32_t row;
};

// The newest node of a function or a location. All children of a node are made consecutively,
// so a child is either the newest node or does not exist yet.
struct newest {
    uint32_t parent;
    uint32_t node; // 0: none yet; the root has no function
};

DEFINE_VEC(newest_vec, struct newest);
DEFINE_VEC(cursor_vec, struct cursor);
DEFINE_VEC(passage_vec, struct passage);
DEFINE_VEC(run_vec, struct run);

// Rows are numbered by `indices`.
struct builder {
    const struct selection *selection;
    enum call_tree_key key;
    const struct call_tree_folds *folds; // borrowed; NULL: no frames are folded
    bool collapses;
    uint64_t share;              // a node is extended with 1/share of any cost; 0: always
    struct costs least;          // 1/share of each cost
    struct u32_vec indices;      // by row: its index in the selection
    struct cursor_vec cursors;   // by row
    struct costs_vec costs;      // by row; with the rows that it represents
    struct u32_vec goes_with;    // by row; the representing row; REC_NONE: none
    struct u32_vec row_nodes;    // by row: where its stack ends
    struct passage_vec passages; // by node of the recording
    struct u32_vec order;        // of rows without a representative
    struct u32_vec scratch;      // buffer for sorting a run
    struct u32_vec child_of;     // by place in a run: the child; REC_NONE: the row ends here
    struct run_vec runs;         // by node
    struct u32_vec waiting;      // nodes to expand, the next one last
    struct newest_vec newest;    // by function; by location, as itself and as inlined
    struct bottom_up_tree out;
};

static void builder_release(struct builder *builder)
{
    u32_vec_release(&builder->indices);
    cursor_vec_release(&builder->cursors);
    costs_vec_release(&builder->costs);
    u32_vec_release(&builder->goes_with);
    u32_vec_release(&builder->row_nodes);
    passage_vec_release(&builder->passages);
    u32_vec_release(&builder->order);
    u32_vec_release(&builder->scratch);
    u32_vec_release(&builder->child_of);
    run_vec_release(&builder->runs);
    u32_vec_release(&builder->waiting);
    newest_vec_release(&builder->newest);
    bottom_up_tree_release(&builder->out);
}

static struct cursor begin_node(const struct builder *builder, uint32_t node)
{
    if (node == 0) {
        return (struct cursor){0};
    }
    const struct selection *selection = builder->selection;
    const struct passage *passage = &builder->passages.items[node];
    const struct code_chain chain =
        selection->shown.len > 0 ? selection_chain(selection, node)
                                 : code_index_chain(&selection->profile->code, passage->chain);
    if (chain.count == 0) { // nor are its callers shown
        return (struct cursor){0};
    }
    return (struct cursor){.node = node,
                           .left = (uint32_t)chain.count,
                           .at = chain.locations,
                           .outer = passage->parent};
}

static void step_cursor(const struct builder *builder, struct cursor *cursor)
{
    cursor->at++;
    if (--cursor->left == 0) {
        *cursor = begin_node(builder, cursor->outer);
    }
}

static bool is_on_wrapper(const struct builder *builder, const struct cursor *cursor)
{
    return cursor->node != 0 && profile_is_wrapper(builder->selection->profile, *cursor->at);
}

static uint32_t function_of(const struct builder *builder, uint32_t location)
{
    return builder->selection->profile->code.locations.items[location].function;
}

// The path of the child of `node` for the location.
static uint64_t path_below(const struct builder *builder, uint32_t node, uint32_t location)
{
    const struct call_tree_node *outer = &builder->out.tree.nodes.items[node];
    const uint32_t function = node != 0 ? function_of(builder, outer->location) : 0;
    return call_tree_child_path(builder->folds, outer, function, function_of(builder, location));
}

static void hide_node(struct builder *builder, uint32_t node, uint32_t count)
{
    uint32_t *hidden = &builder->out.tree.nodes.items[node].hidden;
    *hidden = (uint32_t)max_u64(*hidden, count);
}

// Move the cursor outwards from `node` by one frame of the tree. Of several wrapper frames in a row
// the outermost is one, if another frame follows.
static void advance_cursor(struct builder *builder, struct cursor *cursor, uint32_t node)
{
    const uint64_t unfolded_by = cursor->unfolded_by;
    step_cursor(builder, cursor);
    cursor->hidden = 0;
    cursor->unfolded_by = 0;
    if (builder->folds == NULL || !is_on_wrapper(builder, cursor)) {
        return;
    }
    if (unfolded_by != 0) {
        cursor->unfolded_by = unfolded_by;
        return;
    }
    struct cursor outermost = *cursor;
    struct cursor next = *cursor;
    uint32_t count = 0;
    for (; is_on_wrapper(builder, &next); count++) {
        outermost = next;
        step_cursor(builder, &next);
    }
    const bool is_end = next.node == 0;
    const uint64_t path = is_end ? builder->out.tree.nodes.items[node].path
                                 : path_below(builder, node, *outermost.at);
    if (call_tree_unfolds(builder->folds, path)) {
        cursor->unfolded_by = path;
    } else if (is_end) {
        hide_node(builder, node, count);
        *cursor = next;
    } else {
        *cursor = outermost;
        cursor->hidden = count - 1;
    }
}

static bool is_in_library(const struct builder *builder, const struct cursor *cursor)
{
    const struct code_location *locations = builder->selection->profile->code.locations.items;
    return cursor->node != 0 && (locations[*cursor->at].flags & CODE_LIBRARY) != 0;
}

// Begin a stack of wrapper frames alone at its call site (wrappers.h). `cursor` is on its innermost
// frame.
static struct cursor begin_wrappers(const struct builder *builder, struct cursor cursor)
{
    const struct cursor innermost = cursor;
    while (cursor.node != 0 && !is_in_library(builder, &cursor)) {
        step_cursor(builder, &cursor);
    }
    return cursor.node != 0 ? cursor : innermost;
}

// Begin a stack at its innermost frame of the tree.
static struct cursor begin_stack(const struct builder *builder, uint32_t node)
{
    struct cursor innermost = begin_node(builder, node);
    struct cursor site = innermost;
    uint32_t count = 0;
    for (; builder->folds != NULL && is_on_wrapper(builder, &site); count++) {
        step_cursor(builder, &site);
    }
    if (count == 0 || site.node == 0) {
        return count > 0 ? begin_wrappers(builder, innermost) : innermost;
    }
    const uint64_t path = path_below(builder, 0, *site.at);
    if (call_tree_unfolds(builder->folds, path)) {
        innermost.unfolded_by = path;
        return innermost;
    }
    site.hidden = count;
    return site;
}

// Skip the locations of the same function that follow directly.
static void
skip_same_function(struct builder *builder, struct cursor *cursor, uint32_t node, uint32_t function)
{
    while (cursor->node != 0 && function_of(builder, *cursor->at) == function) {
        advance_cursor(builder, cursor, node);
    }
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
add_child(struct builder *builder, uint32_t parent, uint32_t id, const struct cursor *cursor)
{
    struct call_tree_node_vec *nodes = &builder->out.tree.nodes;
    uint32_t child = (uint32_t)nodes->len;
    struct call_tree_node node = {
        .parent = parent,
        .first_child = REC_NONE,
        .next_sibling = nodes->items[parent].first_child,
        .id = id,
        .location = *cursor->at,
        .frame = builder->selection->profile->recording.nodes[cursor->node].frame,
        .depth = nodes->items[parent].depth + 1,
        .is_inlined = cursor->left > 1,
        .path = builder->folds != NULL ? path_below(builder, parent, *cursor->at) : 0};
    TRY(add_node(builder, node));
    nodes->items[parent].first_child = child;
    return ERR_OK;
}

// Find or make the child of `parent` for the location at the cursor.
static MUST_USE enum err
find_child(struct builder *builder, uint32_t parent, const struct cursor *cursor, uint32_t *out)
{
    bool by_location = builder->key == CALL_TREE_BY_LOCATION;
    uint32_t id = by_location ? *cursor->at : function_of(builder, *cursor->at);
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
static void step_outwards(struct builder *builder, struct cursor *cursor, uint32_t node)
{
    uint32_t function = function_of(builder, *cursor->at);
    hide_node(builder, node, cursor->hidden);
    if (cursor->unfolded_by != 0) {
        builder->out.tree.nodes.items[node].unfolded_by = cursor->unfolded_by;
    }
    advance_cursor(builder, cursor, node);
    if (builder->collapses) {
        skip_same_function(builder, cursor, node, function);
    }
}

// Let an earlier row represent this one, if it reached the same place in the same node.
static bool join_other(struct builder *builder, uint32_t row, uint32_t node)
{
    struct cursor *cursors = builder->cursors.items;
    struct passage *last = &builder->passages.items[cursors[row].node];
    if (last->tree_node == node && cursors[last->row].at == cursors[row].at) {
        struct cursor *other = &cursors[last->row];
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
    struct cursor *cursor = &builder->cursors.items[row];
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
    const struct cursor *cursors = builder->cursors.items;
    const uint32_t *order = builder->order.items;
    for (size_t i = run.first; i < run.end; i++) {
        const uint32_t ahead = order[min_u64(i + ROWS_AHEAD, run.end - 1)];
        __builtin_prefetch(builder->passages.items + cursors[ahead].outer, 1);
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
    TRY(cursor_vec_resize(&builder->cursors, count));
    TRY(costs_vec_resize(&builder->costs, count));
    TRY(u32_vec_resize(&builder->goes_with, count));
    TRY(u32_vec_resize(&builder->order, count));
    TRY(u32_vec_resize(&builder->scratch, count));
    TRY(u32_vec_resize(&builder->child_of, count));
    TRY(u32_vec_resize(&builder->indices, count));
    TRY(u32_vec_resize(&builder->row_nodes, count));
    TRY(u32_vec_resize(&builder->out.tree.row_nodes, count));
    TRY(passage_vec_resize(&builder->passages, profile->recording.node_count));
    for (uint32_t i = 0; i < profile->recording.node_count; i++) {
        const struct rec_node *node = &profile->recording.nodes[i];
        builder->passages.items[i] = (struct passage){
            .parent = node->parent, .chain = code_index_chain_number(code, i, node->frame)};
    }
    return newest_vec_resize(&builder->newest, builder->key == CALL_TREE_BY_LOCATION
                                                   ? code->locations.len * 2
                                                   : code->functions.len);
}

// Begin the stack of the row at `index` in the selection.
static struct cursor begin_row(const struct builder *builder, size_t index)
{
    const struct selection *selection = builder->selection;
    return begin_stack(builder,
                       selection->profile->recording.rows[selection->rows.items[index]].node);
}

// Number the rows by their innermost function, in the order in which these come first.
static MUST_USE enum err number_rows(struct builder *builder)
{
    CLEANUP(u32_vec_release) struct u32_vec numbers = {0}; // by function; 0: none yet
    CLEANUP(u32_vec_release) struct u32_vec next = {0};    // by number: the place of its next row
    const size_t functions = builder->selection->profile->code.functions.len;
    const size_t count = builder->selection->rows.len;
    uint32_t *own = builder->scratch.items;
    uint32_t last = 0;
    TRY(u32_vec_resize(&numbers, functions + 1)); // and one for rows without a frame
    TRY(u32_vec_resize(&next, functions + 3));
    for (size_t i = 0; i < count; i++) {
        const struct cursor cursor = begin_row(builder, i);
        uint32_t *number =
            &numbers.items[cursor.node != 0 ? function_of(builder, *cursor.at) : functions];
        *number = *number != 0 ? *number : ++last;
        own[i] = *number;
        next.items[own[i] + 1]++;
    }
    for (size_t i = 1; i <= last; i++) {
        next.items[i] += next.items[i - 1];
    }
    for (size_t i = 0; i < count; i++) {
        builder->indices.items[next.items[own[i]]++] = (uint32_t)i;
    }
    return ERR_OK;
}

static MUST_USE enum err begin_tree(struct builder *builder)
{
    const struct selection *selection = builder->selection;
    struct call_tree *tree = &builder->out.tree;
    struct call_tree_node root = {.parent = REC_NONE,
                                  .first_child = REC_NONE,
                                  .next_sibling = REC_NONE,
                                  .id = REC_NONE,
                                  .location = REC_NONE,
                                  .frame = REC_NONE};
    TRY(make_room(builder));
    TRY(add_node(builder, root));
    TRY(number_rows(builder));
    for (size_t row = 0; row < selection->rows.len; row++) {
        const size_t index = builder->indices.items[row];
        builder->costs.items[row] = selection_costs(selection, index);
        costs_add(&tree->costs.totals.items[0], &builder->costs.items[row]);
        builder->goes_with.items[row] = REC_NONE;
        builder->order.items[row] = (uint32_t)row;
        builder->cursors.items[row] = begin_row(builder, index);
    }
    builder->runs.items[0].end = selection->rows.len;
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
        .selection = selection, .key = key, .folds = folds, .collapses = collapses};
    uint64_t frame_count;
    TRY(count_frames(selection, &frame_count));
    builder.share = frame_count > bounds->whole_frames ? bounds->share : 0;
    TRY(begin_tree(&builder));
    cancel_stage(selection->cancel, 0); // the amount of work is unknown
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
