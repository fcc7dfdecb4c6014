// SPDX-License-Identifier: MIT
// api_stack_pairs: /api/v1/stacks of two recordings: stacks that call the same functions are one.
//
// They are the nodes with costs of their own in the tree of both by function, top-down; so no line
// and no address matters, and a stack that only one recording has stands beside a zero.
#include <stdlib.h>

#include "base/compiler.h"
#include "server/api/api.h"
#include "server/columns/columns.h"

struct stack_pair {
    uint32_t node;
    uint64_t score;
};

DEFINE_VEC(stack_pair_vec, struct stack_pair);

static int compare_pairs(const void *left, const void *right)
{
    const struct stack_pair *a = left;
    const struct stack_pair *b = right;
    if (a->score != b->score) {
        return a->score > b->score ? -1 : 1;
    }
    return a->node < b->node ? -1 : a->node > b->node;
}

// The stacks that have any of `sort` on either side, highest score first.
static MUST_USE enum err
find_pairs(const struct question *q, const struct shown_tree *tree, struct stack_pair_vec *out)
{
    enum side_score by = (enum side_score)request_number(q->request, PARAM_SORT_BY, SCORE_LARGER);
    for (uint32_t node = 0; node < tree->nodes.len; node++) {
        uint64_t new = costs_get(&tree->self[SIDE_NEW].items[node], q->sort);
        uint64_t old = costs_get(&tree->self[SIDE_OLD].items[node], q->sort);
        if (new > 0 || old > 0) {
            TRY(stack_pair_vec_push(
                out, (struct stack_pair){.node = node, .score = side_score_of(by, new, old)}));
        }
    }
    if (out->len > 1) {
        qsort(out->items, out->len, sizeof(out->items[0]), compare_pairs);
    }
    return ERR_OK;
}

// What of the pairs is told.
struct page {
    const struct shown_tree *tree;
    const struct stack_pair *pairs;
    size_t count;
};

static MUST_USE enum err
write_side(const struct question *q, const struct page *page, enum side side, struct json_writer *w)
{
    CLEANUP(costs_vec_release) struct costs_vec costs = {0};
    TRY(costs_vec_resize(&costs, page->count));
    for (size_t i = 0; i < page->count; i++) {
        costs.items[i] = page->tree->self[side].items[page->pairs[i].node];
    }
    costs_table(w, side == SIDE_NEW ? "costs" : "old_costs", q->costs, costs.items, costs.len);
    return ERR_OK;
}

// How many frames lie before the one that memory is attributed to (plumbing.h), innermost first.
static uint32_t count_plumbing(const struct page *page, uint32_t node)
{
    const struct shown_tree *tree = page->tree;
    uint32_t count = 0;
    for (; node != 0; node = tree->nodes.items[node].parent) {
        if ((shown_tree_location(tree, node)->flags & CODE_PLUMBING) == 0) {
            return count;
        }
        count++;
    }
    return 0; // nothing else is there
}

static void write_places(const struct page *page, struct json_writer *w)
{
    const struct call_tree_node *nodes = page->tree->nodes.items;
    uint64_t first = 0;
    column_begin(w, "frame_first");
    for (size_t i = 0; i < page->count; i++) {
        json_u64(w, first);
        first += nodes[page->pairs[i].node].depth;
    }
    column_end(w);
    column_begin(w, "frame_count");
    for (size_t i = 0; i < page->count; i++) {
        json_u64(w, nodes[page->pairs[i].node].depth);
    }
    column_end(w);
    column_begin(w, "site_frame");
    for (size_t i = 0; i < page->count; i++) {
        json_u64(w, count_plumbing(page, page->pairs[i].node));
    }
    column_end(w);
}

static void write_frames(const struct page *page, struct code_tables *tables, struct json_writer *w)
{
    const struct call_tree_node *nodes = page->tree->nodes.items;
    uint64_t count = 0;
    for (size_t i = 0; i < page->count; i++) {
        count += nodes[page->pairs[i].node].depth;
    }
    table_begin(w, "frames", count);
    column_begin(w, "function");
    for (size_t i = 0; i < page->count; i++) {
        for (uint32_t node = page->pairs[i].node; node != 0; node = nodes[node].parent) {
            json_position(w, code_tables_function(tables, page->tree->functions.items[node]));
        }
    }
    column_end(w);
    column_begin(w, "inlined");
    for (size_t i = 0; i < page->count; i++) {
        for (uint32_t node = page->pairs[i].node; node != 0; node = nodes[node].parent) {
            json_bool(w, nodes[node].is_inlined);
        }
    }
    column_end(w);
    table_end(w);
}

enum err api_stack_pairs(struct question *q, uint64_t limit, struct json_writer *w)
{
    static const struct shown_tree_spec spec = {.direction = CALL_TREE_TOP_DOWN,
                                                .key = CALL_TREE_BY_FUNCTION};
    static const enum param no_params[] = {PARAM_NODE, PARAM_FUNCTION_ID};
    CLEANUP(cached_tree_unrefp) struct cached_tree *cached = NULL;
    CLEANUP(stack_pair_vec_release) struct stack_pair_vec pairs = {0};
    CLEANUP(code_tables_release) struct code_tables tables = {.code = q->code};
    for (size_t i = 0; i < ARRAY_LEN(no_params); i++) {
        if (request_has(q->request, no_params[i])) {
            return question_refuse(q, 0, no_params[i], ERR_INVALID, "%s: not in a diff",
                                   request_param_name(no_params[i]));
        }
    }
    TRY(question_tree(q, spec, &cached));
    TRY(find_pairs(q, &cached->tree, &pairs));
    size_t first = request_number(q->request, PARAM_OFFSET, 0);
    size_t left = first < pairs.len ? pairs.len - first : 0;
    const struct page page = {.tree = &cached->tree,
                              .pairs = pairs.items + (left > 0 ? first : 0),
                              .count = left < limit ? left : limit};
    json_key_u64(w, "total_count", pairs.len);
    table_begin(w, "stacks", page.count);
    TRY(write_side(q, &page, SIDE_NEW, w));
    TRY(write_side(q, &page, SIDE_OLD, w));
    write_places(&page, w);
    table_end(w);
    write_frames(&page, &tables, w);
    return code_tables_write(&tables, w);
}
