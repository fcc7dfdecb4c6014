// SPDX-License-Identifier: MIT
// recording_check: see recording_check.h.
#include "recording/test_support/recording_check.h"

#include <inttypes.h>
#include <stdbool.h>

#include "recording/format/schema.h"

struct verification {
    const struct recording *r;
    struct recording_findings *out;
};

static void check_index(struct verification *v,
                        const char *table,
                        size_t entry,
                        const char *what,
                        uint64_t index,
                        uint64_t count)
{
    if (index >= count) {
        recording_findings_add(v->out, INVARIANT_INDEX, "%s[%zu]: there is no %s %" PRIu64, table,
                               entry, what, index);
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
        recording_findings_add(v->out, INVARIANT_INDEX,
                               "the strings lack the empty one, or an end");
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
            recording_findings_add(v->out, INVARIANT_TREE, "processes[%zu] is its own ancestor", i);
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
        recording_findings_add(v->out, INVARIANT_TREE, "node 0 is not the root");
    }
    for (size_t i = 1; i < r->node_count; i++) {
        if (r->nodes[i].parent >= i) {
            recording_findings_add(v->out, INVARIANT_TREE,
                                   "nodes[%zu] comes before its parent %" PRIu32, i,
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
            recording_findings_add(v->out, INVARIANT_COST,
                                   "rows[%zu] freed %" PRIu64 " blocks of %" PRIu64 " and %" PRIu64
                                   " bytes of %" PRIu64,
                                   i, row->frees, row->allocations, row->freed_bytes,
                                   row->allocated_bytes);
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
            recording_findings_add(v->out, INVARIANT_ORDER, "cells[%zu] is out of order", i);
        }
    }
    if (r->slice_count > 0 && r->slice_ms == 0) {
        recording_findings_add(v->out, INVARIANT_COST, "there are slices, but they have no width");
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
            recording_findings_add(v->out, INVARIANT_ORDER, "%s[%zu] is out of order", table, i);
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
        }
        if (i > 0 && !cohorts_are_in_order(&cohort[-1], cohort)) {
            recording_findings_add(v->out, INVARIANT_ORDER, "cohorts[%zu] is out of order", i);
        }
    }
}

static void check_blocks(struct verification *v)
{
    const struct recording *r = v->r;
    for (size_t i = 0; i < r->block_count; i++) {
        const struct rec_block *block = &r->blocks[i];
        check_index(v, "blocks", i, "row", block->row, r->row_count);
        if (block->flags == 0 || block->flags > (REC_BLOCK_END | REC_BLOCK_PEAK)) {
            recording_findings_add(v->out, INVARIANT_COST, "blocks[%zu] was never live", i);
        }
        if (i > 0 && block[-1].row > block->row) {
            recording_findings_add(v->out, INVARIANT_ORDER, "blocks[%zu] is out of order", i);
        }
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
            recording_findings_add(v->out, INVARIANT_COST,
                                   "mappings[%zu] unmapped more than it mapped", i);
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
            recording_findings_add(v->out, INVARIANT_ORDER, "reallocs[%zu] is out of order", i);
        }
    }
}

static void check_snapshots(struct verification *v)
{
    const struct recording *r = v->r;
    for (size_t i = 0; i < r->memory_snapshot_count; i++) {
        check_index(v, "snapshots", i, "process", r->memory_snapshots[i].process, r->process_count);
    }
    for (size_t i = 0; i < r->part_count; i++) {
        const struct rec_part *part = &r->parts[i];
        check_index(v, "parts", i, "snapshot", part->snapshot, r->memory_snapshot_count);
        if (part->node != REC_NONE) {
            check_index(v, "parts", i, "node", part->node, r->node_count);
        }
        check_index(v, "parts", i, "kind", part->kind, REC_PART_KINDS + 1);
        if (i > 0 && part[-1].snapshot > part->snapshot) {
            recording_findings_add(v->out, INVARIANT_ORDER, "parts[%zu] is out of order", i);
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
            recording_findings_add(v->out, INVARIANT_ORDER, "survivors[%zu] is out of order", i);
        }
    }
}

static void check_marks(struct verification *v)
{
    const struct recording *r = v->r;
    for (size_t i = 0; i < r->mark_count; i++) {
        if (r->marks[i].kind > REC_MARK_PHASE) {
            recording_findings_add(v->out, INVARIANT_INDEX,
                                   "marks[%zu] is of kind %" PRIu32 ", which there is not", i,
                                   r->marks[i].kind);
        }
        if (i > 0 && r->marks[i - 1].time_ms > r->marks[i].time_ms) {
            recording_findings_add(v->out, INVARIANT_ORDER, "marks[%zu] is out of order", i);
        }
    }
}

enum err recording_check(const struct recording *recording, struct recording_findings *out)
{
    static void (*const checks[])(struct verification * v) = {
        check_strings,   check_string_references,
        check_processes, check_frames,
        check_nodes,     check_rows,
        check_cells,     check_size_buckets,
        check_cohorts,   check_lifetime_buckets,
        check_mappings,  check_snapshots,
        check_survivors, check_marks,
        check_blocks,    check_adhoc,
        check_reallocs,
    };
    struct verification v = {.r = recording, .out = out};
    for (size_t i = 0; i < ARRAY_LEN(checks) && out->err == ERR_OK; i++) {
        out->in_check = 0;
        checks[i](&v);
    }
    const bool is_sound = out->counts[INVARIANT_INDEX] + out->counts[INVARIANT_ORDER] == 0;
    TRY(out->err);
    return is_sound ? recording_verify(recording, out) : ERR_OK;
}
