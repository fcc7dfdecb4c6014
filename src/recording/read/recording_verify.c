// SPDX-License-Identifier: MIT
#include "recording/read/recording_verify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/minmax.h"
#include "base/order.h"

enum {
    MAX_FINDINGS_OF_A_CHECK = 5
};

void recording_findings_add(struct recording_findings *findings,
                            enum recording_invariant invariant,
                            const char *format,
                            ...)
{
    struct recording_finding finding = {.invariant = invariant};
    findings->counts[invariant]++;
    findings->in_check++;
    if (findings->in_check > MAX_FINDINGS_OF_A_CHECK || findings->err != ERR_OK) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(finding.text, sizeof(finding.text), format, arguments); // it may truncate
    va_end(arguments);
    findings->err = finding_vec_push(&findings->items, finding);
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

struct verification {
    const struct recording *r;
    struct recording_findings *out;
};

static void check_rows(struct verification *v)
{
    for (size_t i = 0; i < v->r->row_count; i++) {
        const struct rec_row *row = &v->r->rows[i];
        // The check does not include frees: with several threads the free of a temporary block may
        // have been paired with another block of its address (docs/accuracy.md).
        if (row->temporary > row->allocations || row->temporary_bytes > row->allocated_bytes) {
            recording_findings_add(v->out, INVARIANT_COST,
                                   "rows[%zu] has more temporary allocations than allocations", i);
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
        v->out->err = ERR_NO_MEMORY;
        return;
    }
    for (size_t i = 0; i < r->row_count; i++) {
        keys.items[i] = (uint64_t)r->rows[i].thread << 32 | r->rows[i].node;
    }
    u64_vec_sort(&keys, compare_keys);
    for (size_t i = 1; i < keys.len; i++) {
        if (keys.items[i] == keys.items[i - 1]) {
            recording_findings_add(v->out, INVARIANT_UNIQUE, "thread %u has two rows for node %u",
                                   (unsigned)(keys.items[i] >> 32), (unsigned)keys.items[i]);
        }
    }
}

static void check_cohorts(struct verification *v)
{
    for (size_t i = 0; i < v->r->cohort_count; i++) {
        const struct rec_cohort *cohort = &v->r->cohorts[i];
        if (cohort->freed_slice < cohort->born_slice) {
            recording_findings_add(v->out, INVARIANT_COST,
                                   "cohorts[%zu] was freed before it was born", i);
        }
    }
}

static void check_blocks(struct verification *v)
{
    for (size_t i = 0; i < v->r->block_count; i++) {
        const struct rec_block *block = &v->r->blocks[i];
        const bool is_live = (block->flags & REC_BLOCK_END) != 0;
        if (is_live ? block->freed_ms != 0 : block->freed_ms < block->born_ms) {
            recording_findings_add(v->out, INVARIANT_COST, "blocks[%zu] contradicts itself", i);
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
            recording_findings_add(v->out, INVARIANT_SUM,
                                   "rows[%" PRIu32 "] lists more blocks than it has", row);
        }
    }
}

static void
check_sum(struct verification *v, const char *what, uint64_t sum, const char *whole, uint64_t want)
{
    if (sum != want) {
        // A sum that wrapped below zero is shown as negative.
        recording_findings_add(v->out, INVARIANT_SUM, "%s is %" PRId64 ", but %s is %" PRIu64, what,
                               (int64_t)sum, whole, want);
    }
}

static void check_totals(struct verification *v)
{
    const struct recording *r = v->r;
    const struct rec_totals *t = &r->totals;
    struct rec_totals s = {0};
    rec_rows_add_up(r->rows, r->row_count, &s);
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
        recording_findings_add(v->out, INVARIANT_SUM,
                               "rows[%zu] has %" PRIu64 " %s, its %s have %" PRId64, row, want,
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
        // Nor does it where frees were counted later than allocations that came after them.
        const bool may_be_less = r->process_count > 1 || r->totals.unsampled_allocations > 0 ||
                                 r->totals.interval_bytes > 0;
        const bool is_limited = slice->live_bytes == min_u64(s.live_bytes, r->totals.peak_bytes);
        bool is_sound = may_be_less ? slice->live_bytes <= s.live_bytes
                                    : slice->live_bytes == s.live_bytes || is_limited;
        if (!is_sound) {
            recording_findings_add(v->out, INVARIANT_SUM,
                                   "slices[%zu] ends with %" PRIu64
                                   " live bytes, but the slices add up to %" PRIu64,
                                   i, slice->live_bytes, s.live_bytes);
        }
        if (slice->live_max_bytes < slice->live_bytes) {
            recording_findings_add(v->out, INVARIANT_COST, "slices[%zu] ends above its own maximum",
                                   i);
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

static void check_snapshots(struct verification *v)
{
    for (size_t i = 0; i < v->r->memory_snapshot_count; i++) {
        const struct rec_memory_snapshot *snapshot = &v->r->memory_snapshots[i];
        uint64_t sum = 0;
        for (size_t kind = 0; kind < REC_PART_KINDS; kind++) {
            sum += snapshot->bytes[kind];
        }
        check_sum(v, "the kinds of a memory snapshot", sum, "its whole", snapshot->rss_bytes);
    }
}

// Check the sums of parts. The parts are sorted here. A snapshot has none or all of them.
static void check_part_sums(struct verification *v)
{
    const struct recording *r = v->r;
    size_t at = 0;
    while (at < r->part_count) {
        const uint32_t snapshot = r->parts[at].snapshot;
        uint64_t sums[REC_PART_KINDS + 1] = {0};
        uint64_t repeated[REC_PART_KINDS + 1] = {0};
        for (; at < r->part_count && r->parts[at].snapshot == snapshot; at++) {
            const struct rec_part *part = &r->parts[at];
            sums[part->kind] += part->rss_bytes;
            repeated[part->kind] += part->repeated_bytes;
        }
        for (uint32_t kind = 1; kind <= REC_PART_KINDS; kind++) {
            check_sum(v, "the parts of one kind of a memory snapshot", sums[kind], "the snapshot",
                      r->memory_snapshots[snapshot].bytes[kind - 1]);
            check_sum(v, "what the parts of one kind repeat", repeated[kind], "the snapshot",
                      r->memory_snapshots[snapshot].repeated_bytes[kind - 1]);
        }
    }
}

enum err recording_verify(const struct recording *recording, struct recording_findings *out)
{
    static void (*const checks[])(struct verification * v) = {
        check_rows,      check_totals,     check_rows_are_unique, check_cell_sums,
        check_size_sums, check_slice_sums, check_cohorts,         check_snapshots,
        check_part_sums, check_blocks,     check_block_sums,
    };
    struct verification v = {.r = recording, .out = out};
    for (size_t i = 0; i < ARRAY_LEN(checks) && out->err == ERR_OK; i++) {
        out->in_check = 0;
        checks[i](&v);
    }
    return out->err;
}
