// SPDX-License-Identifier: MIT
// recording_verify: see recording_verify.h.
#include "recording/read/recording_verify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/order.h"
#include "recording/format/schema.h"

enum {
    MAX_FINDINGS_OF_A_CHECK = 5
};

struct verification {
    const struct recording *r;
    struct recording_findings *out;
    unsigned in_check; // number of findings of the current check
    enum err err;      // first failure of the verification itself
};

static void
find(struct verification *v, enum recording_invariant invariant, const char *format, ...)
    PRINTF_LIKE(3, 4);

static void
find(struct verification *v, enum recording_invariant invariant, const char *format, ...)
{
    struct recording_finding finding = {.invariant = invariant};
    v->out->counts[invariant]++;
    v->in_check++;
    if (v->in_check > MAX_FINDINGS_OF_A_CHECK || v->err != ERR_OK) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(finding.text, sizeof(finding.text), format, arguments); // a truncated text
                                                                            // suffices
    va_end(arguments);
    v->err = finding_vec_push(&v->out->items, finding);
}

static void check_index(struct verification *v,
                        const char *table,
                        size_t entry,
                        const char *what,
                        uint64_t index,
                        uint64_t count)
{
    if (index >= count) {
        find(v, INVARIANT_INDEX, "%s[%zu]: there is no %s %" PRIu64, table, entry, what, index);
    }
}

static bool strings_are_sound(const struct rec_strings *strings)
{
    return strings->count > 0 && strings->data_bytes > 0 &&
           strings->data[strings->data_bytes - 1] == '\0' &&
           strings->offsets[0] < strings->data_bytes && strings->data[strings->offsets[0]] == '\0';
}

static void check_strings(struct verification *v)
{
    const struct rec_strings *strings = &v->r->strings;
    if (!strings_are_sound(strings)) {
        find(v, INVARIANT_INDEX, "the strings lack the empty one, or an end");
        return;
    }
    for (uint32_t i = 0; i < strings->count; i++) {
        check_index(v, "strings", i, "text at offset", strings->offsets[i], strings->data_bytes);
    }
}

static void check_entry_strings(struct verification *v,
                                const struct rec_table *table,
                                size_t i,
                                const void *entry)
{
    for (size_t j = 0; j < table->column_count; j++) {
        if (table->columns[j].kind == REC_COLUMN_STRING) {
            check_index(v, table->name, i, "string", rec_column_get(&table->columns[j], entry),
                        v->r->strings.count);
        }
    }
}

static void check_string_references(struct verification *v)
{
    for (size_t t = 0; t < REC_TABLE_COUNT; t++) {
        const struct rec_table *table = &rec_tables[t];
        if (table->columns == NULL) {
            continue;
        }
        const char *entries = rec_table_items(table, v->r);
        for (size_t i = 0; i < rec_table_count(table, v->r); i++) {
            check_entry_strings(v, table, i, entries + i * table->entry_bytes);
        }
    }
}

static void check_processes(struct verification *v)
{
    const struct recording *r = v->r;
    for (size_t i = 0; i < r->process_count; i++) {
        uint32_t at = r->processes[i].parent;
        // A process with more ancestors than there are processes is in a circle. Real chains of
        // processes are short. The bound keeps a hostile chain from quadratic time.
        size_t steps = 0;
        while (at < r->process_count && steps <= r->process_count && steps < 10000) {
            at = r->processes[at].parent;
            steps++;
        }
        if (steps > r->process_count) {
            find(v, INVARIANT_TREE, "processes[%zu] is its own ancestor", i);
        } else if (at != REC_NONE && at >= r->process_count) {
            check_index(v, "processes", i, "process", at, r->process_count);
        }
    }
    for (size_t i = 0; i < r->thread_count; i++) {
        check_index(v, "threads", i, "process", r->threads[i].process, r->process_count);
    }
    for (size_t i = 0; i < r->rss_sample_count; i++) {
        check_index(v, "rss_samples", i, "process", r->rss_samples[i].process, r->process_count);
    }
}

static void check_blocks(struct verification *v)
{
    const struct recording *r = v->r;
    for (size_t i = 0; i < r->block_count; i++) {
        const struct rec_block *block = &r->blocks[i];
        const bool is_live = (block->flags & REC_BLOCK_END) != 0;
        check_index(v, "blocks", i, "row", block->row, r->row_count);
        if (block->flags == 0 || block->flags > (REC_BLOCK_END | REC_BLOCK_PEAK) ||
            (is_live ? block->freed_ms != 0 : block->freed_ms < block->born_ms)) {
            find(v, INVARIANT_COST, "blocks[%zu] contradicts itself", i);
        }
        if (i > 0 && block[-1].row > block->row) {
            find(v, INVARIANT_ORDER, "blocks[%zu] is out of order", i);
        }
    }
}

// Check that no row lists more blocks than it has.
static void check_block_sums(struct verification *v)
{
    const struct recording *r = v->r;
    for (size_t at = 0; at < r->block_count;) {
        const uint32_t row = r->blocks[at].row;
        uint64_t at_end = 0;
        uint64_t at_peak = 0;
        for (; at < r->block_count && r->blocks[at].row == row; at++) {
            at_end += (r->blocks[at].flags & REC_BLOCK_END) != 0;
            at_peak += (r->blocks[at].flags & REC_BLOCK_PEAK) != 0;
        }
        const struct rec_row *costs = &r->rows[row];
        if (at_end > costs->allocations - costs->frees || at_peak > costs->peak_blocks) {
            find(v, INVARIANT_SUM, "rows[%" PRIu32 "] lists more blocks than it has", row);
        }
    }
}

static void check_marks(struct verification *v)
{
    const struct recording *r = v->r;
    for (size_t i = 0; i < r->mark_count; i++) {
        if (r->marks[i].kind > REC_MARK_PHASE) {
            find(v, INVARIANT_INDEX, "marks[%zu] is of kind %" PRIu32 ", which there is not", i,
                 r->marks[i].kind);
        }
        if (i > 0 && r->marks[i - 1].time_ms > r->marks[i].time_ms) {
            find(v, INVARIANT_ORDER, "marks[%zu] is out of order", i);
        }
    }
}

static void check_frames(struct verification *v)
{
    const struct recording *r = v->r;
    for (size_t i = 0; i < r->frame_count; i++) {
        const struct rec_frame *frame = &r->frames[i];
        if (frame->module != REC_NONE) {
            check_index(v, "frames", i, "module", frame->module, r->module_count);
        }
        uint64_t symbol_end = (uint64_t)frame->symbol_first + frame->symbol_count;
        if (symbol_end > r->symbol_count) {
            check_index(v, "frames", i, "symbol", symbol_end - 1, r->symbol_count);
        }
    }
}

static void check_nodes(struct verification *v)
{
    const struct recording *r = v->r;
    if (r->node_count == 0 || r->nodes[0].parent != REC_NONE || r->nodes[0].frame != REC_NONE) {
        find(v, INVARIANT_TREE, "node 0 is not the root");
    }
    for (size_t i = 1; i < r->node_count; i++) {
        if (r->nodes[i].parent >= i) {
            find(v, INVARIANT_TREE, "nodes[%zu] comes before its parent %" PRIu32, i,
                 r->nodes[i].parent);
        }
        check_index(v, "nodes", i, "frame", r->nodes[i].frame, r->frame_count);
    }
}

static void check_rows(struct verification *v)
{
    const struct recording *r = v->r;
    for (size_t i = 0; i < r->row_count; i++) {
        const struct rec_row *row = &r->rows[i];
        check_index(v, "rows", i, "thread", row->thread, r->thread_count);
        check_index(v, "rows", i, "node", row->node, r->node_count);
        if (row->frees > row->allocations || row->freed_bytes > row->allocated_bytes) {
            find(v, INVARIANT_COST,
                 "rows[%zu] freed %" PRIu64 " blocks of %" PRIu64 " and %" PRIu64
                 " bytes of %" PRIu64,
                 i, row->frees, row->allocations, row->freed_bytes, row->allocated_bytes);
        }
        // The check does not include frees: with several threads the free of a temporary block may
        // have been paired with another block of its address (docs/accuracy.md).
        if (row->temporary > row->allocations || row->temporary_bytes > row->allocated_bytes) {
            find(v, INVARIANT_COST, "rows[%zu] has more temporary allocations than allocations", i);
        }
    }
}

static int compare_keys(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return order_u64(a, b);
}

static void check_rows_are_unique(struct verification *v)
{
    const struct recording *r = v->r;
    CLEANUP(u64_vec_release) struct u64_vec keys = {0};
    if (u64_vec_resize(&keys, r->row_count) != ERR_OK) {
        v->err = ERR_NO_MEMORY;
        return;
    }
    for (size_t i = 0; i < r->row_count; i++) {
        keys.items[i] = (uint64_t)r->rows[i].thread << 32 | r->rows[i].node;
    }
    if (keys.len > 1) {
        qsort(keys.items, keys.len, sizeof(uint64_t), compare_keys);
    }
    for (size_t i = 1; i < keys.len; i++) {
        if (keys.items[i] == keys.items[i - 1]) {
            find(v, INVARIANT_UNIQUE, "thread %u has two rows for node %u",
                 (unsigned)(keys.items[i] >> 32), (unsigned)keys.items[i]);
        }
    }
}

static void check_cells(struct verification *v)
{
    const struct recording *r = v->r;
    for (size_t i = 0; i < r->cell_count; i++) {
        const struct rec_cell *cell = &r->cells[i];
        check_index(v, "cells", i, "row", cell->row, r->row_count);
        check_index(v, "cells", i, "slice", cell->slice, r->slice_count);
        if (i > 0 && (cell[-1].row > cell->row ||
                      (cell[-1].row == cell->row && cell[-1].slice >= cell->slice))) {
            find(v, INVARIANT_ORDER, "cells[%zu] is out of order", i);
        }
    }
    if (r->slice_count > 0 && r->slice_ms == 0) {
        find(v, INVARIANT_COST, "there are slices, but they have no width");
    }
}

static void check_buckets(struct verification *v,
                          const char *table,
                          const struct rec_bucket *buckets,
                          size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct rec_bucket *bucket = &buckets[i];
        check_index(v, table, i, "row", bucket->row, v->r->row_count);
        check_index(v, table, i, "bucket", bucket->bucket, REC_BUCKET_COUNT);
        if (i > 0 && (bucket[-1].row > bucket->row ||
                      (bucket[-1].row == bucket->row && bucket[-1].bucket >= bucket->bucket))) {
            find(v, INVARIANT_ORDER, "%s[%zu] is out of order", table, i);
        }
    }
}

static void check_size_buckets(struct verification *v)
{
    check_buckets(v, "size_buckets", v->r->size_buckets, v->r->size_bucket_count);
}

static void check_lifetime_buckets(struct verification *v)
{
    check_buckets(v, "lifetime_buckets", v->r->lifetime_buckets, v->r->lifetime_bucket_count);
}

static bool cohorts_are_in_order(const struct rec_cohort *a, const struct rec_cohort *b)
{
    uint64_t row_and_birth_a = (uint64_t)a->row << 32 | a->born_slice;
    uint64_t row_and_birth_b = (uint64_t)b->row << 32 | b->born_slice;
    return row_and_birth_a < row_and_birth_b ||
           (row_and_birth_a == row_and_birth_b && a->freed_slice < b->freed_slice);
}

static void check_cohorts(struct verification *v)
{
    const struct recording *r = v->r;
    for (size_t i = 0; i < r->cohort_count; i++) {
        const struct rec_cohort *cohort = &r->cohorts[i];
        check_index(v, "cohorts", i, "row", cohort->row, r->row_count);
        check_index(v, "cohorts", i, "slice", cohort->born_slice, r->slice_count);
        if (cohort->freed_slice != REC_NONE) {
            check_index(v, "cohorts", i, "slice", cohort->freed_slice, r->slice_count);
            if (cohort->freed_slice < cohort->born_slice) {
                find(v, INVARIANT_COST, "cohorts[%zu] was freed before it was born", i);
            }
        }
        if (i > 0 && !cohorts_are_in_order(&cohort[-1], cohort)) {
            find(v, INVARIANT_ORDER, "cohorts[%zu] is out of order", i);
        }
    }
}

static void
check_sum(struct verification *v, const char *what, uint64_t sum, const char *whole, uint64_t want)
{
    if (sum != want) {
        // A sum that wrapped below zero is shown as negative.
        find(v, INVARIANT_SUM, "%s is %" PRId64 ", but %s is %" PRIu64, what, (int64_t)sum, whole,
             want);
    }
}

static void check_totals(struct verification *v)
{
    const struct recording *r = v->r;
    const struct rec_totals *t = &r->totals;
    struct rec_row s = {0};
    for (size_t i = 0; i < r->row_count; i++) {
        const struct rec_row *row = &r->rows[i];
        s.allocations += row->allocations;
        s.allocated_bytes += row->allocated_bytes;
        s.frees += row->frees;
        s.freed_bytes += row->freed_bytes;
        s.temporary += row->temporary;
        s.temporary_bytes += row->temporary_bytes;
        s.peak_bytes += row->peak_bytes;
        s.peak_blocks += row->peak_blocks;
    }
    check_sum(v, "allocations of all rows", s.allocations, "the total", t->allocations);
    check_sum(v, "allocated bytes of all rows", s.allocated_bytes, "the total", t->allocated_bytes);
    check_sum(v, "frees of all rows", s.frees, "the total", t->frees);
    check_sum(v, "freed bytes of all rows", s.freed_bytes, "the total", t->freed_bytes);
    check_sum(v, "temporary allocations of all rows", s.temporary, "the total", t->temporary);
    check_sum(v, "temporary bytes of all rows", s.temporary_bytes, "the total", t->temporary_bytes);
    check_sum(v, "bytes of all rows at the peak", s.peak_bytes, "the peak", t->peak_bytes);
    check_sum(v, "blocks of all rows at the peak", s.peak_blocks, "the total", t->peak_blocks);
}

static void check_row_sum(struct verification *v,
                          size_t row,
                          const char *part,
                          const char *cost,
                          uint64_t sum,
                          uint64_t want)
{
    if (sum != want) {
        find(v, INVARIANT_SUM, "rows[%zu] has %" PRIu64 " %s, its %s have %" PRId64, row, want,
             cost, part, (int64_t)sum);
    }
}

// Check the sums of cells. The cells are sorted here, so one pass serves all rows.
static void check_cell_sums(struct verification *v)
{
    const struct recording *r = v->r;
    size_t at = 0;
    for (size_t i = 0; i < r->row_count && r->cell_count > 0; i++) {
        struct rec_cell s = {0};
        for (; at < r->cell_count && r->cells[at].row == i; at++) {
            s.allocations += r->cells[at].allocations;
            s.allocated_bytes += r->cells[at].allocated_bytes;
            s.frees += r->cells[at].frees;
            s.freed_bytes += r->cells[at].freed_bytes;
            s.temporary += r->cells[at].temporary;
        }
        const struct rec_row *row = &r->rows[i];
        check_row_sum(v, i, "cells", "allocations", s.allocations, row->allocations);
        check_row_sum(v, i, "cells", "allocated bytes", s.allocated_bytes, row->allocated_bytes);
        check_row_sum(v, i, "cells", "frees", s.frees, row->frees);
        check_row_sum(v, i, "cells", "freed bytes", s.freed_bytes, row->freed_bytes);
        check_row_sum(v, i, "cells", "temporary allocations", s.temporary, row->temporary);
    }
}

static void check_size_sums(struct verification *v)
{
    const struct recording *r = v->r;
    size_t at = 0;
    for (size_t i = 0; i < r->row_count && r->size_bucket_count > 0; i++) {
        uint64_t count = 0;
        uint64_t bytes = 0;
        for (; at < r->size_bucket_count && r->size_buckets[at].row == i; at++) {
            count += r->size_buckets[at].count;
            bytes += r->size_buckets[at].bytes;
        }
        check_row_sum(v, i, "size buckets", "allocations", count, r->rows[i].allocations);
        check_row_sum(v, i, "size buckets", "allocated bytes", bytes, r->rows[i].allocated_bytes);
    }
}

static void check_slice_sums(struct verification *v)
{
    const struct recording *r = v->r;
    struct rec_slice s = {0};
    for (size_t i = 0; i < r->slice_count; i++) {
        const struct rec_slice *slice = &r->slices[i];
        s.allocations += slice->allocations;
        s.allocated_bytes += slice->allocated_bytes;
        s.frees += slice->frees;
        s.freed_bytes += slice->freed_bytes;
        s.temporary += slice->temporary;
        s.live_bytes += slice->allocated_bytes - slice->freed_bytes;
        // A process that ends removes its live blocks from the sum, but they do not count as freed.
        // With unsampled allocations no slice exceeds the peak, which is more exact than the sums.
        const bool may_be_less = r->process_count > 1 || r->totals.unsampled_allocations > 0;
        bool is_sound =
            may_be_less ? slice->live_bytes <= s.live_bytes : slice->live_bytes == s.live_bytes;
        if (!is_sound) {
            find(v, INVARIANT_SUM,
                 "slices[%zu] ends with %" PRIu64 " live bytes, but the slices add up to %" PRIu64,
                 i, slice->live_bytes, s.live_bytes);
        }
        if (slice->live_max_bytes < slice->live_bytes) {
            find(v, INVARIANT_COST, "slices[%zu] ends above its own maximum", i);
        }
    }
    if (r->slice_count > 0) {
        const struct rec_totals *t = &r->totals;
        check_sum(v, "allocations of all slices", s.allocations, "the total", t->allocations);
        check_sum(v, "allocated bytes of all slices", s.allocated_bytes, "the total",
                  t->allocated_bytes);
        check_sum(v, "frees of all slices", s.frees, "the total", t->frees);
        check_sum(v, "freed bytes of all slices", s.freed_bytes, "the total", t->freed_bytes);
        check_sum(v, "temporary allocations of all slices", s.temporary, "the total", t->temporary);
    }
}

static void check_mappings(struct verification *v)
{
    const struct recording *r = v->r;
    for (size_t i = 0; i < r->mapping_count; i++) {
        const struct rec_mapping *mapping = &r->mappings[i];
        check_index(v, "mappings", i, "process", mapping->process, r->process_count);
        check_index(v, "mappings", i, "node", mapping->node, r->node_count);
        if (mapping->unmapped_bytes > mapping->mapped_bytes) {
            find(v, INVARIANT_COST, "mappings[%zu] unmapped more than it mapped", i);
        }
    }
}

static void check_adhoc(struct verification *v)
{
    const struct recording *r = v->r;
    for (size_t i = 0; i < r->adhoc_count; i++) {
        check_index(v, "adhoc", i, "process", r->adhoc[i].process, r->process_count);
        check_index(v, "adhoc", i, "node", r->adhoc[i].node, r->node_count);
    }
}

static void check_reallocs(struct verification *v)
{
    const struct recording *r = v->r;
    for (size_t i = 0; i < r->realloc_count; i++) {
        check_index(v, "reallocs", i, "row", r->reallocs[i].row, r->row_count);
        if (i > 0 && r->reallocs[i - 1].row >= r->reallocs[i].row) {
            find(v, INVARIANT_ORDER, "reallocs[%zu] is out of order", i);
        }
    }
}

static void check_snapshots(struct verification *v)
{
    const struct recording *r = v->r;
    for (size_t i = 0; i < r->memory_snapshot_count; i++) {
        const struct rec_memory_snapshot *snapshot = &r->memory_snapshots[i];
        check_index(v, "snapshots", i, "process", snapshot->process, r->process_count);
        uint64_t sum = snapshot->live_bytes + snapshot->rounding_bytes + snapshot->kept_bytes +
                       snapshot->mapped_bytes + snapshot->stack_bytes + snapshot->file_bytes +
                       snapshot->shared_bytes + snapshot->own_bytes + snapshot->rest_bytes;
        check_sum(v, "the kinds of a memory snapshot", sum, "its whole", snapshot->rss_bytes);
    }
    for (size_t i = 0; i < r->part_count; i++) {
        const struct rec_part *part = &r->parts[i];
        check_index(v, "parts", i, "snapshot", part->snapshot, r->memory_snapshot_count);
        if (part->node != REC_NONE) {
            check_index(v, "parts", i, "node", part->node, r->node_count);
        }
        check_index(v, "parts", i, "kind", part->kind, REC_PART_KINDS + 1);
        if (i > 0 && part[-1].snapshot > part->snapshot) {
            find(v, INVARIANT_ORDER, "parts[%zu] is out of order", i);
        }
    }
}

static void check_survivors(struct verification *v)
{
    const struct recording *r = v->r;
    for (size_t i = 0; i < r->survivor_count; i++) {
        const struct rec_survivor *survivor = &r->survivors[i];
        check_index(v, "survivors", i, "snapshot", survivor->snapshot, r->memory_snapshot_count);
        check_index(v, "survivors", i, "node", survivor->node, r->node_count);
        if (i > 0 && survivor[-1].snapshot > survivor->snapshot) {
            find(v, INVARIANT_ORDER, "survivors[%zu] is out of order", i);
        }
    }
}

static uint64_t bytes_of_kind(const struct rec_memory_snapshot *snapshot, uint32_t kind)
{
    const uint64_t bytes[REC_PART_KINDS + 1] = {
        [REC_PART_LIVE] = snapshot->live_bytes,     [REC_PART_ROUNDING] = snapshot->rounding_bytes,
        [REC_PART_KEPT] = snapshot->kept_bytes,     [REC_PART_MAPPED] = snapshot->mapped_bytes,
        [REC_PART_STACK] = snapshot->stack_bytes,   [REC_PART_FILE] = snapshot->file_bytes,
        [REC_PART_SHARED] = snapshot->shared_bytes, [REC_PART_OWN] = snapshot->own_bytes,
        [REC_PART_REST] = snapshot->rest_bytes};
    return bytes[kind];
}

// Check the sums of parts. The parts are sorted here. A snapshot has none or all of them.
static void check_part_sums(struct verification *v)
{
    const struct recording *r = v->r;
    size_t at = 0;
    while (at < r->part_count) {
        const uint32_t snapshot = r->parts[at].snapshot;
        uint64_t sums[REC_PART_KINDS + 1] = {0};
        for (; at < r->part_count && r->parts[at].snapshot == snapshot; at++) {
            sums[r->parts[at].kind] += r->parts[at].rss_bytes;
        }
        for (uint32_t kind = 1; kind <= REC_PART_KINDS; kind++) {
            check_sum(v, "the parts of one kind of a memory snapshot", sums[kind], "the snapshot",
                      bytes_of_kind(&r->memory_snapshots[snapshot], kind));
        }
    }
}

enum err recording_verify(const struct recording *recording, struct recording_findings *out)
{
    static const struct {
        void (*check)(struct verification *v);
        bool needs_order; // meaningful only with sound indices and sorted tables
    } checks[] = {
        {check_strings, false},   {check_string_references, false},
        {check_processes, false}, {check_frames, false},
        {check_nodes, false},     {check_rows, false},
        {check_cells, false},     {check_size_buckets, false},
        {check_cohorts, false},   {check_lifetime_buckets, false},
        {check_totals, false},    {check_rows_are_unique, false},
        {check_cell_sums, true},  {check_size_sums, true},
        {check_slice_sums, true}, {check_mappings, false},
        {check_snapshots, false}, {check_part_sums, true},
        {check_survivors, false}, {check_marks, false},
        {check_blocks, false},    {check_block_sums, true},
        {check_adhoc, false},     {check_reallocs, false},
    };
    struct verification v = {.r = recording, .out = out};
    for (size_t i = 0; i < ARRAY_LEN(checks) && v.err == ERR_OK; i++) {
        bool is_sound = out->counts[INVARIANT_INDEX] == 0 && out->counts[INVARIANT_ORDER] == 0;
        v.in_check = 0;
        if (is_sound || !checks[i].needs_order) {
            checks[i].check(&v);
        }
    }
    return v.err;
}

uint64_t recording_findings_count(const struct recording_findings *findings)
{
    uint64_t count = 0;
    for (size_t i = 0; i < INVARIANT_COUNT; i++) {
        count += findings->counts[i];
    }
    return count;
}

void recording_findings_release(struct recording_findings *findings)
{
    finding_vec_release(&findings->items);
    *findings = (struct recording_findings){0};
}
