// SPDX-License-Identifier: MIT
// api_stacks: /api/v1/stacks: the whole stacks behind a node of a tree, behind a function, or all.
//
// Stacks are the nodes with costs of their own in a tree by location. Which of them belong to a
// node of another tree is known by rows: both trees say where each row's stack ends.
#include <stdlib.h>

#include "base/compiler.h"
#include "profile/calls/call_tree.h"
#include "server/api/api.h"
#include "server/columns/columns.h"
#include "server/columns/told_stacks.h"

enum {
    STACKS_BY_DEFAULT = 50
};

// Takes the mark from rows whose stack does not end at or below `node`.
static MUST_USE enum err
keep_below(const struct shown_tree *tree, uint32_t node, struct flag_vec *rows)
{
    CLEANUP(flag_vec_release) struct flag_vec below = {0};
    TRY(flag_vec_resize(&below, tree->nodes.len));
    for (uint32_t i = node; i < tree->nodes.len; i++) {
        bool is_child = i > node && below.items[tree->nodes.items[i].parent] != 0;
        below.items[i] = i == node || is_child;
    }
    for (size_t i = 0; i < rows->len; i++) {
        rows->items[i] &= below.items[tree->row_nodes.items[i]];
    }
    return ERR_OK;
}

static MUST_USE enum err keep_of_node(struct question *q, uint64_t node, struct flag_vec *rows)
{
    CLEANUP(cached_tree_unrefp) struct cached_tree *cached = NULL;
    TRY(api_find_tree(q, &cached));
    if (node >= cached->tree.nodes.len) {
        return question_refuse(q, 0, PARAM_NODE, ERR_NOT_FOUND, "node: the tree has no such node");
    }
    return keep_below(&cached->tree, (uint32_t)node, rows);
}

// Takes the mark from rows in whose stack the function does not appear.
static MUST_USE enum err keep_of_function(struct question *q,
                                          const struct call_tree *tree,
                                          uint64_t function,
                                          struct flag_vec *rows)
{
    if (function >= q->profile->code.functions.len) {
        return question_refuse(q, 0, PARAM_FUNCTION_ID, ERR_NOT_FOUND,
                               "function_id: the recording has no such function");
    }
    CLEANUP(flag_vec_release) struct flag_vec has = {0};
    TRY(flag_vec_resize(&has, tree->nodes.len));
    for (size_t i = 1; i < tree->nodes.len; i++) {
        const struct call_tree_node *node = &tree->nodes.items[i];
        uint32_t own = profile_location_get(q->profile, node->location)->function;
        has.items[i] = has.items[node->parent] != 0 || own == function;
    }
    for (size_t i = 0; i < rows->len; i++) {
        rows->items[i] &= has.items[tree->row_nodes.items[i]];
    }
    return ERR_OK;
}

struct found_stack {
    uint32_t node;
    uint64_t score;
    struct costs costs;
};

DEFINE_VEC(found_stack_vec, struct found_stack);

static int compare_stacks(const void *left, const void *right)
{
    const struct found_stack *a = left;
    const struct found_stack *b = right;
    if (a->score != b->score) {
        return a->score > b->score ? -1 : 1;
    }
    return a->node < b->node ? -1 : a->node > b->node;
}

// The stacks of the marked rows that have any of `sort`, highest first.
static MUST_USE enum err find_stacks(struct question *q,
                                     const struct call_tree *tree,
                                     const struct flag_vec *rows,
                                     struct found_stack_vec *out)
{
    CLEANUP(costs_vec_release) struct costs_vec self = {0};
    TRY(costs_vec_resize(&self, tree->nodes.len));
    for (size_t i = 0; i < rows->len; i++) {
        if (rows->items[i] != 0) {
            struct costs costs = selection_costs(&q->selection, i);
            costs_add(&self.items[tree->row_nodes.items[i]], &costs);
        }
    }
    for (size_t i = 0; i < self.len; i++) {
        uint64_t score = costs_get(&self.items[i], q->sort);
        if (score > 0) {
            struct found_stack stack = {(uint32_t)i, score, self.items[i]};
            TRY(found_stack_vec_push(out, stack));
        }
    }
    if (out->len > 1) {
        qsort(out->items, out->len, sizeof(out->items[0]), compare_stacks);
    }
    return ERR_OK;
}

static uint64_t asked_limit(const struct question *q)
{
    uint64_t limit = request_number(q->request, PARAM_LIMIT, STACKS_BY_DEFAULT);
    return limit > 0 ? limit : REQUEST_ROWS_MAX;
}

static MUST_USE enum err write_page(struct question *q,
                                    const struct call_tree *tree,
                                    const struct found_stack_vec *found,
                                    struct json_writer *w)
{
    CLEANUP(code_tables_release) struct code_tables tables = {.code = q->code};
    CLEANUP(told_stacks_release) struct told_stacks told = {0};
    CLEANUP(costs_vec_release) struct costs_vec costs = {0};
    const uint64_t limit = asked_limit(q);
    size_t first = request_number(q->request, PARAM_OFFSET, 0);
    for (size_t i = first; i < found->len && i - first < limit; i++) {
        TRY(costs_vec_push(&costs, found->items[i].costs));
        TRY(told_stacks_add(&told, tree, found->items[i].node, &tables));
    }
    json_key_u64(w, "total_count", found->len);
    table_begin(w, "stacks", costs.len);
    costs_table(w, "costs", q->costs, costs.items, costs.len);
    told_stacks_write_columns(&told, 0, costs.len, w);
    table_end(w);
    told_stacks_write_frames(&told, w);
    return code_tables_write(&tables, w);
}

enum err api_stacks(struct question *q, struct json_writer *w)
{
    CLEANUP(call_tree_release) struct call_tree tree = {0};
    CLEANUP(flag_vec_release) struct flag_vec rows = {0};
    CLEANUP(found_stack_vec_release) struct found_stack_vec found = {0};
    if (q->is_diff) {
        return api_stack_pairs(q, asked_limit(q), w);
    }
    TRY(call_tree_build(&q->selection, CALL_TREE_TOP_DOWN, CALL_TREE_BY_LOCATION, &tree));
    TRY(flag_vec_resize(&rows, q->selection.rows.len));
    for (size_t i = 0; i < rows.len; i++) {
        rows.items[i] = 1;
    }
    if (request_has(q->request, PARAM_NODE)) {
        TRY(keep_of_node(q, request_number(q->request, PARAM_NODE, 0), &rows));
    }
    if (request_has(q->request, PARAM_FUNCTION_ID)) {
        TRY(keep_of_function(q, &tree, request_number(q->request, PARAM_FUNCTION_ID, 0), &rows));
    }
    TRY(find_stacks(q, &tree, &rows, &found));
    return write_page(q, &tree, &found, w);
}
