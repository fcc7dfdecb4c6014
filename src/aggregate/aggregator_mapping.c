// SPDX-License-Identifier: MIT
#include "aggregate/aggregator_mapping.h"

#include "aggregate/aggregator.h"
#include "host/memory/page_size.h"

enum {
    KIND_BITS = 3,
    ADDRESS_BITS = 57, // the user half under five-level paging, and its end
};

static uint64_t key_of(uint32_t node, uint32_t kind)
{
    return (uint64_t)node << KIND_BITS | kind;
}

static enum err row_of(struct aggregator *aggregator,
                       struct aggregator_process *process,
                       uint32_t node,
                       uint32_t kind,
                       uint32_t *out)
{
    TRY(rec_mapping_vec_reserve(&aggregator->mappings, 1));
    TRY(map_u64_number(&process->mapping_rows, key_of(node, kind), aggregator->mappings.len, out));
    if (*out == aggregator->mappings.len) {
        aggregator->mappings.items[aggregator->mappings.len++] =
            (struct rec_mapping){.process = process->index, .node = node, .kind = kind};
    }
    return ERR_OK;
}

// Called by mapping_map: the row has lost so many bytes.
static void take_from_row(void *context, uint32_t row, uint64_t bytes)
{
    if (row >= MAPPING_ROW_HEAPS) {
        return;
    }
    struct aggregator *aggregator = context;
    struct rec_mapping *mapping = aggregator->mappings.items + row;
    mapping->unmapped_bytes += bytes;
    aggregator->processes.items[mapping->process]->mapped_bytes -= bytes;
}

static void give_to_row(struct aggregator *aggregator, uint32_t row, uint64_t bytes)
{
    struct rec_mapping *mapping = aggregator->mappings.items + row;
    mapping->mapped_bytes += bytes;
    aggregator->processes.items[mapping->process]->mapped_bytes += bytes;
}

static void note_peak(struct aggregator *aggregator, uint32_t row)
{
    struct rec_mapping *mapping = aggregator->mappings.items + row;
    const uint64_t live = mapping->mapped_bytes - mapping->unmapped_bytes;
    if (live > mapping->own_peak_bytes) {
        mapping->own_peak_bytes = live;
    }
}

// Compute the pages of [address, + size). A break may be inside a page; the page belongs to the
// earlier owner.
static enum err
range_of(uint64_t address, uint64_t size_bytes, uint64_t number, struct mapped_range *out)
{
    const uint64_t end_max = (uint64_t)1 << ADDRESS_BITS;
    if (address > end_max || size_bytes > end_max - address) {
        return ERR_CORRUPT;
    }
    *out = (struct mapped_range){.start = page_end(address),
                                 .end = page_end(address + size_bytes),
                                 .number = number,
                                 .row = REC_NONE};
    return ERR_OK;
}

static bool has_row(const struct mapped_range *range)
{
    return range->row < MAPPING_ROW_HEAPS;
}

// Return the kind of the mapping at `address`. If it is unknown, private memory is the safest
// guess.
static uint32_t kind_at(const struct aggregator *aggregator,
                        const struct aggregator_process *process,
                        uint64_t address)
{
    const struct mapped_range *range = mapping_map_at(&process->mapped, address);
    if (range == NULL || range->start > address || !has_row(range)) {
        return REC_MAPPING_ANONYMOUS;
    }
    return aggregator->mappings.items[range->row].kind;
}

static enum err set_range(struct aggregator *aggregator,
                          struct aggregator_process *process,
                          const struct mapped_range *range)
{
    const struct mapping_sink sink = {.left = take_from_row, .context = aggregator};
    return range->start < range->end ? mapping_map_set(&process->mapped, range, &sink) : ERR_OK;
}

// Return the row of what the allocator has mapped whose code is the leaf of `node`.
static uint32_t heap_row(const struct aggregator *aggregator, uint32_t node)
{
    const struct stack_table *stacks = &aggregator->stacks;
    const uint32_t frame = node != REC_NONE ? stacks->nodes.items[node].frame : REC_NONE;
    const uint32_t module = frame != REC_NONE ? stacks->frames.items[frame].module : REC_NONE;
    return module < MAPPING_ROW_HEAP - MAPPING_ROW_HEAPS ? MAPPING_ROW_HEAPS + module
                                                         : MAPPING_ROW_HEAP;
}

enum err aggregator_mapping(struct aggregator *aggregator,
                            struct aggregator_process *process,
                            const struct wire_mapping *change,
                            uint32_t node)
{
    if (change->size_bytes != 0 &&
        (change->kind < REC_MAPPING_ANONYMOUS || change->kind > WIRE_MAPPING_HEAP)) {
        return ERR_CORRUPT;
    }
    struct mapped_range old;
    struct mapped_range now;
    TRY(range_of(change->old_address, change->old_size_bytes, change->old_number, &old));
    TRY(range_of(change->address, change->size_bytes, change->number, &now));
    old.since_ms = now.since_ms = aggregator->totals.now_ms;
    const uint32_t kind = change->kind == WIRE_MAPPING_SAME
                              ? kind_at(aggregator, process, change->old_address)
                              : change->kind;
    TRY(set_range(aggregator, process, &old));
    if (now.start == now.end) {
        return ERR_OK;
    }
    if (kind == WIRE_MAPPING_HEAP) {
        now.row = heap_row(aggregator, node);
        return set_range(aggregator, process, &now);
    }
    TRY(row_of(aggregator, process, node, kind, &now.row));
    aggregator->mappings.items[now.row].mappings++;
    give_to_row(aggregator, now.row, now.end - now.start);
    enum err err = set_range(aggregator, process, &now);
    if (err != ERR_OK) {
        take_from_row(aggregator, now.row, now.end - now.start);
    }
    note_peak(aggregator, now.row);
    return err;
}

enum err aggregator_mapping_renumber(struct aggregator *aggregator, const uint32_t *nodes)
{
    for (size_t i = 0; i < aggregator->processes.len; i++) {
        map_u64_clear(&aggregator->processes.items[i]->mapping_rows);
    }
    for (size_t i = 0; i < aggregator->mappings.len; i++) {
        struct rec_mapping *mapping = aggregator->mappings.items + i;
        struct aggregator_process *process = aggregator->processes.items[mapping->process];
        mapping->node = nodes[mapping->node];
        if (!process->is_ended) {
            TRY(map_u64_put(&process->mapping_rows, key_of(mapping->node, mapping->kind),
                            (uint32_t)i));
        }
    }
    return ERR_OK;
}

enum err aggregator_mapping_inherit(struct aggregator *aggregator,
                                    struct aggregator_process *child,
                                    const struct aggregator_process *parent)
{
    for (size_t i = 0; i < parent->mapped.ranges.len; i++) {
        struct mapped_range range = parent->mapped.ranges.items[i];
        if (range.row == REC_NONE) {
            continue;
        }
        range.number = 0; // the child numbers anew
        if (!has_row(&range)) {
            TRY(mapped_range_vec_push(&child->mapped.ranges, range));
            continue;
        }
        const struct rec_mapping from = aggregator->mappings.items[range.row];
        TRY(row_of(aggregator, child, from.node, from.kind, &range.row));
        TRY(mapped_range_vec_push(&child->mapped.ranges, range));
        give_to_row(aggregator, range.row, range.end - range.start);
        note_peak(aggregator, range.row);
    }
    return ERR_OK;
}
