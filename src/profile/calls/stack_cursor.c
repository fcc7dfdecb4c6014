// SPDX-License-Identifier: MIT
#include "profile/calls/stack_cursor.h"

#include "base/compiler.h"
#include "base/minmax.h"

// Count for each node how many frames the longest of its stacks goes on inwards.
static MUST_USE enum err measure_heights(const struct recording *recording, struct u32_vec *out)
{
    TRY(u32_vec_resize(out, recording->node_count));
    for (size_t i = recording->node_count; i-- > 1;) {
        uint32_t *outer = &out->items[recording->nodes[i].parent];
        *outer = (uint32_t)max_u64(*outer, (uint64_t)out->items[i] + 1);
    }
    return ERR_OK;
}

// Give the nodes their places: the highest first, so the root's is 0.
static MUST_USE enum err place_nodes(struct stack_steps *steps)
{
    CLEANUP(u32_vec_release) struct u32_vec heights = {0};
    CLEANUP(u32_vec_release) struct u32_vec next = {0}; // by height
    TRY(measure_heights(&steps->selection->profile->recording, &heights));
    TRY(u32_vec_resize(&next, heights.len > 0 ? (size_t)heights.items[0] + 1 : 1));
    for (size_t i = 0; i < heights.len; i++) {
        next.items[heights.items[i]]++;
    }
    uint32_t sum = 0;
    for (size_t height = next.len; height-- > 0;) {
        const uint32_t count = next.items[height];
        next.items[height] = sum;
        sum += count;
    }
    TRY(u32_vec_resize(&steps->places, heights.len));
    for (size_t i = 0; i < heights.len; i++) {
        steps->places.items[i] = next.items[heights.items[i]]++;
    }
    return ERR_OK;
}

enum err stack_steps_begin(struct stack_steps *steps)
{
    const struct profile *profile = steps->selection->profile;
    const size_t count = profile->recording.node_count;
    TRY(stack_passage_vec_resize(&steps->passages, count));
    TRY(place_nodes(steps));
    for (uint32_t i = 0; i < count; i++) {
        const struct rec_node *node = &profile->recording.nodes[i];
        steps->passages.items[steps->places.items[i]] =
            (struct stack_passage){.parent = i > 0 ? steps->places.items[node->parent] : 0,
                                   .chain = code_index_chain_number(&profile->code, i, node->frame),
                                   .node = i};
    }
    return ERR_OK;
}

void stack_steps_release(struct stack_steps *steps)
{
    stack_passage_vec_release(&steps->passages);
    u32_vec_release(&steps->places);
}

// Put the cursor on the innermost location of a node. It is written where it is: a copy would wait
// for its parts, millions of times.
static void begin_node(const struct stack_steps *steps, uint32_t node, struct stack_cursor *cursor)
{
    const struct selection *selection = steps->selection;
    struct code_chain chain = {0};
    if (node != 0) {
        const struct stack_passage *passage = &steps->passages.items[node];
        cursor->outer = passage->parent;
        chain = selection->shown.len > 0
                    ? selection_chain(selection, passage->node)
                    : code_index_chain(&selection->profile->code, passage->chain);
    }
    const bool is_shown = chain.count > 0; // else its callers are not either
    cursor->node = is_shown ? node : 0;
    cursor->left = (uint32_t)chain.count;
    cursor->at = is_shown ? chain.locations : NULL;
}

static void step_cursor(const struct stack_steps *steps, struct stack_cursor *cursor)
{
    cursor->at++;
    if (--cursor->left == 0) {
        begin_node(steps, cursor->outer, cursor);
    }
}

static bool is_on_wrapper(const struct stack_steps *steps, const struct stack_cursor *cursor)
{
    return cursor->node != 0 && profile_is_wrapper(steps->selection->profile, *cursor->at);
}

static uint64_t path_below(const struct stack_steps *steps, uint32_t node, uint32_t location)
{
    return call_tree_path_below(steps->tree, steps->folds, steps->selection->profile, node,
                                location);
}

void stack_cursor_advance(const struct stack_steps *steps,
                          struct stack_cursor *cursor,
                          uint32_t node)
{
    const uint64_t unfolded_by = cursor->unfolded_by;
    step_cursor(steps, cursor);
    cursor->hidden = 0;
    cursor->unfolded_by = 0;
    if (steps->folds == NULL || !is_on_wrapper(steps, cursor)) {
        return;
    }
    if (unfolded_by != 0) {
        cursor->unfolded_by = unfolded_by;
        return;
    }
    struct stack_cursor outermost = *cursor;
    struct stack_cursor next = *cursor;
    uint32_t count = 0;
    for (; is_on_wrapper(steps, &next); count++) {
        outermost = next;
        step_cursor(steps, &next);
    }
    const bool is_end = next.node == 0;
    const uint64_t path =
        is_end ? steps->tree->nodes.items[node].path : path_below(steps, node, *outermost.at);
    if (call_tree_unfolds(steps->folds, path)) {
        cursor->unfolded_by = path;
    } else if (is_end) {
        call_tree_hide(steps->tree, node, count);
        *cursor = next;
    } else {
        *cursor = outermost;
        cursor->hidden = count - 1;
    }
}

static bool is_in_library(const struct stack_steps *steps, const struct stack_cursor *cursor)
{
    const struct code_location *locations = steps->selection->profile->code.locations.items;
    return cursor->node != 0 && (locations[*cursor->at].flags & CODE_LIBRARY) != 0;
}

// Begin a stack of wrapper frames alone at its call site (wrappers.h). `cursor` is on its innermost
// frame.
static struct stack_cursor begin_wrappers(const struct stack_steps *steps,
                                          struct stack_cursor cursor)
{
    const struct stack_cursor innermost = cursor;
    while (cursor.node != 0 && !is_in_library(steps, &cursor)) {
        step_cursor(steps, &cursor);
    }
    return cursor.node != 0 ? cursor : innermost;
}

struct stack_cursor stack_cursor_begin(const struct stack_steps *steps, uint32_t node)
{
    struct stack_cursor innermost = {0};
    begin_node(steps, steps->places.items[node], &innermost);
    struct stack_cursor site = innermost;
    uint32_t count = 0;
    for (; steps->folds != NULL && is_on_wrapper(steps, &site); count++) {
        step_cursor(steps, &site);
    }
    if (count == 0 || site.node == 0) {
        return count > 0 ? begin_wrappers(steps, innermost) : innermost;
    }
    const uint64_t path = path_below(steps, 0, *site.at);
    if (call_tree_unfolds(steps->folds, path)) {
        innermost.unfolded_by = path;
        return innermost;
    }
    site.hidden = count;
    return site;
}

void stack_cursor_skip(const struct stack_steps *steps,
                       struct stack_cursor *cursor,
                       uint32_t node,
                       uint32_t function)
{
    while (cursor->node != 0 &&
           profile_function_at(steps->selection->profile, *cursor->at) == function) {
        stack_cursor_advance(steps, cursor, node);
    }
}
