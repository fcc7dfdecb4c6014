// SPDX-License-Identifier: MIT
// tree_view: collapses, merges and searches trees. See tree_view.h; tree_view_pick.c picks the
// nodes to show, and tree_view_cut.c removes the children of pruned ones.
//
// The tree of one recording is the view. Of two recordings, each side's tree is added to the view
// node by node, parents first. A map finds a child by (parent, id, inlined). Collapsing merges a
// node into its parent if both have the same function of the union.
#include "profile/calls/tree_view.h"

#include "base/compiler.h"
#include "base/hash.h"
#include "base/minmax.h"
#include "host/containers/map_u64.h"

struct layer {
    const struct call_tree *tree;
    const struct profile *profile;
    const struct u32_vec *ids;     // function -> union
    const struct flag_vec *pruned; // by node of the tree; empty: none
    enum side side;
    struct u32_vec places; // node of the tree -> node shown
};

struct builder {
    struct tree_view *out;
    struct tree_view_spec spec;
    struct map_u64 children;
};

static void builder_release(struct builder *builder)
{
    map_u64_release(&builder->children);
}

static void layer_release(struct layer *layer)
{
    u32_vec_release(&layer->places);
}

static MUST_USE enum err add_node(struct builder *builder,
                                  const struct call_tree_node *from,
                                  enum side side,
                                  uint32_t parent,
                                  uint32_t function,
                                  uint32_t *out)
{
    struct tree_view *tree = builder->out;
    struct call_tree_node node = *from;
    node.parent = parent;
    node.first_child = REC_NONE;
    node.next_sibling = REC_NONE;
    node.depth = 0;
    uint32_t id = (uint32_t)tree->nodes.len;
    if (parent != REC_NONE) {
        node.next_sibling = tree->nodes.items[parent].first_child;
        node.depth = tree->nodes.items[parent].depth + 1;
    }
    TRY(u32_vec_push(&tree->functions, function));
    TRY(flag_vec_push(&tree->sides, (uint8_t)side));
    TRY(flag_vec_push(&tree->pruned, 0));
    TRY(call_tree_node_vec_push(&tree->nodes, node));
    if (parent != REC_NONE) {
        tree->nodes.items[parent].first_child = id;
    }
    *out = id;
    return ERR_OK;
}

// Find or make the node of the view for a node of the layer.
static MUST_USE enum err place_node(struct builder *builder, struct layer *layer, size_t index)
{
    const struct call_tree_node *node = &layer->tree->nodes.items[index];
    uint32_t parent = layer->places.items[node->parent];
    uint32_t own = profile_function_at(layer->profile, node->location);
    uint32_t function = layer->ids->items[own];
    if (builder->spec.collapses && builder->out->functions.items[parent] == function) {
        layer->places.items[index] = parent;
        return ERR_OK;
    }
    uint32_t *place = &layer->places.items[index];
    const size_t count = builder->out->nodes.len;
    TRY(map_u64_number(&builder->children, map_u64_pair(parent, function), count, place));
    if (*place == count) {
        TRY(add_node(builder, node, layer->side, parent, function, place));
        builder->out->nodes.items[*place].id = function;
    }
    return ERR_OK;
}

static MUST_USE enum err
place_layer(struct builder *builder, struct layer *layer, struct cancel *cancel)
{
    TRY(u32_vec_resize(&layer->places, layer->tree->nodes.len));
    for (size_t i = 1; i < layer->tree->nodes.len; i++) {
        TRY(cancel_step(cancel));
        TRY(place_node(builder, layer, i));
    }
    return ERR_OK;
}

static bool is_pruned(const struct layer *layer, uint32_t node)
{
    return layer->pruned->len > 0 && layer->pruned->items[node] != 0;
}

static void merge_folds(struct call_tree_node *place, const struct call_tree_node *node)
{
    place->hidden = (uint32_t)max_u64(place->hidden, node->hidden);
    place->unfolded_by = node->unfolded_by != 0 ? node->unfolded_by : place->unfolded_by;
}

static MUST_USE enum err add_up(struct tree_view *out, const struct layer *layer)
{
    struct tree_costs *costs = &out->costs[layer->side];
    struct costs *totals = costs->totals.items;
    for (uint32_t i = 0; i < layer->tree->nodes.len; i++) {
        const uint32_t place = layer->places.items[i];
        const struct costs *self = tree_costs_self(&layer->tree->costs, i);
        merge_folds(&out->nodes.items[place], &layer->tree->nodes.items[i]);
        // A pruned node adds its whole total, since it has no children to add theirs.
        const struct costs *direct =
            is_pruned(layer, i) ? tree_costs_total(&layer->tree->costs, i) : self;
        costs_add(&totals[place], direct);
        if (costs->own_of.items[place] != REC_NONE && costs_any(self)) {
            TRY(tree_costs_add(costs, place, self));
        }
    }
    for (size_t i = out->nodes.len; i-- > 1;) {
        costs_add(&totals[out->nodes.items[i].parent], &totals[i]);
    }
    return ERR_OK;
}

// Note which nodes are pruned, and from which stacks go on, on either side.
static MUST_USE enum err begin_costs(struct tree_view *out, struct layer *const *layers)
{
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        TRY(tree_costs_begin(&out->costs[side], out->nodes.len));
        for (uint32_t i = 0; i < layers[side]->tree->nodes.len; i++) {
            out->pruned.items[layers[side]->places.items[i]] |= is_pruned(layers[side], i);
        }
    }
    for (uint32_t i = 0; i < out->nodes.len; i++) {
        if (out->pruned.items[i] != 0 || out->nodes.items[i].first_child != REC_NONE) {
            tree_costs_goes_on(&out->costs[SIDE_NEW], i);
            tree_costs_goes_on(&out->costs[SIDE_OLD], i);
        }
    }
    return ERR_OK;
}

static MUST_USE enum err
take_row_nodes(struct tree_view *out, const struct layer *layer, const struct u32_vec *row_nodes)
{
    TRY(u32_vec_resize(&out->row_nodes, row_nodes->len));
    for (size_t i = 0; i < row_nodes->len; i++) {
        out->row_nodes.items[i] = layer->places.items[row_nodes->items[i]];
    }
    return ERR_OK;
}

// The tree of one side, as built from the selection.
struct side_tree {
    struct call_tree tree;  // owned
    struct flag_vec pruned; // owned
};

static void side_tree_release(struct side_tree *side)
{
    call_tree_release(&side->tree);
    flag_vec_release(&side->pruned);
}

// What stands for the name of each function of the side in paths. Names, not ids: both recordings
// have the same, and a later checkpoint too.
static MUST_USE enum err
hash_names(const struct code_union *code, enum side side, struct u64_vec *out)
{
    const struct u32_vec *ids = &code->ids[side];
    TRY(u64_vec_resize(out, ids->len));
    for (size_t i = 0; i < ids->len; i++) {
        uint64_t hash = 1;
        for (const char *at = code_union_name(code, ids->items[i]); *at != '\0'; at++) {
            hash = hash_mix(hash + (unsigned char)*at);
        }
        out->items[i] = hash;
    }
    return ERR_OK;
}

static MUST_USE enum err side_tree_build(const struct code_union *code,
                                         enum side side,
                                         const struct selection *selection,
                                         struct tree_view_spec spec,
                                         struct side_tree *out)
{
    CLEANUP(u64_vec_release) struct u64_vec names = {0};
    struct call_tree_folds folds = {
        .paths = spec.unfolded, .path_count = spec.unfolded_count, .collapses = spec.collapses};
    const bool is_folded = spec.frames == CALL_TREE_SITES;
    if (is_folded) {
        TRY(hash_names(code, side, &names));
        folds.names = names.items;
    }
    if (spec.direction == CALL_TREE_TOP_DOWN && is_folded) {
        return call_tree_build_sites(selection, spec.key, &folds, &out->tree);
    }
    if (spec.direction == CALL_TREE_TOP_DOWN) {
        return call_tree_build(selection, spec.key, spec.collapses, &out->tree);
    }
    struct bottom_up_tree built;
    TRY(bottom_up_tree_build(selection, spec.key, is_folded ? &folds : NULL, spec.collapses,
                             &bottom_up_default_bounds, &built));
    *out = (struct side_tree){.tree = built.tree, .pruned = built.pruned};
    return ERR_OK;
}

static MUST_USE enum err lay_out_nodes(struct tree_view *out,
                                       const struct side_tree *const *sides,
                                       struct tree_view_spec spec,
                                       struct cancel *cancel)
{
    CLEANUP(builder_release) struct builder builder = {.out = out, .spec = spec};
    CLEANUP(layer_release) struct layer new = {.side = SIDE_NEW};
    CLEANUP(layer_release) struct layer old = {.side = SIDE_OLD};
    struct layer *layers[SIDE_COUNT] = {&new, &old};
    uint32_t root;
    TRY(add_node(&builder, &sides[SIDE_NEW]->tree.nodes.items[0], SIDE_NEW, REC_NONE, REC_NONE,
                 &root));
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        layers[side]->tree = &sides[side]->tree;
        layers[side]->pruned = &sides[side]->pruned;
        layers[side]->profile = out->code->profiles[side];
        layers[side]->ids = &out->code->ids[side];
        TRY(place_layer(&builder, layers[side], cancel));
    }
    TRY(begin_costs(out, layers));
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        TRY(add_up(out, layers[side]));
    }
    return take_row_nodes(out, &new, &sides[SIDE_NEW]->tree.row_nodes);
}

// Use the tree of one recording as it is: its functions are those of the union, and it is already
// collapsed.
static MUST_USE enum err
adopt_tree(struct tree_view *out, struct side_tree *side, const struct profile *profile)
{
    struct call_tree *tree = &side->tree;
    TRY(call_tree_functions(profile, tree, &out->functions));
    TRY(flag_vec_resize(&side->pruned, tree->nodes.len)); // top-down: nothing is pruned
    TRY(flag_vec_resize(&out->sides, tree->nodes.len));   // all 0: SIDE_NEW
    out->nodes = tree->nodes;
    out->costs[SIDE_NEW] = tree->costs;
    out->row_nodes = tree->row_nodes;
    out->pruned = side->pruned;
    *side = (struct side_tree){0};
    return ERR_OK;
}

enum err tree_view_build(const struct code_union *code,
                         const struct selection *new,
                         const struct selection *old,
                         struct tree_view_spec spec,
                         struct tree_view *out)
{
    CLEANUP(side_tree_release) struct side_tree new_side = {0};
    CLEANUP(side_tree_release) struct side_tree old_side = {0};
    CLEANUP(tree_view_release) struct tree_view tree = {.code = code};
    const struct side_tree *sides[SIDE_COUNT] = {&new_side, &old_side};
    TRY(side_tree_build(code, SIDE_NEW, new, spec, &new_side));
    if (old != NULL) {
        TRY(side_tree_build(code, SIDE_OLD, old, spec, &old_side));
    }
    if (old == NULL) {
        TRY(adopt_tree(&tree, &new_side, new->profile));
    } else {
        TRY(lay_out_nodes(&tree, sides, spec, new->cancel));
        TRY(tree_view_cut(&tree));
    }
    *out = TAKE(tree);
    return ERR_OK;
}

const struct code_location *tree_view_location(const struct tree_view *tree, uint32_t node)
{
    enum side side = (enum side)tree->sides.items[node];
    return profile_location_get(tree->code->profiles[side], tree->nodes.items[node].location);
}

// A wrapper that was found in one recording only must not divide the other's call sites from its.
bool tree_view_is_wrapper(const struct tree_view *tree, uint32_t node)
{
    return (tree_view_location(tree, node)->flags & CODE_WRAPPER) != 0 ||
           tree->code->wrappers.items[tree->functions.items[node]] != 0;
}

size_t tree_view_bytes(const struct tree_view *tree)
{
    size_t bytes = tree->nodes.len * sizeof(tree->nodes.items[0]) + tree->sides.len +
                   tree->pruned.len +
                   (tree->functions.len + tree->row_nodes.len) * sizeof(uint32_t);
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        bytes += tree_costs_bytes(&tree->costs[side]);
    }
    return bytes;
}

void tree_view_release(struct tree_view *tree)
{
    call_tree_node_vec_release(&tree->nodes);
    flag_vec_release(&tree->sides);
    u32_vec_release(&tree->functions);
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        tree_costs_release(&tree->costs[side]);
    }
    u32_vec_release(&tree->row_nodes);
    flag_vec_release(&tree->pruned);
}

enum verdict {
    VERDICT_UNKNOWN,
    VERDICT_NO,
    VERDICT_YES,
};

static MUST_USE enum err search_node(const struct tree_view *tree,
                                     uint32_t node,
                                     struct pattern *pattern,
                                     struct flag_vec *verdicts,
                                     struct err_info *info)
{
    uint32_t function = tree->functions.items[node];
    if (verdicts->items[function] == VERDICT_UNKNOWN) {
        bool matches = pattern_matches_function(pattern, code_union_name(tree->code, function)) ||
                       pattern_matches(pattern, code_union_module(tree->code, function));
        verdicts->items[function] = matches ? VERDICT_YES : VERDICT_NO;
        TRY(pattern_result(pattern, info));
    }
    return ERR_OK;
}

enum err tree_view_search(const struct tree_view *tree,
                          struct pattern *pattern,
                          struct tree_matches *out,
                          struct err_info *info)
{
    CLEANUP(tree_matches_release) struct tree_matches matches = {0};
    CLEANUP(flag_vec_release) struct flag_vec verdicts = {0}; // by function
    CLEANUP(flag_vec_release) struct flag_vec inside = {0};   // by node: it or an ancestor matches
    TRY(flag_vec_resize(&verdicts, tree->code->origins.len));
    TRY(flag_vec_resize(&inside, tree->nodes.len));
    TRY(flag_vec_resize(&matches.flags, tree->nodes.len));
    for (uint32_t i = 1; i < tree->nodes.len; i++) {
        TRY(search_node(tree, i, pattern, &verdicts, info));
        bool is_match = verdicts.items[tree->functions.items[i]] == VERDICT_YES;
        bool is_below = inside.items[tree->nodes.items[i].parent] != 0;
        matches.flags.items[i] = is_match;
        matches.count += is_match;
        inside.items[i] = is_match || is_below;
        if (is_match && !is_below) {
            costs_add(&matches.totals, tree_costs_total(&tree->costs[SIDE_NEW], i));
        }
    }
    *out = TAKE(matches);
    return ERR_OK;
}

void tree_matches_release(struct tree_matches *matches)
{
    flag_vec_release(&matches->flags);
}
