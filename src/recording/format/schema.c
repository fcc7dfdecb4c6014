// SPDX-License-Identifier: MIT
#include "recording/format/schema.h"

#include <string.h>

#include "base/compiler.h"
#include "recording/format/chunk.h"
#include "recording/format/recording_owner.h"

#define COLUMN(type, number, field, ...)                                        \
    {                                                                           \
        .id = (number), .name = #field, .offset = offsetof(struct type, field), \
        .width_bytes = sizeof(((struct type *)NULL)->field), __VA_ARGS__        \
    }
#define STRING(type, number, field) COLUMN(type, number, field, .kind = REC_COLUMN_STRING)
#define INDEX(type, number, field)  COLUMN(type, number, field, .missing = REC_NONE)
// A cost that usually equals an earlier one: frees equal allocations in most stacks.
#define LIKE(type, number, field, other) COLUMN(type, number, field, .reference = (other))
// Bytes of the number of blocks in another column.
#define BYTES(type, number, field, blocks) COLUMN(type, number, field, .share = (blocks))

// clang-format off
static const struct rec_column meta_columns[] = {
    COLUMN(recording, 1, meta.state),
    COLUMN(recording, 2, meta.page_bytes),
    COLUMN(recording, 3, meta.cpu_count),
    COLUMN(recording, 4, meta.pid),
    COLUMN(recording, 5, meta.exit_status, .missing = UINT32_MAX),
    COLUMN(recording, 6, meta.max_frames),
    COLUMN(recording, 7, meta.start_unix_ns),
    COLUMN(recording, 8, meta.runtime_ms),
    COLUMN(recording, 9, meta.memory_bytes),
    COLUMN(recording, 10, meta.checkpoint_count),
    STRING(recording, 11, meta.tool_version),
    STRING(recording, 12, meta.host),
    STRING(recording, 13, meta.kernel),
    STRING(recording, 14, meta.libc),
    STRING(recording, 15, meta.program),
    STRING(recording, 16, meta.command_line),
    STRING(recording, 17, meta.source_format),
    COLUMN(recording, 18, slice_ms),
    COLUMN(recording, 19, meta.checkpoint_interval_ms),
    COLUMN(recording, 20, meta.unknown),
    STRING(recording, 21, meta.suppressions),
    COLUMN(recording, 22, meta.oom_limit_bytes),
};

static const struct rec_column totals_columns[] = {
    COLUMN(recording, 1, totals.allocations),
    COLUMN(recording, 2, totals.allocated_bytes),
    COLUMN(recording, 3, totals.frees),
    COLUMN(recording, 4, totals.freed_bytes),
    COLUMN(recording, 5, totals.temporary),
    COLUMN(recording, 6, totals.temporary_bytes),
    COLUMN(recording, 7, totals.peak_bytes),
    COLUMN(recording, 8, totals.peak_error_bytes),
    COLUMN(recording, 9, totals.peak_time_ms),
    COLUMN(recording, 10, totals.peak_blocks),
    COLUMN(recording, 11, totals.unknown_frees),
    COLUMN(recording, 12, totals.events),
    COLUMN(recording, 13, totals.unsampled_allocations),
    COLUMN(recording, 14, totals.unsampled_bytes),
    COLUMN(recording, 15, totals.unsampled_frees),
    COLUMN(recording, 16, totals.sampled_allocations),
    COLUMN(recording, 17, totals.represented_allocations),
    COLUMN(recording, 18, totals.represented_bytes),
    COLUMN(recording, 19, totals.max_weight),
    COLUMN(recording, 20, totals.peak_standard_error_bytes),
    COLUMN(recording, 21, totals.peak_at_least_bytes),
    COLUMN(recording, 22, totals.sample_bytes),
    COLUMN(recording, 23, totals.interval_bytes),
    COLUMN(recording, 24, totals.peak_flight_bytes),
};

static const struct rec_column process_columns[] = {
    COLUMN(rec_process, 1, pid),
    COLUMN(rec_process, 2, parent_pid),
    INDEX(rec_process, 3, parent),
    COLUMN(rec_process, 4, epoch),
    COLUMN(rec_process, 5, flags),
    COLUMN(rec_process, 6, exit_status, .missing = UINT32_MAX),
    COLUMN(rec_process, 7, start_ms),
    COLUMN(rec_process, 8, end_ms, .reference = 7),
    COLUMN(rec_process, 9, peak_bytes),
    COLUMN(rec_process, 10, peak_rss_bytes),
    STRING(rec_process, 11, executable),
    STRING(rec_process, 12, command_line),
    STRING(rec_process, 13, allocator),
    COLUMN(rec_process, 14, left_ms, .reference = 8),
    COLUMN(rec_process, 15, killed_threads),
    STRING(rec_process, 16, runtime),
    COLUMN(rec_process, 17, end_error_ms),
};

static const struct rec_column thread_columns[] = {
    INDEX(rec_thread, 1, process),
    COLUMN(rec_thread, 2, thread_id),
    COLUMN(rec_thread, 3, flags),
    COLUMN(rec_thread, 4, merged_count, .missing = 1),
    COLUMN(rec_thread, 5, start_ms),
    COLUMN(rec_thread, 6, end_ms, .reference = 5),
    STRING(rec_thread, 7, name),
};

static const struct rec_column module_columns[] = {
    STRING(rec_module, 1, path),
    STRING(rec_module, 2, build_id),
    STRING(rec_module, 3, symbol_source),
    STRING(rec_module, 4, symbol_advice),
    COLUMN(rec_module, 5, is_executable),
    COLUMN(rec_module, 6, frames),
    LIKE(rec_module, 7, frames_with_function, 6),
    LIKE(rec_module, 8, frames_with_line, 6),
};

static const struct rec_column frame_columns[] = {
    INDEX(rec_frame, 1, module),
    COLUMN(rec_frame, 2, flags),
    COLUMN(rec_frame, 3, offset),
    COLUMN(rec_frame, 4, symbol_first),
    COLUMN(rec_frame, 5, symbol_count),
    COLUMN(rec_frame, 6, function_start),
};

static const struct rec_column symbol_columns[] = {
    STRING(rec_symbol, 1, function),
    STRING(rec_symbol, 2, file),
    COLUMN(rec_symbol, 3, line),
};

static const struct rec_column node_columns[] = {
    INDEX(rec_node, 1, parent),
    INDEX(rec_node, 2, frame),
};

static const struct rec_column row_columns[] = {
    INDEX(rec_row, 1, thread),
    INDEX(rec_row, 2, node),
    COLUMN(rec_row, 3, allocations),
    COLUMN(rec_row, 4, allocated_bytes),
    LIKE(rec_row, 5, frees, 3),
    COLUMN(rec_row, 6, freed_bytes, .reference = 4, .share = 5),
    LIKE(rec_row, 7, temporary, 3),
    COLUMN(rec_row, 8, temporary_bytes, .reference = 4, .share = 7),
    COLUMN(rec_row, 9, peak_blocks),
    BYTES(rec_row, 10, peak_bytes, 9),
    LIKE(rec_row, 11, own_peak_bytes, 4),
};

static const struct rec_column cell_columns[] = {
    INDEX(rec_cell, 1, row),
    COLUMN(rec_cell, 2, slice),
    COLUMN(rec_cell, 3, allocations),
    BYTES(rec_cell, 4, allocated_bytes, 3),
    LIKE(rec_cell, 5, frees, 3),
    COLUMN(rec_cell, 6, freed_bytes, .reference = 4, .share = 5),
    LIKE(rec_cell, 7, temporary, 3),
};

static const struct rec_column bucket_columns[] = {
    INDEX(rec_bucket, 1, row),
    COLUMN(rec_bucket, 2, bucket),
    COLUMN(rec_bucket, 3, count),
    BYTES(rec_bucket, 4, bytes, 3),
};

static const struct rec_column cohort_columns[] = {
    INDEX(rec_cohort, 1, row),
    COLUMN(rec_cohort, 2, born_slice),
    INDEX(rec_cohort, 3, freed_slice),
    COLUMN(rec_cohort, 4, blocks),
    BYTES(rec_cohort, 5, bytes, 4),
};

static const struct rec_column slice_columns[] = {
    COLUMN(rec_slice, 1, allocations),
    COLUMN(rec_slice, 2, allocated_bytes),
    LIKE(rec_slice, 3, frees, 1),
    LIKE(rec_slice, 4, freed_bytes, 2),
    COLUMN(rec_slice, 5, temporary),
    COLUMN(rec_slice, 6, live_bytes),
    LIKE(rec_slice, 7, live_max_bytes, 6),
};

static const struct rec_column rss_sample_columns[] = {
    COLUMN(rec_rss_sample, 1, time_ms),
    INDEX(rec_rss_sample, 2, process),
    COLUMN(rec_rss_sample, 3, rss_bytes),
    COLUMN(rec_rss_sample, 4, anonymous_bytes),
    COLUMN(rec_rss_sample, 5, file_bytes),
    COLUMN(rec_rss_sample, 6, shmem_bytes),
    COLUMN(rec_rss_sample, 7, swap_bytes),
    COLUMN(rec_rss_sample, 8, minor_faults),
    COLUMN(rec_rss_sample, 9, major_faults),
    COLUMN(rec_rss_sample, 10, break_bytes),
    COLUMN(rec_rss_sample, 11, data_bytes),
    COLUMN(rec_rss_sample, 12, mapped_bytes),
    COLUMN(rec_rss_sample, 13, repeated_anonymous_bytes),
    COLUMN(rec_rss_sample, 14, repeated_file_bytes),
    COLUMN(rec_rss_sample, 15, repeated_shmem_bytes),
    COLUMN(rec_rss_sample, 16, doubted_bytes),
};

static const struct rec_column mapping_columns[] = {
    INDEX(rec_mapping, 1, process),
    INDEX(rec_mapping, 2, node),
    COLUMN(rec_mapping, 3, kind),
    COLUMN(rec_mapping, 4, mappings),
    COLUMN(rec_mapping, 5, mapped_bytes),
    LIKE(rec_mapping, 6, unmapped_bytes, 5),
    LIKE(rec_mapping, 7, own_peak_bytes, 5),
};

static const struct rec_column adhoc_columns[] = {
    INDEX(rec_adhoc, 1, process),
    INDEX(rec_adhoc, 2, node),
    COLUMN(rec_adhoc, 3, events),
    COLUMN(rec_adhoc, 4, weight),
};

static const struct rec_column realloc_columns[] = {
    INDEX(rec_realloc, 1, row),
    COLUMN(rec_realloc, 2, reallocs),
    COLUMN(rec_realloc, 3, moved_bytes),
    COLUMN(rec_realloc, 4, grown_bytes),
    COLUMN(rec_realloc, 5, largest_bytes),
};

static const struct rec_column memory_snapshot_columns[] = {
    COLUMN(rec_memory_snapshot, 1, time_ms),
    INDEX(rec_memory_snapshot, 2, process),
    COLUMN(rec_memory_snapshot, 3, flags),
    COLUMN(rec_memory_snapshot, 4, rss_bytes),
    COLUMN(rec_memory_snapshot, 5, swap_bytes),
    COLUMN(rec_memory_snapshot, 6, requested_bytes),
    COLUMN(rec_memory_snapshot, 7, live_bytes),
    COLUMN(rec_memory_snapshot, 8, rounding_bytes),
    COLUMN(rec_memory_snapshot, 9, kept_bytes),
    COLUMN(rec_memory_snapshot, 10, mapped_bytes),
    COLUMN(rec_memory_snapshot, 11, stack_bytes),
    COLUMN(rec_memory_snapshot, 12, file_bytes),
    COLUMN(rec_memory_snapshot, 13, shared_bytes),
    COLUMN(rec_memory_snapshot, 14, own_bytes),
    COLUMN(rec_memory_snapshot, 15, rest_bytes),
    COLUMN(rec_memory_snapshot, 16, empty_page_bytes),
    COLUMN(rec_memory_snapshot, 17, sparse_page_bytes),
    COLUMN(rec_memory_snapshot, 18, sparse_block_bytes),
    COLUMN(rec_memory_snapshot, 19, repeated_live_bytes),
    COLUMN(rec_memory_snapshot, 20, repeated_rounding_bytes),
    COLUMN(rec_memory_snapshot, 21, repeated_kept_bytes),
    COLUMN(rec_memory_snapshot, 22, repeated_mapped_bytes),
    COLUMN(rec_memory_snapshot, 23, repeated_stack_bytes),
    COLUMN(rec_memory_snapshot, 24, repeated_file_bytes),
    COLUMN(rec_memory_snapshot, 25, repeated_shared_bytes),
    COLUMN(rec_memory_snapshot, 26, repeated_own_bytes),
    COLUMN(rec_memory_snapshot, 27, repeated_rest_bytes),
};

static const struct rec_column part_columns[] = {
    INDEX(rec_part, 1, snapshot),
    COLUMN(rec_part, 2, kind),
    INDEX(rec_part, 3, node),
    STRING(rec_part, 4, path),
    COLUMN(rec_part, 5, areas),
    COLUMN(rec_part, 6, is_estimate),
    COLUMN(rec_part, 7, virtual_bytes),
    COLUMN(rec_part, 8, rss_bytes),
    COLUMN(rec_part, 9, swap_bytes),
    COLUMN(rec_part, 10, repeated_bytes),
    STRING(rec_part, 11, allocator),
    COLUMN(rec_part, 12, released_bytes),
    COLUMN(rec_part, 13, huge_bytes),
    COLUMN(rec_part, 14, blank_bytes),
};

static const struct rec_column survivor_columns[] = {
    INDEX(rec_survivor, 1, snapshot),
    INDEX(rec_survivor, 2, node),
    COLUMN(rec_survivor, 3, blocks),
    COLUMN(rec_survivor, 4, block_bytes),
    COLUMN(rec_survivor, 5, held_bytes),
    COLUMN(rec_survivor, 6, oldest_ms),
    COLUMN(rec_survivor, 7, newest_ms),
};

static const struct rec_column counter_columns[] = {
    STRING(rec_counter, 1, name),
    STRING(rec_counter, 2, text),
    COLUMN(rec_counter, 3, kind),
    COLUMN(rec_counter, 4, value),
};

static const struct rec_column block_columns[] = {
    COLUMN(rec_block, 1, address),
    COLUMN(rec_block, 2, size_bytes),
    COLUMN(rec_block, 3, born_ms),
    COLUMN(rec_block, 4, freed_ms),
    INDEX(rec_block, 5, row),
    COLUMN(rec_block, 6, flags, .missing = REC_BLOCK_END),
};

static const struct rec_column mark_columns[] = {
    COLUMN(rec_mark, 1, time_ms),
    COLUMN(rec_mark, 2, kind),
    STRING(rec_mark, 3, text),
};

static const struct rec_column unrecorded_columns[] = {
    STRING(rec_unrecorded, 1, program),
    STRING(rec_unrecorded, 2, reason),
    STRING(rec_unrecorded, 3, text),
    COLUMN(rec_unrecorded, 4, execs),
    COLUMN(rec_unrecorded, 5, descendants),
    COLUMN(rec_unrecorded, 6, pid),
};

static const struct rec_column hook_columns[] = {
    STRING(rec_hook, 1, module),
    STRING(rec_hook, 2, function),
    STRING(rec_hook, 3, allocator),
    STRING(rec_hook, 4, reason),
    COLUMN(rec_hook, 5, processes),
};

// clang-format on

// The fields of a table whose entries are an array of struct recording.
#define ARRAY_FIELDS(type, table, count, chunk, table_columns)                                   \
    .chunk_type = (chunk), .column_count = ARRAY_LEN(table_columns), .columns = (table_columns), \
    .entry_bytes = sizeof(struct type), .items_offset = offsetof(struct recording, table),       \
    .count_offset = offsetof(struct recording, count),                                           \
    .owner_offset = offsetof(struct recording_owner, table), .name = #table
#define ARRAY(type, table, count, chunk, table_columns)        \
    {                                                          \
        ARRAY_FIELDS(type, table, count, chunk, table_columns) \
    }
#define HISTORY(type, table, count, chunk, table_columns, mean_size)                \
    {                                                                               \
        ARRAY_FIELDS(type, table, count, chunk, table_columns), .mean = (mean_size) \
    }
#define SINGLE(label, chunk, table_columns)                                                     \
    {                                                                                           \
        .chunk_type = (chunk), .column_count = ARRAY_LEN(table_columns),                        \
        .columns = (table_columns), .entry_bytes = sizeof(struct recording), .is_single = true, \
        .name = (label)                                                                         \
    }

const struct rec_table rec_tables[REC_TABLE_COUNT] = {
    [REC_TABLE_META] = SINGLE("meta", CHUNK_META, meta_columns),
    [REC_TABLE_TOTALS] = SINGLE("totals", CHUNK_TOTALS, totals_columns),
    [REC_TABLE_STRINGS] = {.chunk_type = CHUNK_STRINGS, .name = "strings"},
    [REC_TABLE_COUNTERS] =
        ARRAY(rec_counter, counters, counter_count, CHUNK_COUNTERS, counter_columns),
    [REC_TABLE_PROCESSES] =
        ARRAY(rec_process, processes, process_count, CHUNK_PROCESSES, process_columns),
    [REC_TABLE_THREADS] = ARRAY(rec_thread, threads, thread_count, CHUNK_THREADS, thread_columns),
    [REC_TABLE_MODULES] = ARRAY(rec_module, modules, module_count, CHUNK_MODULES, module_columns),
    [REC_TABLE_SLICES] = ARRAY(rec_slice, slices, slice_count, CHUNK_SLICES, slice_columns),
    [REC_TABLE_RSS_SAMPLES] =
        ARRAY(rec_rss_sample, rss_samples, rss_sample_count, CHUNK_RSS_SAMPLES, rss_sample_columns),
    [REC_TABLE_FRAMES] = ARRAY(rec_frame, frames, frame_count, CHUNK_FRAMES, frame_columns),
    [REC_TABLE_NODES] = ARRAY(rec_node, nodes, node_count, CHUNK_NODES, node_columns),
    [REC_TABLE_ROWS] = ARRAY(rec_row, rows, row_count, CHUNK_ROWS, row_columns),
    [REC_TABLE_SYMBOLS] = ARRAY(rec_symbol, symbols, symbol_count, CHUNK_SYMBOLS, symbol_columns),
    [REC_TABLE_COHORTS] =
        HISTORY(rec_cohort, cohorts, cohort_count, CHUNK_COHORTS, cohort_columns, REC_MEAN_OF_ROW),
    [REC_TABLE_CELLS] =
        HISTORY(rec_cell, cells, cell_count, CHUNK_CELLS, cell_columns, REC_MEAN_OF_ROW),
    [REC_TABLE_SIZE_BUCKETS] = HISTORY(rec_bucket,
                                       size_buckets,
                                       size_bucket_count,
                                       CHUNK_SIZE_BUCKETS,
                                       bucket_columns,
                                       REC_MEAN_OF_BUCKET),
    [REC_TABLE_LIFETIME_BUCKETS] = HISTORY(rec_bucket,
                                           lifetime_buckets,
                                           lifetime_bucket_count,
                                           CHUNK_LIFETIME_BUCKETS,
                                           bucket_columns,
                                           REC_MEAN_OF_ROW),
    [REC_TABLE_MAPPINGS] =
        ARRAY(rec_mapping, mappings, mapping_count, CHUNK_MAPPINGS, mapping_columns),
    [REC_TABLE_ADHOC] = ARRAY(rec_adhoc, adhoc, adhoc_count, CHUNK_ADHOC, adhoc_columns),
    [REC_TABLE_REALLOCS] =
        ARRAY(rec_realloc, reallocs, realloc_count, CHUNK_REALLOCS, realloc_columns),
    [REC_TABLE_MEMORY_SNAPSHOTS] = ARRAY(rec_memory_snapshot,
                                         memory_snapshots,
                                         memory_snapshot_count,
                                         CHUNK_MEMORY_SNAPSHOTS,
                                         memory_snapshot_columns),
    [REC_TABLE_PARTS] = ARRAY(rec_part, parts, part_count, CHUNK_PARTS, part_columns),
    [REC_TABLE_SURVIVORS] =
        ARRAY(rec_survivor, survivors, survivor_count, CHUNK_SURVIVORS, survivor_columns),
    [REC_TABLE_MARKS] = ARRAY(rec_mark, marks, mark_count, CHUNK_MARKS, mark_columns),
    [REC_TABLE_UNRECORDED] =
        ARRAY(rec_unrecorded, unrecorded, unrecorded_count, CHUNK_UNRECORDED, unrecorded_columns),
    [REC_TABLE_HOOKS] = ARRAY(rec_hook, hooks, hook_count, CHUNK_HOOKS, hook_columns),
    [REC_TABLE_BLOCKS] = ARRAY(rec_block, blocks, block_count, CHUNK_BLOCKS, block_columns),
};

const struct rec_table *rec_table_find(uint32_t chunk_type)
{
    for (size_t i = 0; i < REC_TABLE_COUNT; i++) {
        if (rec_tables[i].chunk_type == chunk_type) {
            return &rec_tables[i];
        }
    }
    return NULL;
}

const struct rec_column *rec_column_find(const struct rec_table *table, uint8_t id)
{
    for (size_t i = 0; i < table->column_count; i++) {
        if (table->columns[i].id == id) {
            return &table->columns[i];
        }
    }
    return NULL;
}

void *rec_table_array(const struct rec_table *table, const struct recording *recording)
{
    void *items = NULL; // the fields are pointers of different types: copied, not aliased
    memcpy(&items, (const char *)recording + table->items_offset, sizeof(items));
    return items;
}

const void *rec_table_items(const struct rec_table *table, const struct recording *recording)
{
    return table->is_single ? recording : rec_table_array(table, recording);
}

size_t rec_table_count(const struct rec_table *table, const struct recording *recording)
{
    if (table->is_single) {
        return 1;
    }
    size_t count = 0;
    memcpy(&count, (const char *)recording + table->count_offset, sizeof(count));
    return count;
}

void rec_column_gather(const struct rec_column *column,
                       const void *entries,
                       size_t entry_bytes,
                       uint64_t *values,
                       size_t count)
{
    const char *field = (const char *)entries + column->offset;
    if (column->width_bytes == sizeof(uint32_t)) {
        for (size_t i = 0; i < count; i++, field += entry_bytes) {
            uint32_t value = 0;
            memcpy(&value, field, sizeof(value));
            values[i] = value;
        }
        return;
    }
    for (size_t i = 0; i < count; i++, field += entry_bytes) {
        memcpy(&values[i], field, sizeof(values[i]));
    }
}

bool rec_column_scatter(const struct rec_column *column,
                        void *entries,
                        size_t entry_bytes,
                        const uint64_t *values,
                        size_t count)
{
    char *field = (char *)entries + column->offset;
    uint64_t all = 0;
    if (column->width_bytes == sizeof(uint64_t)) {
        for (size_t i = 0; i < count; i++, field += entry_bytes) {
            memcpy(field, &values[i], sizeof(values[i]));
        }
        return true;
    }
    for (size_t i = 0; i < count; i++, field += entry_bytes) {
        const uint32_t narrow = (uint32_t)values[i];
        all |= values[i];
        memcpy(field, &narrow, sizeof(narrow));
    }
    return all <= UINT32_MAX;
}

uint64_t rec_column_get(const struct rec_column *column, const void *entry)
{
    uint64_t value = 0;
    rec_column_gather(column, entry, 0, &value, 1);
    return value;
}
