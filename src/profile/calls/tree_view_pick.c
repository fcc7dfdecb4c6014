// SPDX-License-Identifier: MIT
// tree_view_pick: picks the nodes to show if a tree has too many. See tree_view.h.
//
// Best first: a heap holds the nodes whose parents are taken. The highest is taken next, and its
// children enter the heap. Costs are not negative, so totals never grow downwards, and this takes
// the highest nodes of the whole tree. The taken nodes are then put into depth-first order.
#include <stdlib.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "profile/calls/tree_view.h"

struct scored {
    uint64_t score;
    uint32_t node;
};

DEFINE_VEC(scored_vec, struct scored);

struct picker {
    const struct tree_view *tree;
    const struct tree_view_wish *wish;
    struct scored_vec heap;
    struct flag_vec taken; // by node
    size_t taken_count;
    bool is_complete;
};

static void picker_release(struct picker *picker)
{
    scored_vec_release(&picker->heap);
    flag_vec_release(&picker->taken);
}

uint64_t side_score_of(enum side_score score, uint64_t new, uint64_t old)
{
    switch (score) {
    case SCORE_LARGER:
        return max_u64(new, old);
    case SCORE_CHANGE:
        return distance_u64(new, old);
    case SCORE_NEW:
        return new;
    case SCORE_OLD:
        return old;
    }
    return 0;
}

static uint64_t total_of(const struct picker *picker, enum side side, uint32_t node)
{
    const struct costs_vec *totals = &picker->tree->costs[side].totals;
    return totals->len > 0 ? costs_get(&totals->items[node], picker->wish->sort) : 0;
}

static struct scored score_node(const struct picker *picker, uint32_t node, enum side_score score)
{
    uint64_t new = total_of(picker, SIDE_NEW, node);
    uint64_t old = total_of(picker, SIDE_OLD, node);
    return (struct scored){.score = side_score_of(score, new, old), .node = node};
}

// The largest share of the node in any of the root's costs, in billionths.
static uint64_t share_of(const struct picker *picker, uint32_t node)
{
    const uint64_t whole = 1000000000;
    const struct costs_vec *total = &picker->tree->costs[SIDE_NEW].totals;
    uint64_t largest = 0;
    for (int cost = 0; cost < COST_COUNT; cost++) {
        uint64_t root = total->items[0].values[cost];
        unsigned __int128 own = total->items[node].values[cost];
        uint64_t share = root > 0 ? (uint64_t)(own * whole / root) : 0;
        largest = max_u64(largest, share);
    }
    return largest;
}

// The score by which nodes are taken.
static struct scored rate_node(const struct picker *picker, uint32_t node)
{
    return picker->wish->by_any_cost
               ? (struct scored){.score = share_of(picker, node), .node = node}
               : score_node(picker, node, picker->wish->score);
}

static bool is_before(struct scored left, struct scored right)
{
    return left.score != right.score ? left.score > right.score : left.node < right.node;
}

static MUST_USE enum err heap_push(struct scored_vec *heap, struct scored item)
{
    TRY(scored_vec_push(heap, item));
    size_t at = heap->len - 1;
    while (at > 0 && is_before(item, heap->items[(at - 1) / 2])) {
        heap->items[at] = heap->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->items[at] = item;
    return ERR_OK;
}

// Remove the highest node. The heap must not be empty.
static struct scored heap_pop(struct scored_vec *heap)
{
    struct scored top = heap->items[0];
    struct scored last = heap->items[--heap->len];
    size_t at = 0;
    for (;;) {
        size_t child = at * 2 + 1;
        if (child >= heap->len) {
            break;
        }
        if (child + 1 < heap->len && is_before(heap->items[child + 1], heap->items[child])) {
            child++;
        }
        if (!is_before(heap->items[child], last)) {
            break;
        }
        heap->items[at] = heap->items[child];
        at = child;
    }
    if (heap->len > 0) {
        heap->items[at] = last;
    }
    return top;
}

static MUST_USE enum err offer_children(struct picker *picker, uint32_t node)
{
    const struct call_tree_node *nodes = picker->tree->nodes.items;
    const struct tree_view_wish *wish = picker->wish;
    uint32_t level = nodes[node].depth - nodes[wish->root].depth;
    for (uint32_t i = nodes[node].first_child; i != REC_NONE; i = nodes[i].next_sibling) {
        bool is_too_deep = wish->levels > 0 && level >= wish->levels;
        if (is_too_deep || score_node(picker, i, SCORE_LARGER).score < wish->minimum) {
            picker->is_complete = false;
        } else {
            TRY(heap_push(&picker->heap, rate_node(picker, i)));
        }
    }
    return ERR_OK;
}

static MUST_USE enum err take_best(struct picker *picker)
{
    TRY(heap_push(&picker->heap, rate_node(picker, picker->wish->root)));
    while (picker->heap.len > 0) {
        if (picker->taken_count == picker->wish->limit) {
            picker->is_complete = false;
            break;
        }
        uint32_t node = heap_pop(&picker->heap).node;
        picker->taken.items[node] = 1;
        picker->taken_count++;
        TRY(offer_children(picker, node));
    }
    return ERR_OK;
}

static int compare_scored(const void *left, const void *right)
{
    const struct scored *a = left;
    const struct scored *b = right;
    // Reversed, so that the highest node of a group on the stack is popped first.
    return is_before(*a, *b) ? 1 : -1;
}

// The heap is empty now and serves as the stack of remaining nodes.
static MUST_USE enum err put_in_order(struct picker *picker, struct u32_vec *out)
{
    const struct call_tree_node *nodes = picker->tree->nodes.items;
    struct scored_vec *stack = &picker->heap;
    stack->len = 0;
    TRY(u32_vec_reserve(out, picker->taken_count));
    TRY(scored_vec_push(stack, (struct scored){.node = picker->wish->root}));
    while (stack->len > 0) {
        uint32_t node = stack->items[--stack->len].node;
        TRY(u32_vec_push(out, node));
        size_t first = stack->len;
        for (uint32_t i = nodes[node].first_child; i != REC_NONE; i = nodes[i].next_sibling) {
            if (picker->taken.items[i] != 0) {
                TRY(scored_vec_push(stack, score_node(picker, i, picker->wish->score)));
            }
        }
        if (stack->len > first) {
            qsort(stack->items + first, stack->len - first, sizeof(stack->items[0]),
                  compare_scored);
        }
    }
    return ERR_OK;
}

enum err tree_view_pick(const struct tree_view *tree,
                        const struct tree_view_wish *wish,
                        struct u32_vec *out,
                        bool *is_complete)
{
    CLEANUP(picker_release)
    struct picker picker = {.tree = tree, .wish = wish, .is_complete = true};
    CLEANUP(u32_vec_release) struct u32_vec nodes = {0};
    TRY(flag_vec_resize(&picker.taken, tree->nodes.len));
    TRY(take_best(&picker));
    TRY(put_in_order(&picker, &nodes));
    *is_complete = picker.is_complete;
    *out = TAKE(nodes);
    return ERR_OK;
}
