// SPDX-License-Identifier: MIT
#include "profile/calls/stack_cursor.h"

static struct stack_cursor begin_node(const struct stack_steps *steps, uint32_t node)
{
    if (node == 0) {
        return (struct stack_cursor){0};
    }
    const struct selection *selection = steps->selection;
    const struct stack_passage *passage = &steps->passages.items[node];
    const struct code_chain chain =
        selection->shown.len > 0 ? selection_chain(selection, node)
                                 : code_index_chain(&selection->profile->code, passage->chain);
    if (chain.count == 0) { // nor are its callers shown
        return (struct stack_cursor){0};
    }
    return (struct stack_cursor){.node = node,
                                 .left = (uint32_t)chain.count,
                                 .at = chain.locations,
                                 .outer = passage->parent};
}

static void step_cursor(const struct stack_steps *steps, struct stack_cursor *cursor)
{
    cursor->at++;
    if (--cursor->left == 0) {
        *cursor = begin_node(steps, cursor->outer);
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
    struct stack_cursor innermost = begin_node(steps, node);
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
