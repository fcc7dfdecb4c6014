// SPDX-License-Identifier: MIT
#include "profile/compare/renames.h"

#include "base/compiler.h"
#include "base/hash.h"
#include "host/containers/map_u64.h"
#include "profile/accuracy/sampling.h"
#include "profile/calls/tree_view.h"

enum {
    ROUNDS_MAX = 16, // of callers above each other that were all renamed
};

// What is known of each function of the union.
struct marks {
    struct flag_vec sides; // bit n: enum side n has it
    struct u64_vec keys;   // of its callers and figures; 0: not comparable
};

static void marks_release(struct marks *marks)
{
    flag_vec_release(&marks->sides);
    u64_vec_release(&marks->keys);
}

static bool is_on_both(uint8_t sides)
{
    return sides == (1U << SIDE_NEW | 1U << SIDE_OLD);
}

static MUST_USE enum err mark_sides(const struct tree_view *tree, struct flag_vec *sides)
{
    TRY(flag_vec_resize(sides, tree->code->origins.len));
    for (uint32_t i = 1; i < tree->nodes.len; i++) {
        for (size_t side = 0; side < SIDE_COUNT; side++) {
            const bool has = costs_any(tree_costs_total(&tree->costs[side], i));
            sides->items[tree->functions.items[i]] |= (uint8_t)(has << side);
        }
    }
    return ERR_OK;
}

// Add up the places of each function below callers that both recordings have. The sum does not
// depend on the order of the nodes.
static MUST_USE enum err mark_keys(const struct tree_view *tree, struct marks *marks)
{
    TRY(u64_vec_resize(&marks->keys, tree->code->origins.len));
    for (uint32_t i = 1; i < tree->nodes.len; i++) {
        const uint32_t function = tree->functions.items[i];
        const uint32_t parent = tree->nodes.items[i].parent;
        const uint8_t sides = marks->sides.items[function];
        const bool has_caller =
            parent == 0 || is_on_both(marks->sides.items[tree->functions.items[parent]]);
        if (sides == 0 || is_on_both(sides) || !has_caller) {
            continue;
        }
        const enum side side = sides == 1U << SIDE_NEW ? SIDE_NEW : SIDE_OLD;
        const struct costs *total = tree_costs_total(&tree->costs[side], i);
        uint64_t key = hash_mix(parent + (uint64_t)1);
        key = hash_mix(key ^ costs_get(total, COST_ALLOCATIONS));
        key = hash_mix(key ^ costs_get(total, COST_ALLOCATED_BYTES));
        marks->keys.items[function] += key;
    }
    return ERR_OK;
}

#define SEVERAL REC_NONE

// By key: the only function of that side alone, or SEVERAL.
static MUST_USE enum err index_side(const struct marks *marks, enum side side, struct map_u64 *out)
{
    for (uint32_t i = 0; i < marks->keys.len; i++) {
        if (marks->sides.items[i] == 1U << side && marks->keys.items[i] != 0) {
            const bool is_known = map_u64_find(out, marks->keys.items[i]) != NULL;
            TRY(map_u64_put(out, marks->keys.items[i], is_known ? SEVERAL : i));
        }
    }
    return ERR_OK;
}

// Unite the pairs that one look at the tree finds. *found is their number.
static MUST_USE enum err unite_pairs(struct code_union *code,
                                     const struct selection *new,
                                     const struct selection *old,
                                     size_t *found)
{
    static const struct tree_view_spec spec = {.direction = CALL_TREE_TOP_DOWN,
                                               .key = CALL_TREE_BY_FUNCTION};
    CLEANUP(tree_view_release) struct tree_view tree = {0};
    CLEANUP(marks_release) struct marks marks = {0};
    CLEANUP(map_u64_release) struct map_u64 of_new = {0};
    CLEANUP(map_u64_release) struct map_u64 of_old = {0};
    *found = 0;
    TRY(tree_view_build(code, new, old, spec, &tree));
    TRY(mark_sides(&tree, &marks.sides));
    TRY(mark_keys(&tree, &marks));
    TRY(index_side(&marks, SIDE_NEW, &of_new));
    TRY(index_side(&marks, SIDE_OLD, &of_old));
    for (uint32_t i = 0; i < marks.keys.len; i++) {
        const uint64_t key = marks.keys.items[i];
        uint32_t to = SEVERAL;
        uint32_t from = SEVERAL;
        if (key != 0 && map_u64_get(&of_new, key, &to) && to == i &&
            map_u64_get(&of_old, key, &from) && from != SEVERAL) {
            TRY(code_union_rename(code, from, to));
            (*found)++;
        }
    }
    return ERR_OK;
}

static bool has_exact_counts(const struct selection *selection)
{
    return !sampling_of(&selection->profile->recording).is_sampled &&
           selection_knows(selection, COST_ALLOCATIONS);
}

enum err renames_find(struct code_union *code)
{
    CLEANUP(selection_release) struct selection new = {0};
    CLEANUP(selection_release) struct selection old = {0};
    struct err_info info; // without a filter only memory can lack
    TRY(profile_select(code->profiles[SIDE_NEW], NULL, &new, &info));
    TRY(profile_select(code->profiles[SIDE_OLD], NULL, &old, &info));
    size_t found = has_exact_counts(&new) && has_exact_counts(&old);
    for (size_t round = 0; found > 0 && round < ROUNDS_MAX; round++) {
        TRY(unite_pairs(code, &new, &old, &found));
    }
    return ERR_OK;
}
