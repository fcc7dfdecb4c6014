// SPDX-License-Identifier: MIT
#include "profile/calls/stack_counts.h"

#include "base/compiler.h"
#include "host/containers/map_u64.h"

enum {
    ANY = COST_COUNT, // the count of all stacks, after those by cost
    COUNTS_PER_SITE,
};

// Numbers of the recording's nodes: equal for nodes whose stacks have the same locations.
struct numbers {
    struct map_u64 known;   // (number of the parent, location, inlined) -> number
    struct u32_vec by_node; // 0: no locations
    uint32_t count;
};

static void numbers_release(struct numbers *numbers)
{
    map_u64_release(&numbers->known);
    u32_vec_release(&numbers->by_node);
}

static MUST_USE enum err
number_node(struct numbers *numbers, const struct selection *selection, uint32_t node)
{
    const struct rec_node *nodes = selection->profile->recording.nodes;
    const struct code_chain chain = selection_chain(selection, node);
    uint32_t at = numbers->by_node.items[nodes[node].parent];
    for (size_t i = chain.count; i-- > 0;) {
        const uint64_t inlined = i + 1 < chain.count;
        const uint64_t key = (uint64_t)at << 32 | (uint64_t)chain.locations[i] << 1 | inlined;
        if (chain.locations[i] >= UINT32_MAX / 2 || numbers->count == UINT32_MAX) {
            return ERR_LIMIT;
        }
        TRY(map_u64_number(&numbers->known, key, numbers->count + 1, &at));
        numbers->count += at > numbers->count;
    }
    numbers->by_node.items[node] = at;
    return ERR_OK;
}

static MUST_USE enum err number_nodes(struct numbers *numbers, const struct selection *selection)
{
    const size_t count = selection->profile->recording.node_count;
    TRY(u32_vec_resize(&numbers->by_node, count));
    for (uint32_t i = 1; i < count; i++) {
        TRY(cancel_step(selection->cancel));
        TRY(number_node(numbers, selection, i));
    }
    return ERR_OK;
}

static uint32_t costs_mask(const struct costs *costs)
{
    uint32_t mask = 1U << ANY;
    for (int cost = 0; cost < COST_COUNT; cost++) {
        mask |= (uint32_t)(costs->values[cost] > 0) << cost;
    }
    return mask;
}

static MUST_USE enum err build(const struct selection *selection, struct stack_counts *out)
{
    const struct recording *recording = &selection->profile->recording;
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    CLEANUP(numbers_release) struct numbers numbers = {0};
    CLEANUP(u32_vec_release) struct u32_vec seen = {0}; // by number: the counts that have it
    CLEANUP(stack_counts_release) struct stack_counts counts = {0};
    TRY(call_sites_build_alone(selection, &sites));
    TRY(number_nodes(&numbers, selection));
    TRY(u32_vec_resize(&seen, (size_t)numbers.count + 1));
    TRY(u32_vec_resize(&counts.counts, sites.sites.len * COUNTS_PER_SITE));
    for (size_t i = 0; i < selection->rows.len; i++) {
        TRY(cancel_step(selection->cancel));
        const uint32_t node = recording->rows[selection->rows.items[i]].node;
        const struct costs costs = selection_costs(selection, i);
        uint32_t *own = counts.counts.items + (size_t)sites.row_sites.items[i] * COUNTS_PER_SITE;
        uint32_t *stack = &seen.items[numbers.by_node.items[node]];
        uint32_t fresh = costs_mask(&costs) & ~*stack;
        *stack |= fresh;
        for (; fresh != 0; fresh &= fresh - 1) {
            own[__builtin_ctz(fresh)]++;
        }
    }
    *out = TAKE(counts);
    return ERR_OK;
}

DEFINE_KEPT_KIND(counts_kind,
                 struct stack_counts,
                 build(source, out),
                 u32_vec_bytes(&((const struct stack_counts *)result)->counts),
                 stack_counts_release(result));

enum err stack_counts_build(const struct selection *selection, struct stack_counts *out)
{
    return kept_results_get(selection->kept, &counts_kind, selection, out, &out->is_lent);
}

void stack_counts_release(struct stack_counts *counts)
{
    if (counts->is_lent) {
        *counts = (struct stack_counts){0};
    }
    u32_vec_release(&counts->counts);
}
