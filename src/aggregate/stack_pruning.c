// SPDX-License-Identifier: MIT
#include "aggregate/stack_pruning.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

DEFINE_VEC(float_vec, float);
DEFINE_VEC(byte_vec, uint8_t);

#define WEIGHT_MAX 4.0F // of all rows together

enum node_mark {
    NODE_IN_USE = 1 << 0, // kept in any case
    NODE_KEPT = 1 << 1,
    NODE_POINT = 1 << 2, // stacks are merged below it
};

// A decision in the making. Each vector has an item for each node or frame.
struct pruning {
    struct aggregator *aggregator;
    struct float_vec own;    // weight of the node's rows
    struct float_vec passed; // weight of merged stacks below the node that has no NODE_POINT yet
    struct float_vec leaves; // of each frame, as the innermost one of merged stacks
    struct byte_vec marks;
    struct u32_vec points; // the nearest NODE_POINT: the node itself or one of its callers
    struct u64_vec seen;   // bits: which merged stacks are there, by hash
    float threshold;
};

static void pruning_release(struct pruning *p)
{
    float_vec_release(&p->own);
    float_vec_release(&p->passed);
    float_vec_release(&p->leaves);
    byte_vec_release(&p->marks);
    u32_vec_release(&p->points);
    u64_vec_release(&p->seen);
}

static const struct rec_node *node_at(const struct pruning *p, size_t node)
{
    return p->aggregator->stacks.nodes.items + node;
}

static float share_of_whole(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (float)part / (float)whole;
}

static float weight_of(const struct aggregator *aggregator, const struct rec_row *row)
{
    const struct heap_totals *totals = &aggregator->totals;
    return share_of_whole(row->allocations, totals->sums.allocations) +
           share_of_whole(row->allocated_bytes, totals->sums.allocated_bytes) +
           share_of_whole(row->peak_bytes, totals->peak_bytes) +
           share_of_whole(row->allocated_bytes - row->freed_bytes,
                          totals->sums.allocated_bytes - totals->sums.freed_bytes);
}

static void use_lane_nodes(struct pruning *p, const struct stack_slots_vec *lanes)
{
    for (size_t i = 0; i < lanes->len; i++) {
        const struct u32_vec *nodes = lanes->items[i].nodes;
        for (size_t k = 0; k < nodes->len; k++) {
            if (nodes->items[k] != REC_NONE) {
                p->marks.items[nodes->items[k]] |= NODE_IN_USE;
            }
        }
    }
}

// Mark what the other tables use, and all callers. Return the number of nodes in use.
static size_t use_nodes(struct pruning *p)
{
    const struct aggregator *aggregator = p->aggregator;
    size_t count = 0;
    for (size_t i = 0; i < aggregator->mappings.len; i++) {
        p->marks.items[aggregator->mappings.items[i].node] |= NODE_IN_USE;
    }
    for (size_t i = 0; i < aggregator->adhoc.len; i++) {
        p->marks.items[aggregator->adhoc.items[i].node] |= NODE_IN_USE;
    }
    for (size_t i = p->marks.len - 1; i > 0; i--) {
        if (p->marks.items[i] != 0) {
            p->marks.items[node_at(p, i)->parent] |= NODE_IN_USE;
            count++;
        }
    }
    return count;
}

static enum err
pruning_init(struct pruning *p, struct aggregator *aggregator, const struct stack_slots_vec *lanes)
{
    const struct stack_table *stacks = &aggregator->stacks;
    const struct row_table *rows = &aggregator->totals.rows;
    *p = (struct pruning){.aggregator = aggregator};
    TRY(float_vec_resize(&p->own, stacks->nodes.len));
    TRY(float_vec_resize(&p->passed, stacks->nodes.len));
    TRY(float_vec_resize(&p->leaves, stacks->frames.len));
    TRY(byte_vec_resize(&p->marks, stacks->nodes.len));
    TRY(u32_vec_resize(&p->points, stacks->nodes.len));
    TRY(u64_vec_resize(&p->seen, rows->rows.len / 8 + 1));
    for (size_t i = 0; i < rows->rows.len; i++) {
        const struct rec_row *row = rows->rows.items + i;
        p->own.items[row->node] += weight_of(aggregator, row);
    }
    use_lane_nodes(p, lanes);
    if (use_nodes(p) > aggregator->budget.entries_max / 4) { // too many lanes: merge theirs, too
        memset(p->marks.items, 0, p->marks.len);
        (void)use_nodes(p);
    }
    return ERR_OK;
}

// Decide which nodes stay, from the innermost ones outwards.
static void mark_kept(struct pruning *p)
{
    memset(p->passed.items, 0, p->passed.len * sizeof(float));
    for (size_t i = 0; i < p->marks.len; i++) {
        p->marks.items[i] &= NODE_IN_USE;
    }
    for (size_t i = p->marks.len - 1; i > 0; i--) {
        uint8_t *mark = p->marks.items + i;
        const uint32_t parent = node_at(p, i)->parent;
        const float own = p->own.items[i];
        const float passed = p->passed.items[i];
        bool is_kept = (*mark & (NODE_IN_USE | NODE_KEPT)) != 0;
        const bool is_point = passed >= p->threshold ||
                              (!is_kept && own < p->threshold && own + passed >= p->threshold);
        is_kept = is_kept || is_point || own >= p->threshold;
        *mark |= (is_kept ? NODE_KEPT : 0) | (is_point ? NODE_POINT : 0);
        p->passed.items[parent] += is_point ? 0 : is_kept ? passed : own + passed;
        p->marks.items[parent] |= is_kept ? NODE_KEPT : 0;
    }
    p->marks.items[0] = NODE_KEPT | NODE_POINT;
}

// Find the point of each node. Return the number of nodes that stay.
static size_t find_points(struct pruning *p)
{
    size_t kept = 1;
    p->points.items[0] = 0;
    for (size_t i = 1; i < p->marks.len; i++) {
        const uint8_t mark = p->marks.items[i];
        p->points.items[i] =
            (mark & NODE_POINT) != 0 ? (uint32_t)i : p->points.items[node_at(p, i)->parent];
        kept += (mark & NODE_KEPT) != 0;
    }
    return kept;
}

static bool is_merged(const struct pruning *p, uint32_t node)
{
    return (p->marks.items[node] & NODE_KEPT) == 0;
}

static void weigh_leaves(struct pruning *p)
{
    const struct rec_row_vec *rows = &p->aggregator->totals.rows.rows;
    memset(p->leaves.items, 0, p->leaves.len * sizeof(float));
    for (size_t i = 0; i < rows->len; i++) {
        const uint32_t node = rows->items[i].node;
        if (is_merged(p, node)) {
            p->leaves.items[node_at(p, node)->frame] += weight_of(p->aggregator, rows->items + i);
        }
    }
}

// Return the innermost frame that a merged stack keeps, or REC_NONE.
static uint32_t leaf_of(const struct pruning *p, uint32_t node)
{
    const uint32_t frame = node_at(p, node)->frame;
    return p->leaves.items[frame] >= p->threshold ? frame : REC_NONE;
}

// Return whether this hash is new. Two hashes may share a bit, so the answer can be wrong: the
// result is an estimate.
static bool is_first(struct pruning *p, uint64_t hash)
{
    hash = hash_mix(hash);
    uint64_t *word = p->seen.items + hash / 64 % p->seen.len;
    const uint64_t bit = (uint64_t)1 << hash % 64;
    const bool is_new = (*word & bit) == 0;
    *word |= bit;
    return is_new;
}

// Return about how many nodes and rows the threshold leaves.
static uint64_t entries_left(struct pruning *p)
{
    const struct rec_row_vec *rows = &p->aggregator->totals.rows.rows;
    mark_kept(p);
    uint64_t entries = find_points(p);
    weigh_leaves(p);
    memset(p->seen.items, 0, p->seen.len * sizeof(uint64_t));
    for (size_t i = 0; i < rows->len; i++) {
        const struct rec_row *row = rows->items + i;
        if (!is_merged(p, row->node)) {
            entries++;
            continue;
        }
        const uint64_t place = (uint64_t)p->points.items[row->node] << 32 | leaf_of(p, row->node);
        entries += is_first(p, p->points.items[row->node]) + is_first(p, ~place);
        entries += is_first(p, place * 0x9e3779b97f4a7c15ULL + row->thread);
    }
    return entries;
}

// Change the node of a stack that is merged. The new one may be an old one that was not kept.
static enum err move_stack(struct pruning *p, uint32_t *node)
{
    if (!is_merged(p, *node)) {
        return ERR_OK;
    }
    TRY(stack_table_merged(&p->aggregator->stacks, p->points.items[*node], leaf_of(p, *node),
                           node));
    TRY(byte_vec_resize(&p->marks, p->aggregator->stacks.nodes.len));
    for (uint32_t at = *node; is_merged(p, at); at = node_at(p, at)->parent) {
        p->marks.items[at] |= NODE_KEPT;
    }
    return ERR_OK;
}

// Give the stacks that are merged their new nodes, which are added behind the others.
static enum err move_stacks(struct pruning *p, const struct stack_slots_vec *lanes)
{
    struct rec_row_vec *rows = &p->aggregator->totals.rows.rows;
    for (size_t i = 0; i < rows->len; i++) {
        p->aggregator->budget.merged_stacks += is_merged(p, rows->items[i].node);
        TRY(move_stack(p, &rows->items[i].node));
    }
    for (size_t i = 0; i < lanes->len; i++) {
        struct u32_vec *nodes = lanes->items[i].nodes;
        for (size_t k = 0; k < nodes->len; k++) {
            if (nodes->items[k] != REC_NONE) {
                TRY(move_stack(p, nodes->items + k));
            }
        }
    }
    return ERR_OK;
}

// Give the names of kept nodes their new numbers, and drop the others.
static enum err renumber_names(struct map_u64 *names, const uint32_t *places)
{
    struct map_u64 kept = {0};
    size_t position = 0;
    uint64_t name;
    uint32_t node;
    enum err err = ERR_OK;
    while (err == ERR_OK && map_u64_next(names, &position, &name, &node)) {
        err = places[node] != REC_NONE ? map_u64_put(&kept, name, places[node]) : ERR_OK;
    }
    map_u64_release(names);
    *names = kept;
    return err;
}

static enum err renumber_nodes(struct aggregator *aggregator,
                               const struct stack_slots_vec *lanes,
                               const uint32_t *places)
{
    struct rec_row_vec *rows = &aggregator->totals.rows.rows;
    for (size_t i = 0; i < rows->len; i++) {
        rows->items[i].node = places[rows->items[i].node];
    }
    for (size_t i = 0; i < lanes->len; i++) {
        struct u32_vec *nodes = lanes->items[i].nodes;
        for (size_t k = 0; k < nodes->len; k++) {
            nodes->items[k] = nodes->items[k] != REC_NONE ? places[nodes->items[k]] : REC_NONE;
        }
    }
    for (size_t i = 0; i < aggregator->processes.len; i++) {
        TRY(renumber_names(&aggregator->processes.items[i]->nodes_by_name, places));
    }
    TRY(aggregator_mapping_renumber(aggregator, places));
    return aggregator_adhoc_renumber(aggregator, places);
}

static enum err join_rows(struct aggregator *aggregator, const struct stack_slots_vec *lanes)
{
    CLEANUP(u32_vec_release) struct u32_vec numbers = {0};
    TRY(u32_vec_resize(&numbers, aggregator->totals.rows.rows.len));
    TRY(row_table_join(&aggregator->totals.rows, numbers.items));
    TRY(realloc_table_renumber(&aggregator->reallocs, numbers.items));
    for (size_t i = 0; i < lanes->len; i++) {
        struct u32_vec *rows = lanes->items[i].rows;
        for (size_t k = 0; rows != NULL && k < rows->len; k++) {
            const uint32_t row = rows->items[k];
            rows->items[k] = row != REC_NONE ? numbers.items[row] : REC_NONE;
        }
    }
    return ERR_OK;
}

static enum err merge_stacks(struct aggregator *aggregator, const struct stack_slots_vec *lanes)
{
    CLEANUP(pruning_release) struct pruning p;
    const uint64_t wanted = aggregator->budget.entries_max / 2;
    TRY(pruning_init(&p, aggregator, lanes));
    p.threshold = WEIGHT_MAX / (float)(wanted + 1);
    while (entries_left(&p) > wanted && p.threshold <= WEIGHT_MAX) {
        p.threshold *= 2;
    }
    TRY(move_stacks(&p, lanes));
    TRY(u32_vec_resize(&p.points, p.marks.len));
    for (uint32_t i = 0; i < p.marks.len; i++) { // from now on the places of kept nodes
        p.points.items[i] = is_merged(&p, i) ? REC_NONE : 0;
    }
    TRY(stack_table_keep(&aggregator->stacks, p.points.items));
    TRY(renumber_nodes(aggregator, lanes, p.points.items));
    return join_rows(aggregator, lanes);
}

enum err stack_pruning_run(struct aggregator *aggregator, const struct stack_slots_vec *lanes)
{
    TRY(aggregator_complete_rows(aggregator));
    TRY(merge_stacks(aggregator, lanes));
    (void)malloc_trim(0); // the budget counts free memory, too
    memory_budget_merged(&aggregator->budget, aggregator_entries(aggregator));
    return ERR_OK;
}
