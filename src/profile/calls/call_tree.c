// SPDX-License-Identifier: MIT
// call_tree: builds and sums up trees of stacks. See call_tree.h.
//
// Every node of the recording is placed once, after its parent.
#include "profile/calls/call_tree.h"

#include "base/compiler.h"
#include "base/hash.h"
#include "base/minmax.h"
#include "host/os/progress.h"
#include "profile/calls/call_tree_children.h"

enum {
    NODES_PER_PROGRESS = 4096,
};

// A frame of a stack at one of its locations.
struct located {
    uint32_t location;
    uint32_t frame;
    bool is_inlined;
};

DEFINE_VEC(located_vec, struct located);

struct builder {
    const struct selection *selection; // borrowed
    enum call_tree_key key;
    const struct call_tree_folds *folds; // borrowed; NULL: no frames are folded
    bool collapses;                      // a function that calls itself directly is one node
    struct located_vec run;              // owned; the frames of an unfolded run, innermost first
    struct call_tree_children children;  // owned
    struct call_tree tree;               // owned until it is returned
};

static void builder_release(struct builder *builder)
{
    located_vec_release(&builder->run);
    call_tree_children_release(&builder->children);
    call_tree_release(&builder->tree);
}

const struct call_tree_node call_tree_root = {.parent = REC_NONE,
                                              .first_child = REC_NONE,
                                              .next_sibling = REC_NONE,
                                              .id = REC_NONE,
                                              .location = REC_NONE,
                                              .frame = REC_NONE};

// Return the path of a node below the node with the path `parent`; the root's is 0.
static uint64_t extended_path(uint64_t parent, uint64_t name)
{
    const uint64_t path = stack_name(parent, name) >> 12; // 52 bits
    return path != 0 ? path : 1;
}

uint64_t call_tree_path_below(const struct call_tree *tree,
                              const struct call_tree_folds *folds,
                              const struct profile *profile,
                              uint32_t parent,
                              uint32_t location)
{
    const struct call_tree_node *node = &tree->nodes.items[parent];
    if (folds == NULL || folds->names == NULL) {
        return 0;
    }
    const uint64_t name = folds->names[profile_function_at(profile, location)];
    const bool is_same = folds->collapses && node->depth > 0 &&
                         folds->names[profile_function_at(profile, node->location)] == name;
    return is_same ? node->path : extended_path(node->path, name);
}

bool call_tree_unfolds(const struct call_tree_folds *folds, uint64_t path)
{
    for (size_t i = 0; i < folds->path_count; i++) {
        if (folds->paths[i] == path) {
            return true;
        }
    }
    return false;
}

void call_tree_hide(struct call_tree *tree, uint32_t node, size_t count)
{
    uint32_t *hidden = &tree->nodes.items[node].hidden;
    *hidden = (uint32_t)max_u64(*hidden, count);
}

static uint32_t function_of(const struct builder *builder, uint32_t location)
{
    return profile_function_at(builder->selection->profile, location);
}

static uint64_t path_below(const struct builder *builder, uint32_t at, uint32_t location)
{
    return call_tree_path_below(&builder->tree, builder->folds, builder->selection->profile, at,
                                location);
}

// Move *at to its child for the location, which is made if it is new. With `collapses`, *at stays
// if it has the same function.
static MUST_USE enum err descend_to_child(
    struct builder *builder, uint32_t location, uint32_t frame, bool is_inlined, uint32_t *at)
{
    bool by_location = builder->key == CALL_TREE_BY_LOCATION;
    const struct call_tree_node *parent = &builder->tree.nodes.items[*at];
    if (builder->collapses && *at != 0 &&
        function_of(builder, parent->location) == function_of(builder, location)) {
        return ERR_OK;
    }
    struct call_tree_node node = {.parent = *at,
                                  .first_child = REC_NONE,
                                  .next_sibling = parent->first_child,
                                  .id = by_location ? location : function_of(builder, location),
                                  .location = location,
                                  .frame = frame,
                                  .depth = parent->depth + 1,
                                  .is_inlined = is_inlined,
                                  .path = path_below(builder, *at, location)};
    return call_tree_children_take(&builder->children, &builder->tree.nodes, &node, at);
}

// Move over the shown locations of a node's frame, from the real function to the innermost.
static MUST_USE enum err descend_frame(struct builder *builder, uint32_t node, uint32_t *at)
{
    const struct code_chain chain = selection_chain(builder->selection, node);
    const uint32_t frame = builder->selection->profile->recording.nodes[node].frame;
    for (size_t i = chain.count; i-- > 0;) {
        const bool is_inlined = i + 1 < chain.count;
        TRY(descend_to_child(builder, chain.locations[i], frame, is_inlined, at));
    }
    return ERR_OK;
}

static void show_progress(const struct selection *selection, size_t done, size_t total)
{
    if (selection->progress != NULL && done % NODES_PER_PROGRESS == 0) {
        progress_update(selection->progress, "merging call stacks", done, total);
    }
}

// Mark the nodes of the recording that are on a selected stack, including the root.
static MUST_USE enum err mark_needed(const struct selection *selection, struct u32_vec *places)
{
    const struct recording *recording = &selection->profile->recording;
    TRY(u32_vec_resize(places, recording->node_count));
    for (size_t i = 0; i < selection->rows.len; i++) {
        places->items[recording->rows[selection->rows.items[i]].node] = 1;
    }
    for (size_t i = recording->node_count; i-- > 1;) {
        places->items[recording->nodes[i].parent] |= places->items[i];
    }
    return ERR_OK;
}

static MUST_USE enum err place_stacks(struct builder *builder, const struct selection *selection)
{
    const struct recording *recording = &builder->selection->profile->recording;
    CLEANUP(u32_vec_release) struct u32_vec places = {0};
    TRY(mark_needed(selection, &places));
    if (places.len > 0) {
        places.items[0] = 0;
    }
    for (size_t i = 1; i < recording->node_count; i++) {
        TRY(cancel_step(selection->cancel));
        show_progress(selection, i, recording->node_count);
        if (places.items[i] != 0) {
            places.items[i] = places.items[recording->nodes[i].parent];
            TRY(descend_frame(builder, (uint32_t)i, &places.items[i]));
        }
    }
    for (size_t i = 0; i < selection->rows.len; i++) {
        uint32_t node = recording->rows[selection->rows.items[i]].node;
        builder->tree.row_nodes.items[i] = places.items[node];
    }
    return ERR_OK;
}

// How far a stack is placed in a tree of sites: its place, and the outermost of the wrapper frames
// that follow. They get a node once a frame that is not a wrapper follows.
struct progress_in_sites {
    uint32_t at;
    uint32_t count; // of the wrapper frames that follow
    struct located outermost;
};

DEFINE_VEC(progress_in_sites_vec, struct progress_in_sites);

// List the `count` frames of a stack from the `first` one of the node's chain outwards.
static MUST_USE enum err
list_run(struct builder *builder, uint32_t node, size_t first, size_t count)
{
    const struct rec_node *nodes = builder->selection->profile->recording.nodes;
    located_vec_clear(&builder->run);
    for (; builder->run.len < count; node = nodes[node].parent, first = 0) {
        const struct code_chain chain = selection_chain(builder->selection, node);
        for (size_t i = first; i < chain.count && builder->run.len < count; i++) {
            const struct located frame = {.location = chain.locations[i],
                                          .frame = nodes[node].frame,
                                          .is_inlined = i + 1 < chain.count};
            TRY(located_vec_push(&builder->run, frame));
        }
    }
    return ERR_OK;
}

// Give each of the `count` wrapper frames from the `first` one of the node's chain outwards a node.
static MUST_USE enum err descend_unfolded(
    struct builder *builder, uint32_t node, size_t first, size_t count, uint64_t path, uint32_t *at)
{
    TRY(list_run(builder, node, first, count));
    for (size_t i = builder->run.len; i-- > 0;) {
        const struct located frame = builder->run.items[i];
        TRY(descend_to_child(builder, frame.location, frame.frame, frame.is_inlined, at));
        builder->tree.nodes.items[*at].unfolded_by = path;
    }
    return ERR_OK;
}

// Place the wrapper frames before the frame `position` of the node's chain.
static MUST_USE enum err
end_run(struct builder *builder, uint32_t node, size_t position, struct progress_in_sites *progress)
{
    const struct located run = progress->outermost;
    const size_t count = progress->count;
    const uint64_t path = path_below(builder, progress->at, run.location);
    progress->count = 0;
    if (call_tree_unfolds(builder->folds, path)) {
        return descend_unfolded(builder, node, position + 1, count, path, &progress->at);
    }
    TRY(descend_to_child(builder, run.location, run.frame, run.is_inlined, &progress->at));
    call_tree_hide(&builder->tree, progress->at, count - 1);
    return ERR_OK;
}

static MUST_USE enum err
descend_sites(struct builder *builder, uint32_t node, struct progress_in_sites *progress)
{
    const struct code_chain chain = selection_chain(builder->selection, node);
    const uint32_t frame = builder->selection->profile->recording.nodes[node].frame;
    for (size_t i = chain.count; i-- > 0;) {
        const uint32_t location = chain.locations[i];
        if (!profile_is_wrapper(builder->selection->profile, location)) {
            if (progress->count > 0) {
                TRY(end_run(builder, node, i, progress));
            }
            TRY(descend_to_child(builder, location, frame, i > 0, &progress->at));
        } else if (progress->at != 0 && progress->count++ == 0) {
            progress->outermost =
                (struct located){.location = location, .frame = frame, .is_inlined = i > 0};
        }
    }
    return ERR_OK;
}

// Find the place where a stack ends.
static MUST_USE enum err end_stack(struct builder *builder,
                                   uint32_t node,
                                   const struct progress_in_sites *progress,
                                   uint32_t *out)
{
    *out = progress->at;
    if (node != 0 && progress->at == 0) { // wrapper frames alone
        const struct call_site_location site = selection_call_site(builder->selection, node);
        return descend_to_child(builder, site.location, site.frame, site.is_inlined, out);
    }
    if (progress->count == 0) {
        return ERR_OK;
    }
    const uint64_t path = builder->tree.nodes.items[progress->at].path;
    if (call_tree_unfolds(builder->folds, path)) {
        return descend_unfolded(builder, node, 0, progress->count, path, out);
    }
    call_tree_hide(&builder->tree, progress->at, progress->count);
    return ERR_OK;
}

static MUST_USE enum err place_sites(struct builder *builder, const struct selection *selection)
{
    const struct recording *recording = &builder->selection->profile->recording;
    CLEANUP(u32_vec_release) struct u32_vec needed = {0};
    CLEANUP(progress_in_sites_vec_release) struct progress_in_sites_vec places = {0};
    TRY(mark_needed(selection, &needed));
    TRY(progress_in_sites_vec_resize(&places, recording->node_count));
    for (size_t i = 1; i < recording->node_count; i++) {
        TRY(cancel_step(selection->cancel));
        if (needed.items[i] != 0) {
            places.items[i] = places.items[recording->nodes[i].parent];
            TRY(descend_sites(builder, (uint32_t)i, &places.items[i]));
        }
    }
    for (size_t i = 0; i < selection->rows.len; i++) {
        const uint32_t node = recording->rows[selection->rows.items[i]].node;
        TRY(end_stack(builder, node, &places.items[node], &builder->tree.row_nodes.items[i]));
    }
    return ERR_OK;
}

static MUST_USE enum err add_up(struct call_tree *tree, const struct selection *selection)
{
    const struct call_tree_node *nodes = tree->nodes.items;
    struct costs *totals;
    TRY(tree_costs_begin(&tree->costs, tree->nodes.len));
    for (uint32_t i = 0; i < tree->nodes.len; i++) {
        if (nodes[i].first_child != REC_NONE) {
            tree_costs_goes_on(&tree->costs, i);
        }
    }
    for (size_t i = 0; i < selection->rows.len; i++) {
        const struct costs costs = selection_costs(selection, i);
        TRY(tree_costs_add(&tree->costs, tree->row_nodes.items[i], &costs));
    }
    totals = tree->costs.totals.items;
    for (uint32_t i = (uint32_t)tree->nodes.len; i-- > 0;) {
        if (nodes[i].first_child != REC_NONE) {
            costs_add(&totals[i], tree_costs_self(&tree->costs, i));
        }
        if (i > 0) {
            costs_add(&totals[nodes[i].parent], &totals[i]);
        }
    }
    return ERR_OK;
}

static MUST_USE enum err build_shape(const struct selection *selection,
                                     enum call_tree_key key,
                                     const struct call_tree_folds *folds,
                                     bool collapses,
                                     struct call_tree *out)
{
    CLEANUP(builder_release)
    struct builder builder = {
        .selection = selection, .key = key, .folds = folds, .collapses = collapses};
    TRY(call_tree_children_begin(&builder.children, selection->profile, key));
    TRY(call_tree_node_vec_push(&builder.tree.nodes, call_tree_root));
    TRY(u32_vec_resize(&builder.tree.row_nodes, selection->rows.len));
    TRY(folds != NULL ? place_sites(&builder, selection) : place_stacks(&builder, selection));
    *out = TAKE(builder.tree);
    return ERR_OK;
}

static MUST_USE enum err build(const struct selection *selection,
                               enum call_tree_key key,
                               const struct call_tree_folds *folds,
                               bool collapses,
                               struct call_tree *out)
{
    CLEANUP(call_tree_release) struct call_tree tree = {0};
    TRY(build_shape(selection, key, folds, collapses, &tree));
    TRY(add_up(&tree, selection));
    *out = TAKE(tree);
    return ERR_OK;
}

enum err call_tree_build_shape(const struct selection *selection,
                               enum call_tree_key key,
                               struct call_tree *out)
{
    return build_shape(selection, key, NULL, false, out);
}

enum err call_tree_build_sites(const struct selection *selection,
                               enum call_tree_key key,
                               const struct call_tree_folds *folds,
                               struct call_tree *out)
{
    return build(selection, key, folds, folds->collapses, out);
}

enum err call_tree_build(const struct selection *selection,
                         enum call_tree_key key,
                         bool collapses,
                         struct call_tree *out)
{
    return build(selection, key, NULL, collapses, out);
}

const struct call_tree_folds call_tree_all_folded = {0};

static MUST_USE enum err
build_frames(const struct selection *selection, enum call_tree_frames frames, struct call_tree *out)
{
    return build(selection, CALL_TREE_BY_LOCATION, call_tree_folds_of(frames), false, out);
}

DEFINE_KEPT_KIND(tree_of_all,
                 struct call_tree,
                 build_frames(source, CALL_TREE_ALL, out),
                 call_tree_bytes(result),
                 call_tree_release(result));
DEFINE_KEPT_KIND(tree_of_sites,
                 struct call_tree,
                 build_frames(source, CALL_TREE_SITES, out),
                 call_tree_bytes(result),
                 call_tree_release(result));

enum err call_tree_build_frames(const struct selection *selection,
                                enum call_tree_frames frames,
                                struct call_tree *out)
{
    return kept_results_get(selection->trees,
                            frames == CALL_TREE_ALL ? &tree_of_all : &tree_of_sites, selection, out,
                            &out->is_lent);
}

enum err call_tree_functions(const struct profile *profile,
                             const struct call_tree *tree,
                             struct u32_vec *out)
{
    TRY(u32_vec_resize(out, tree->nodes.len));
    out->items[0] = REC_NONE;
    for (size_t i = 1; i < tree->nodes.len; i++) {
        out->items[i] = profile_function_at(profile, tree->nodes.items[i].location);
    }
    return ERR_OK;
}

void call_tree_release(struct call_tree *tree)
{
    if (tree->is_lent) {
        *tree = (struct call_tree){0};
    }
    call_tree_node_vec_release(&tree->nodes);
    tree_costs_release(&tree->costs);
    u32_vec_release(&tree->row_nodes);
}
