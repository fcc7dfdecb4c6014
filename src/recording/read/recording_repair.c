// SPDX-License-Identifier: MIT
// recording_repair: see recording_repair.h.
//
// Tables that others refer to are repaired first. Dropping entries leaves a map from old to new
// indices for the tables that refer to them.
#include "recording/read/recording_repair.h"

#include <stdlib.h>
#include <string.h>

#include "host/containers/vec.h"
#include "recording/format/recording_owner.h"
#include "recording/format/schema.h"

struct repair {
    struct recording *r;
    struct repair_tally tally;
    struct u32_vec thread_map; // old index -> new, REC_NONE if dropped
    struct u32_vec row_map;
    struct u32_vec memory_snapshot_map;
};

static void repair_release(struct repair *p)
{
    u32_vec_release(&p->thread_map);
    u32_vec_release(&p->row_map);
    u32_vec_release(&p->memory_snapshot_map);
}

static uint32_t mapped_index(const struct u32_vec *map, uint32_t index)
{
    return index < map->len ? map->items[index] : REC_NONE;
}

// Keep the entries for which `is_good` returns true; it may change them. Its `before` is the last
// kept entry, or NULL. Fill `map` unless it is NULL. Return the number of kept entries.
static enum err keep_entry(struct repair *p,
                           void *items,
                           size_t *count,
                           size_t entry_bytes,
                           bool (*is_good)(struct repair *p, void *entry, const void *before),
                           struct u32_vec *map)
{
    char *entries = items;
    if (map != NULL) {
        TRY(u32_vec_resize(map, *count));
    }
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        char *entry = entries + i * entry_bytes;
        bool stays = is_good(p, entry, kept > 0 ? entries + (kept - 1) * entry_bytes : NULL);
        if (map != NULL) {
            map->items[i] = stays ? (uint32_t)kept : REC_NONE;
        }
        if (!stays) {
            p->tally.dropped++;
            continue;
        }
        if (kept != i) {
            memcpy(entries + kept * entry_bytes, entry, entry_bytes);
        }
        kept++;
    }
    *count = kept;
    return ERR_OK;
}

static void repair_strings_of(struct repair *p, const struct rec_table *table, char *entry)
{
    for (size_t i = 0; i < table->column_count; i++) {
        const struct rec_column *column = &table->columns[i];
        if (column->kind == REC_COLUMN_STRING &&
            rec_column_get(column, entry) >= p->r->strings.count) {
            (void)rec_column_scatter(column, entry, table->entry_bytes, &(uint64_t){0}, 1); // fits
            p->tally.repaired++;
        }
    }
}

static void repair_strings(struct repair *p)
{
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        const struct rec_table *table = &rec_tables[i];
        if (table->columns == NULL) {
            continue;
        }
        char *entries = table->is_single ? (char *)p->r : rec_table_array(table, p->r);
        for (size_t j = 0; j < rec_table_count(table, p->r); j++) {
            repair_strings_of(p, table, entries + j * table->entry_bytes);
        }
    }
}

// Cut every circle of parents at one of its members. Marks: 0 not visited, 1 on the current path, 2
// known to lead to an end.
static enum err repair_process_tree(struct repair *p)
{
    struct recording *r = p->r;
    CLEANUP(u32_vec_release) struct u32_vec marks = {0};
    TRY(u32_vec_resize(&marks, r->process_count));
    for (size_t i = 0; i < r->process_count; i++) {
        if (r->processes[i].parent != REC_NONE && r->processes[i].parent >= r->process_count) {
            r->processes[i].parent = REC_NONE;
            p->tally.repaired++;
        }
    }
    for (size_t i = 0; i < r->process_count; i++) {
        for (uint32_t at = (uint32_t)i; marks.items[at] == 0; at = r->processes[at].parent) {
            marks.items[at] = 1;
            uint32_t parent = r->processes[at].parent;
            if (parent != REC_NONE && marks.items[parent] == 1) {
                r->processes[at].parent = REC_NONE;
                p->tally.repaired++;
            }
            if (r->processes[at].parent == REC_NONE) {
                break;
            }
        }
        for (uint32_t at = (uint32_t)i; at != REC_NONE && marks.items[at] == 1;
             at = r->processes[at].parent) {
            marks.items[at] = 2;
        }
    }
    return ERR_OK;
}

static bool is_good_thread(struct repair *p, void *entry, const void *before)
{
    const struct rec_thread *thread = entry;
    (void)before;
    return thread->process < p->r->process_count;
}

static void repair_frames(struct repair *p)
{
    struct recording *r = p->r;
    for (size_t i = 0; i < r->frame_count; i++) {
        struct rec_frame *frame = &r->frames[i];
        if (frame->module != REC_NONE && frame->module >= r->module_count) {
            frame->module = REC_NONE;
            p->tally.repaired++;
        }
        if ((uint64_t)frame->symbol_first + frame->symbol_count > r->symbol_count) {
            frame->symbol_first = 0;
            frame->symbol_count = 0;
            p->tally.repaired++;
        }
    }
}

// Append an unknown frame, for nodes that lost theirs, at the first request. *out is REC_NONE
// before.
static enum err want_unknown_frame(struct recording *r, uint32_t *out)
{
    if (*out != REC_NONE) {
        return ERR_OK;
    }
    if (r->frame_count >= REC_NONE) {
        return ERR_LIMIT;
    }
    struct rec_frame *grown = realloc(r->frames, (r->frame_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        return ERR_NO_MEMORY;
    }
    grown[r->frame_count] = (struct rec_frame){.module = REC_NONE};
    r->frames = grown;
    r->owner->frames = grown;
    *out = (uint32_t)r->frame_count;
    r->frame_count++;
    return ERR_OK;
}

static enum err ensure_root(struct repair *p)
{
    struct recording *r = p->r;
    if (r->node_count == 0) {
        struct rec_node *root = realloc(r->nodes, sizeof(*root));
        if (root == NULL) {
            return ERR_NO_MEMORY;
        }
        r->nodes = root;
        r->owner->nodes = root;
        r->node_count = 1;
        root->parent = REC_NONE;
        root->frame = REC_NONE;
    }
    if (r->nodes[0].parent != REC_NONE || r->nodes[0].frame != REC_NONE) {
        r->nodes[0] = (struct rec_node){.parent = REC_NONE, .frame = REC_NONE};
        p->tally.repaired++;
    }
    return ERR_OK;
}

static enum err repair_nodes(struct repair *p)
{
    struct recording *r = p->r;
    uint32_t unknown_frame = REC_NONE;
    size_t known_frames = r->frame_count;
    TRY(ensure_root(p));
    for (size_t i = 1; i < r->node_count; i++) {
        if (r->nodes[i].parent >= i) { // its descendants have no path to the root either
            p->tally.dropped += r->node_count - i;
            r->node_count = i;
            break;
        }
        if (r->nodes[i].frame < known_frames) {
            continue;
        }
        TRY(want_unknown_frame(r, &unknown_frame));
        r->nodes[i].frame = unknown_frame;
        p->tally.repaired++;
    }
    return ERR_OK;
}

static bool is_good_row(struct repair *p, void *entry, const void *before)
{
    struct rec_row *row = entry;
    (void)before;
    row->thread = mapped_index(&p->thread_map, row->thread);
    if (row->thread == REC_NONE || row->node >= p->r->node_count) {
        return false;
    }
    if (row->frees > row->allocations) {
        row->frees = row->allocations;
        p->tally.repaired++;
    }
    if (row->freed_bytes > row->allocated_bytes) {
        row->freed_bytes = row->allocated_bytes;
        p->tally.repaired++;
    }
    return true;
}

static bool is_good_cell(struct repair *p, void *entry, const void *before)
{
    struct rec_cell *cell = entry;
    const struct rec_cell *last = before;
    cell->row = mapped_index(&p->row_map, cell->row);
    return cell->row != REC_NONE && cell->slice < p->r->slice_count &&
           (last == NULL || last->row < cell->row ||
            (last->row == cell->row && last->slice < cell->slice));
}

static bool is_good_bucket(struct repair *p, void *entry, const void *before)
{
    struct rec_bucket *bucket = entry;
    const struct rec_bucket *last = before;
    bucket->row = mapped_index(&p->row_map, bucket->row);
    return bucket->row != REC_NONE && bucket->bucket < REC_BUCKET_COUNT &&
           (last == NULL || last->row < bucket->row ||
            (last->row == bucket->row && last->bucket < bucket->bucket));
}

static bool cohort_is_after(const struct rec_cohort *last, const struct rec_cohort *cohort)
{
    if (last->row != cohort->row) {
        return last->row < cohort->row;
    }
    if (last->born_slice != cohort->born_slice) {
        return last->born_slice < cohort->born_slice;
    }
    return last->freed_slice < cohort->freed_slice;
}

static bool is_good_cohort(struct repair *p, void *entry, const void *before)
{
    struct rec_cohort *cohort = entry;
    cohort->row = mapped_index(&p->row_map, cohort->row);
    bool ends_well = cohort->freed_slice == REC_NONE || cohort->freed_slice < p->r->slice_count;
    return cohort->row != REC_NONE && cohort->born_slice < p->r->slice_count && ends_well &&
           (before == NULL || cohort_is_after(before, cohort));
}

// A part is at most its whole.
static void bound_figure(struct repair *p, uint64_t *part, uint64_t whole)
{
    if (*part > whole) {
        *part = whole;
        p->tally.repaired++;
    }
}

static bool is_good_sample(struct repair *p, void *entry, const void *before)
{
    struct rec_rss_sample *sample = entry;
    (void)before;
    bound_figure(p, &sample->repeated_anonymous_bytes, sample->anonymous_bytes);
    bound_figure(p, &sample->repeated_file_bytes, sample->file_bytes);
    bound_figure(p, &sample->repeated_shmem_bytes, sample->shmem_bytes);
    bound_figure(p, &sample->doubted_bytes,
                 sample->repeated_file_bytes + sample->repeated_shmem_bytes);
    return sample->process < p->r->process_count;
}

static bool is_good_mapping(struct repair *p, void *entry, const void *before)
{
    struct rec_mapping *mapping = entry;
    (void)before;
    bound_figure(p, &mapping->unmapped_bytes, mapping->mapped_bytes);
    return mapping->process < p->r->process_count && mapping->node < p->r->node_count;
}

static bool is_good_adhoc(struct repair *p, void *entry, const void *before)
{
    const struct rec_adhoc *adhoc = entry;
    (void)before;
    return adhoc->process < p->r->process_count && adhoc->node < p->r->node_count;
}

static bool is_good_realloc(struct repair *p, void *entry, const void *before)
{
    struct rec_realloc *grown = entry;
    const struct rec_realloc *last = before;
    grown->row = mapped_index(&p->row_map, grown->row);
    return grown->row != REC_NONE && (last == NULL || last->row < grown->row);
}

static bool is_good_snapshot(struct repair *p, void *entry, const void *before)
{
    struct rec_memory_snapshot *snapshot = entry;
    (void)before;
    for (size_t kind = 0; kind < REC_PART_KINDS; kind++) {
        bound_figure(p, &snapshot->repeated_bytes[kind], snapshot->bytes[kind]);
    }
    return snapshot->process < p->r->process_count;
}

static bool is_good_part(struct repair *p, void *entry, const void *before)
{
    struct rec_part *part = entry;
    const struct rec_part *last = before;
    part->snapshot = mapped_index(&p->memory_snapshot_map, part->snapshot);
    bound_figure(p, &part->repeated_bytes, part->rss_bytes);
    bound_figure(p, &part->released_bytes, part->rss_bytes);
    bound_figure(p, &part->huge_bytes, part->rss_bytes);
    bound_figure(p, &part->blank_bytes, part->huge_bytes);
    if (part->node != REC_NONE && part->node >= p->r->node_count) {
        part->node = REC_NONE;
        p->tally.repaired++;
    }
    return part->snapshot != REC_NONE && part->kind >= 1 && part->kind <= REC_PART_KINDS &&
           (last == NULL || last->snapshot <= part->snapshot);
}

static bool is_good_survivor(struct repair *p, void *entry, const void *before)
{
    struct rec_survivor *survivor = entry;
    const struct rec_survivor *last = before;
    survivor->snapshot = mapped_index(&p->memory_snapshot_map, survivor->snapshot);
    return survivor->snapshot != REC_NONE && survivor->node < p->r->node_count &&
           (last == NULL || last->snapshot <= survivor->snapshot);
}

static bool is_good_block(struct repair *p, void *entry, const void *before)
{
    struct rec_block *block = entry;
    const struct rec_block *last = before;
    block->row = mapped_index(&p->row_map, block->row);
    const bool is_known = block->flags != 0 && block->flags <= (REC_BLOCK_END | REC_BLOCK_PEAK);
    return block->row != REC_NONE && is_known && (last == NULL || last->row <= block->row);
}

static bool is_good_mark(struct repair *p, void *entry, const void *before)
{
    const struct rec_mark *mark = entry;
    const struct rec_mark *last = before;
    (void)p;
    return mark->kind <= REC_MARK_PHASE && (last == NULL || last->time_ms <= mark->time_ms);
}

static enum err repair_all(struct repair *p, bool has_totals)
{
    struct recording *r = p->r;
    repair_strings(p);
    TRY(repair_process_tree(p));
    TRY(keep_entry(p, r->threads, &r->thread_count, sizeof(*r->threads), is_good_thread,
                   &p->thread_map));
    repair_frames(p);
    TRY(repair_nodes(p));
    TRY(keep_entry(p, r->rows, &r->row_count, sizeof(*r->rows), is_good_row, &p->row_map));
    TRY(keep_entry(p, r->cells, &r->cell_count, sizeof(*r->cells), is_good_cell, NULL));
    TRY(keep_entry(p, r->size_buckets, &r->size_bucket_count, sizeof(*r->size_buckets),
                   is_good_bucket, NULL));
    TRY(keep_entry(p, r->lifetime_buckets, &r->lifetime_bucket_count, sizeof(*r->lifetime_buckets),
                   is_good_bucket, NULL));
    TRY(keep_entry(p, r->cohorts, &r->cohort_count, sizeof(*r->cohorts), is_good_cohort, NULL));
    TRY(keep_entry(p, r->rss_samples, &r->rss_sample_count, sizeof(*r->rss_samples), is_good_sample,
                   NULL));
    TRY(keep_entry(p, r->mappings, &r->mapping_count, sizeof(*r->mappings), is_good_mapping, NULL));
    TRY(keep_entry(p, r->adhoc, &r->adhoc_count, sizeof(*r->adhoc), is_good_adhoc, NULL));
    TRY(keep_entry(p, r->reallocs, &r->realloc_count, sizeof(*r->reallocs), is_good_realloc, NULL));
    TRY(keep_entry(p, r->memory_snapshots, &r->memory_snapshot_count, sizeof(*r->memory_snapshots),
                   is_good_snapshot, &p->memory_snapshot_map));
    TRY(keep_entry(p, r->parts, &r->part_count, sizeof(*r->parts), is_good_part, NULL));
    TRY(keep_entry(p, r->survivors, &r->survivor_count, sizeof(*r->survivors), is_good_survivor,
                   NULL));
    TRY(keep_entry(p, r->blocks, &r->block_count, sizeof(*r->blocks), is_good_block, NULL));
    TRY(keep_entry(p, r->marks, &r->mark_count, sizeof(*r->marks), is_good_mark, NULL));
    if (r->slice_count > 0 && r->slice_ms == 0) { // readers divide by it
        r->slice_ms = 1;
        p->tally.repaired++;
    }
    if (!has_totals) {
        rec_rows_add_up(r->rows, r->row_count, &r->totals);
    }
    return ERR_OK;
}

enum err recording_repair(struct recording *recording, bool has_totals, struct repair_tally *tally)
{
    CLEANUP(repair_release) struct repair p = {.r = recording};
    TRY(repair_all(&p, has_totals));
    *tally = p.tally;
    return ERR_OK;
}
