// SPDX-License-Identifier: MIT
#include "profile/tables/function_costs.h"

#include "base/compiler.h"
#include "base/order.h"

static MUST_USE enum err build_side(const struct code_union *code,
                                    enum side side,
                                    const struct selection *selection,
                                    enum call_tree_frames frames,
                                    struct function_tree *out)
{
    TRY(call_tree_build_frames(selection, frames, &out->tree));
    TRY(call_tree_functions(selection->profile, &out->tree, &out->functions));
    for (size_t i = 1; i < out->functions.len; i++) {
        out->functions.items[i] = code->ids[side].items[out->functions.items[i]];
    }
    return ERR_OK;
}

enum err function_trees_build(const struct code_union *code,
                              const struct selection *new,
                              const struct selection *old,
                              enum call_tree_frames frames,
                              struct function_trees *out)
{
    CLEANUP(function_trees_release) struct function_trees trees = {.code = code, .count = 1};
    TRY(build_side(code, SIDE_NEW, new, frames, &trees.sides[SIDE_NEW]));
    if (old != NULL) {
        TRY(build_side(code, SIDE_OLD, old, frames, &trees.sides[SIDE_OLD]));
        trees.count = 2;
    }
    *out = TAKE(trees);
    return ERR_OK;
}

// Return whether a function is in the trees.
static bool is_in(const struct function_trees *trees, uint32_t function)
{
    for (size_t side = 0; side < trees->count; side++) {
        const struct u32_vec *functions = &trees->sides[side].functions;
        for (size_t node = 1; node < functions->len; node++) {
            if (functions->items[node] == function) {
                return true;
            }
        }
    }
    return false;
}

enum err function_trees_build_of(const struct code_union *code,
                                 const struct selection *new,
                                 const struct selection *old,
                                 enum call_tree_frames frames,
                                 uint32_t function,
                                 struct function_trees *out)
{
    TRY(function_trees_build(code, new, old, frames, out));
    if (frames == CALL_TREE_ALL || is_in(out, function)) {
        return ERR_OK;
    }
    function_trees_release(out);
    return function_trees_build(code, new, old, CALL_TREE_ALL, out);
}

void function_trees_release(struct function_trees *trees)
{
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        call_tree_release(&trees->sides[side].tree);
        u32_vec_release(&trees->sides[side].functions);
    }
}

// How a node is assigned to a key.
struct keying {
    uint32_t function; // the queried one
    const struct code_union *code;
};

typedef uint32_t
node_key(const struct keying *keying, const struct function_tree *tree, size_t node);

static uint32_t
key_function(const struct keying *keying, const struct function_tree *tree, size_t node)
{
    (void)keying;
    return tree->functions.items[node];
}

// A call into the function counts for its caller. The last key is the thread's entry.
static uint32_t
key_caller(const struct keying *keying, const struct function_tree *tree, size_t node)
{
    if (node == 0 || tree->functions.items[node] != keying->function) {
        return REC_NONE;
    }
    uint32_t caller = tree->functions.items[tree->tree.nodes.items[node].parent];
    return caller != REC_NONE ? caller : (uint32_t)keying->code->origins.len;
}

static uint32_t
key_callee(const struct keying *keying, const struct function_tree *tree, size_t node)
{
    bool is_called =
        node != 0 && tree->functions.items[tree->tree.nodes.items[node].parent] == keying->function;
    return is_called ? tree->functions.items[node] : REC_NONE;
}

// Lines are of one side only: two builds number them differently.
static uint32_t
key_location(const struct keying *keying, const struct function_tree *tree, size_t node)
{
    bool is_own = node != 0 && tree->functions.items[node] == keying->function;
    return is_own ? tree->tree.nodes.items[node].location : REC_NONE;
}

static MUST_USE enum err add_up_by(const struct function_tree *tree,
                                   node_key *key,
                                   const struct keying *keying,
                                   size_t key_count,
                                   struct keyed_costs *out)
{
    CLEANUP(u32_vec_release) struct u32_vec keys = {0};
    TRY(u32_vec_resize(&keys, tree->tree.nodes.len));
    for (size_t i = 0; i < keys.len; i++) {
        keys.items[i] = key(keying, tree, i);
    }
    return keyed_costs_build(&tree->tree, &keys, key_count, out);
}

// Put the function's own allocations among its callees, under the last key.
static void
add_own(const struct function_tree *tree, const struct keying *keying, struct keyed_costs *callees)
{
    struct costs *own = &callees->inclusive.items[callees->inclusive.len - 1];
    for (size_t i = 1; i < tree->functions.len; i++) {
        if (tree->functions.items[i] == keying->function) {
            costs_add(own, tree_costs_self(&tree->tree.costs, i));
        }
    }
}

enum err function_costs_build(const struct function_trees *trees,
                              enum function_key by,
                              uint32_t function,
                              struct function_costs *out)
{
    static node_key *const keys[] = {[BY_FUNCTION] = key_function,
                                     [BY_CALLER] = key_caller,
                                     [BY_CALLEE] = key_callee,
                                     [BY_LOCATION] = key_location};
    CLEANUP(function_costs_release) struct function_costs costs = {0};
    const struct keying keying = {.function = function, .code = trees->code};
    size_t sides = by == BY_LOCATION ? 1 : trees->count;
    size_t key_count = by == BY_LOCATION ? trees->code->profiles[SIDE_NEW]->code.locations.len
                                         : trees->code->origins.len + 1;
    for (size_t side = 0; side < sides; side++) {
        TRY(add_up_by(&trees->sides[side], keys[by], &keying, key_count, &costs.sides[side]));
        if (by == BY_CALLEE) {
            add_own(&trees->sides[side], &keying, &costs.sides[side]);
        }
    }
    *out = TAKE(costs);
    return ERR_OK;
}

bool function_costs_have(const struct function_costs *costs, uint32_t key)
{
    for (size_t side = 0; side < SIDE_COUNT; side++) {
        const struct costs_vec *inclusive = &costs->sides[side].inclusive;
        if (key < inclusive->len && costs_any(&inclusive->items[key])) {
            return true;
        }
    }
    return false;
}

void function_costs_release(struct function_costs *costs)
{
    keyed_costs_release(&costs->sides[SIDE_NEW]);
    keyed_costs_release(&costs->sides[SIDE_OLD]);
}

static int compare_keys(const void *left, const void *right)
{
    const struct ranked_key *a = left;
    const struct ranked_key *b = right;
    return order_u64(b->score, a->score) ?: order_u64(a->key, b->key);
}

static uint64_t value_of(const struct costs_vec *costs, uint32_t key, enum cost cost)
{
    return key < costs->len ? costs_get(&costs->items[key], cost) : 0;
}

enum err function_costs_rank(const struct function_costs *costs,
                             bool by_self,
                             enum cost cost,
                             enum side_score score,
                             struct ranked_key_vec *out)
{
    const struct keyed_costs *new = &costs->sides[SIDE_NEW];
    const struct keyed_costs *old = &costs->sides[SIDE_OLD];
    for (uint32_t key = 0; key < new->inclusive.len; key++) {
        if (!function_costs_have(costs, key)) {
            continue;
        }
        uint64_t new_value = value_of(by_self ? &new->self : &new->inclusive, key, cost);
        uint64_t old_value = value_of(by_self ? &old->self : &old->inclusive, key, cost);
        struct ranked_key ranked = {key, side_score_of(score, new_value, old_value)};
        TRY(ranked_key_vec_push(out, ranked));
    }
    ranked_key_vec_sort(out, compare_keys);
    return ERR_OK;
}
