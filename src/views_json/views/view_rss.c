// SPDX-License-Identifier: MIT
// view_rss: the parts of resident memory: samples over time, breakdowns of memory snapshots by
// kind, and the mappings of some breakdowns.
#include "base/compiler.h"
#include "profile/tables/rss_allocators.h"
#include "views_json/layout/view_csv.h"
#include "views_json/views/views.h"

static const struct column sample_columns[] = {
    COLUMN(CELL_U64, rss_breakdown_sample, time_ms),
    COLUMN(CELL_U64, rss_breakdown_sample, rss_bytes),
    COLUMN(CELL_OPTIONAL, rss_breakdown_sample, anonymous_bytes),
    COLUMN(CELL_OPTIONAL, rss_breakdown_sample, file_bytes),
    COLUMN(CELL_OPTIONAL, rss_breakdown_sample, shmem_bytes),
    COLUMN(CELL_OPTIONAL, rss_breakdown_sample, swap_bytes),
    COLUMN(CELL_OPTIONAL, rss_breakdown_sample, minor_faults),
    COLUMN(CELL_OPTIONAL, rss_breakdown_sample, major_faults),
    COLUMN(CELL_OPTIONAL, rss_breakdown_sample, break_bytes),
    COLUMN(CELL_OPTIONAL, rss_breakdown_sample, data_bytes),
    COLUMN(CELL_OPTIONAL, rss_breakdown_sample, mapped_bytes),
    COLUMN(CELL_OPTIONAL, rss_breakdown_sample, live_bytes),
    COLUMN(CELL_OPTIONAL, rss_breakdown_sample, other_anonymous_bytes),
};

static void forget_figure(uint64_t *value, bool is_known)
{
    *value = is_known ? *value : VALUE_UNKNOWN;
}

// Write figures that were not sampled as unknown, not as 0.
static void write_samples(struct view *view, const struct rss_breakdown *rss_breakdown)
{
    CLEANUP(rss_breakdown_sample_vec_release) struct rss_breakdown_sample_vec rows = {0};
    const struct rss_breakdown_knows knows = rss_breakdown_knows(rss_breakdown);
    for (size_t i = 0; i < rss_breakdown->samples.len; i++) {
        struct rss_breakdown_sample row = rss_breakdown->samples.items[i];
        forget_figure(&row.anonymous_bytes, knows.kinds);
        forget_figure(&row.file_bytes, knows.kinds);
        forget_figure(&row.shmem_bytes, knows.kinds);
        forget_figure(&row.swap_bytes, knows.kinds);
        forget_figure(&row.minor_faults, knows.faults);
        forget_figure(&row.major_faults, knows.faults);
        forget_figure(&row.break_bytes, knows.areas);
        forget_figure(&row.data_bytes, knows.areas);
        forget_figure(&row.mapped_bytes, knows.areas);
        forget_figure(&row.live_bytes, row.has_live);
        forget_figure(&row.other_anonymous_bytes, row.has_live && knows.kinds);
        rss_breakdown_sample_vec_add(&rows, row);
    }
    view_table(view, &TABLE("samples", sample_columns, rows.items, rows.len));
}

static const struct column kind_columns[] = {
    COLUMN(CELL_TEXT, rss_breakdown_kind, key),
    COLUMN(CELL_TEXT, rss_breakdown_kind, phrase),
};

static void write_kinds(struct view *view)
{
    struct rss_breakdown_kind rows[REC_PART_KINDS];
    for (uint32_t kind = 1; kind <= REC_PART_KINDS; kind++) {
        rows[kind - 1] = *rss_breakdown_kind(kind);
    }
    view_table(view, &TABLE("kinds", kind_columns, rows, ARRAY_LEN(rows)));
}

// One mapping, or several merged ones.
struct mapping_row {
    uint32_t pid;
    const char *kind;
    struct rss_breakdown_part part;
    struct place place; // the call site that mapped it
    struct frame_list frames;
    size_t first_frame; // in mapping_list.locations
};

DEFINE_VEC(mapping_row_vec, struct mapping_row);

static const struct column mapping_columns[] = {
    COLUMN(CELL_U32, mapping_row, pid),
    COLUMN(CELL_TEXT, mapping_row, kind),
    COLUMN_AS("path", CELL_STRING, mapping_row, part.path),
    COLUMN_AS("allocator", CELL_STRING, mapping_row, part.allocator),
    COLUMN_AS("areas", CELL_U32, mapping_row, part.areas),
    COLUMN_AS("rss_bytes", CELL_U64, mapping_row, part.rss_bytes),
    COLUMN_AS("virtual_bytes", CELL_U64, mapping_row, part.virtual_bytes),
    COLUMN_AS("swap_bytes", CELL_U64, mapping_row, part.swap_bytes),
    COLUMN_AS("huge_bytes", CELL_U64, mapping_row, part.huge_bytes),
    COLUMN_AS("blank_bytes", CELL_U64, mapping_row, part.blank_bytes),
    COLUMN_AS("is_estimate", CELL_BOOL, mapping_row, part.is_estimate),
    COLUMN(CELL_LOCATION, mapping_row, place),
    COLUMN(CELL_FRAMES, mapping_row, frames),
};

struct mapping_list {
    struct mapping_row_vec rows;
    struct u32_vec locations; // of the frames of all rows
    struct u32_vec inlined;
};

static void mapping_list_release(struct mapping_list *list)
{
    mapping_row_vec_release(&list->rows);
    u32_vec_release(&list->locations);
    u32_vec_release(&list->inlined);
}

static MUST_USE enum err add_mapping(const struct profile *profile,
                                     const struct rss_breakdown_part *part,
                                     struct mapping_list *out)
{
    struct mapping_row row = {
        .pid = profile->recording.processes[part->process].pid,
        .kind = rss_breakdown_kind(part->kind)->key,
        .part = *part,
        .place = {SIDE_NEW, REC_NONE},
        .first_frame = out->locations.len,
    };
    if (part->node != REC_NONE) {
        row.place.location = profile_call_site(profile, part->node).location;
    }
    TRY(rss_breakdown_stack(profile, part->node, &out->locations, &out->inlined));
    row.frames.count = out->locations.len - row.first_frame;
    return mapping_row_vec_push(&out->rows, row);
}

// List the mappings of one breakdown, or of all that list theirs.
static MUST_USE enum err list_mappings(const struct profile *profile,
                                       const struct rss_breakdown_split *splits,
                                       const struct flag_vec *details,
                                       size_t first,
                                       size_t end,
                                       struct mapping_list *out)
{
    for (size_t i = first; i < end; i++) {
        for (size_t p = 0; details->items[i] != 0 && p < splits[i].parts.len; p++) {
            TRY(add_mapping(profile, &splits[i].parts.items[p], out));
        }
    }
    for (size_t i = 0; i < out->rows.len; i++) {
        struct mapping_row *row = &out->rows.items[i];
        row->frames.locations = out->locations.items + row->first_frame;
        row->frames.inlined = out->inlined.items + row->first_frame;
    }
    return ERR_OK;
}

// A survivor of one breakdown.
struct survivor_row {
    uint64_t time_ms; // of the breakdown
    struct rss_breakdown_survivor survivor;
    struct place place;
};

DEFINE_VEC(survivor_row_vec, struct survivor_row);

static const struct column survivor_columns[] = {
    COLUMN(CELL_U64, survivor_row, time_ms),
    COLUMN_AS("blocks", CELL_U64, survivor_row, survivor.blocks),
    COLUMN_AS("block_bytes", CELL_U64, survivor_row, survivor.block_bytes),
    COLUMN_AS("held_bytes", CELL_U64, survivor_row, survivor.held_bytes),
    COLUMN_AS("oldest_ms", CELL_U64, survivor_row, survivor.oldest_ms),
    COLUMN_AS("newest_ms", CELL_U64, survivor_row, survivor.newest_ms),
    COLUMN(CELL_LOCATION, survivor_row, place),
};

// Write the survivors of the breakdowns that list their mappings.
static void write_survivors(struct view *view,
                            const struct rss_breakdown *rss_breakdown,
                            const struct flag_vec *details)
{
    CLEANUP(survivor_row_vec_release) struct survivor_row_vec rows = {0};
    for (size_t i = 0; i < rss_breakdown->splits.len; i++) {
        const struct rss_breakdown_split *split = &rss_breakdown->splits.items[i];
        for (size_t k = 0; details->items[i] != 0 && k < split->survivors.len; k++) {
            const struct rss_breakdown_survivor *survivor = &split->survivors.items[k];
            survivor_row_vec_add(&rows,
                                 (struct survivor_row){.time_ms = split->time_ms,
                                                       .survivor = *survivor,
                                                       .place = {SIDE_NEW, survivor->location}});
        }
    }
    view_table(view, &TABLE("survivors", survivor_columns, rows.items, rows.len));
}

// An allocator in one breakdown.
struct allocator_row {
    uint64_t time_ms; // of the breakdown
    struct rss_allocator allocator;
    uint64_t released_bytes; // VALUE_UNKNOWN: not known
};

DEFINE_VEC(allocator_row_vec, struct allocator_row);

static const struct column allocator_columns[] = {
    COLUMN(CELL_U64, allocator_row, time_ms),
    COLUMN_AS("name", CELL_TEXT, allocator_row, allocator.name),
    COLUMN_AS("module", CELL_STRING, allocator_row, allocator.module),
    COLUMN_AS("live_bytes", CELL_U64, allocator_row, allocator.live_bytes),
    COLUMN_AS("rounding_bytes", CELL_U64, allocator_row, allocator.rounding_bytes),
    COLUMN_AS("kept_bytes", CELL_U64, allocator_row, allocator.kept_bytes),
    COLUMN_AS("rest_bytes", CELL_U64, allocator_row, allocator.rest_bytes),
    COLUMN_AS("released_bytes", CELL_OPTIONAL, allocator_row, released_bytes),
};

// Write the allocators of the breakdowns that list their mappings.
static MUST_USE enum err write_allocators(struct view *view,
                                          const struct rss_breakdown *rss_breakdown,
                                          const struct flag_vec *details)
{
    CLEANUP(allocator_row_vec_release) struct allocator_row_vec rows = {0};
    for (size_t i = 0; i < rss_breakdown->splits.len; i++) {
        const struct rss_breakdown_split *split = &rss_breakdown->splits.items[i];
        CLEANUP(rss_allocator_vec_release) struct rss_allocator_vec all = {0};
        TRY(details->items[i] != 0 ? rss_allocators_list(view->profile, split, &all) : ERR_OK);
        for (size_t k = 0; k < all.len; k++) {
            const struct allocator_row row = {.time_ms = split->time_ms,
                                              .allocator = all.items[k],
                                              .released_bytes = split->knows_release
                                                                    ? all.items[k].released_bytes
                                                                    : VALUE_UNKNOWN};
            TRY(allocator_row_vec_push(&rows, row));
        }
    }
    view_table(view, &TABLE("allocators", allocator_columns, rows.items, rows.len));
    return ERR_OK;
}

// A breakdown of one memory snapshot.
struct breakdown_row {
    struct rss_breakdown_split split;
    uint64_t age_ms;
    bool is_of_peak;
    bool has_mappings;
    bool is_peak;
    bool is_last;
    bool was_asked;
    bool at_exit;
    bool live_is_estimate;
    uint64_t mapping_first;
    uint64_t mapping_count;
};

DEFINE_VEC(breakdown_row_vec, struct breakdown_row);

#define KIND_COLUMN(key, kind) COLUMN_AS(key, CELL_U64, breakdown_row, split.bytes[kind])

static const struct column breakdown_columns[] = {
    COLUMN_AS("time_ms", CELL_U64, breakdown_row, split.time_ms),
    COLUMN(CELL_U64, breakdown_row, age_ms),
    COLUMN_AS("processes", CELL_U32, breakdown_row, split.processes),
    COLUMN_AS("rss_bytes", CELL_U64, breakdown_row, split.rss_bytes),
    COLUMN_AS("repeated_bytes", CELL_U64, breakdown_row, split.repeated_bytes),
    COLUMN_AS("swap_bytes", CELL_U64, breakdown_row, split.swap_bytes),
    COLUMN_AS("requested_bytes", CELL_U64, breakdown_row, split.requested_bytes),
    KIND_COLUMN("live_bytes", REC_PART_LIVE),
    KIND_COLUMN("rounding_bytes", REC_PART_ROUNDING),
    KIND_COLUMN("kept_bytes", REC_PART_KEPT),
    KIND_COLUMN("mapped_bytes", REC_PART_MAPPED),
    KIND_COLUMN("stack_bytes", REC_PART_STACK),
    KIND_COLUMN("file_bytes", REC_PART_FILE),
    KIND_COLUMN("shared_bytes", REC_PART_SHARED),
    KIND_COLUMN("own_bytes", REC_PART_OWN),
    KIND_COLUMN("rest_bytes", REC_PART_REST),
    COLUMN_AS("empty_page_bytes", CELL_U64, breakdown_row, split.empty_page_bytes),
    COLUMN_AS("sparse_page_bytes", CELL_U64, breakdown_row, split.sparse_page_bytes),
    COLUMN_AS("sparse_block_bytes", CELL_U64, breakdown_row, split.sparse_block_bytes),
    COLUMN(CELL_BOOL, breakdown_row, is_peak),
    COLUMN(CELL_BOOL, breakdown_row, is_last),
    COLUMN(CELL_BOOL, breakdown_row, is_of_peak),
    COLUMN(CELL_BOOL, breakdown_row, was_asked),
    COLUMN(CELL_BOOL, breakdown_row, at_exit),
    COLUMN(CELL_BOOL, breakdown_row, live_is_estimate),
    COLUMN(CELL_BOOL, breakdown_row, has_mappings),
    COLUMN_WHEN(WHEN_COLUMNS, CELL_U64, breakdown_row, mapping_first),
    COLUMN_WHEN(WHEN_COLUMNS, CELL_U64, breakdown_row, mapping_count),
};

static void list_breakdowns(const struct view *view,
                            const struct rss_breakdown *rss_breakdown,
                            const struct flag_vec *details,
                            struct breakdown_row_vec *out)
{
    uint64_t mappings = 0;
    for (size_t i = 0; i < rss_breakdown->splits.len; i++) {
        const struct rss_breakdown_split *split = &rss_breakdown->splits.items[i];
        const struct breakdown_row row = {
            .split = *split,
            .age_ms = rss_breakdown_split_age_ms(view->profile, split),
            .is_of_peak = rss_breakdown_is_of_peak(rss_breakdown, split),
            .has_mappings = split->parts.len > 0,
            .is_peak = (split->flags & REC_SNAPSHOT_PEAK) != 0,
            .is_last = (split->flags & REC_SNAPSHOT_LAST) != 0,
            .was_asked = (split->flags & REC_SNAPSHOT_ASKED) != 0,
            .at_exit = (split->flags & REC_SNAPSHOT_AT_EXIT) != 0,
            .live_is_estimate = rss_breakdown_is_estimate(split, REC_PART_LIVE),
            .mapping_first = mappings,
            .mapping_count = details->items[i] != 0 ? split->parts.len : 0,
        };
        mappings += row.mapping_count;
        breakdown_row_vec_add(out, row);
    }
}

// Write each breakdown with its mappings.
static MUST_USE enum err write_nested(struct view *view,
                                      const struct table *table,
                                      const struct rss_breakdown *rss_breakdown,
                                      const struct flag_vec *details)
{
    json_key_array(view->w, table->key);
    for (size_t i = 0; i < table->count; i++) {
        CLEANUP(mapping_list_release) struct mapping_list list = {0};
        TRY(list_mappings(view->profile, rss_breakdown->splits.items, details, i, i + 1, &list));
        json_begin_object(view->w);
        view_row(view, table, i);
        view_table(view, &TABLE("mappings", mapping_columns, list.rows.items, list.rows.len));
        json_end_object(view->w);
    }
    json_end_array(view->w);
    return ERR_OK;
}

enum err view_rss(struct view *view,
                  const struct rss_breakdown *rss_breakdown,
                  const struct flag_vec *details)
{
    CLEANUP(breakdown_row_vec_release) struct breakdown_row_vec rows = {0};
    CLEANUP(mapping_list_release) struct mapping_list list = {0};
    json_key_u64(view->w, "peak_rss_bytes", rss_breakdown->peak_rss_bytes);
    json_key_u64(view->w, "peak_rss_at_most_bytes", rss_breakdown->peak_rss_at_most);
    json_key_u64(view->w, "peak_rss_ms", rss_breakdown->peak_rss_ms);
    write_samples(view, rss_breakdown);
    write_kinds(view);
    write_survivors(view, rss_breakdown, details);
    TRY(write_allocators(view, rss_breakdown, details));
    list_breakdowns(view, rss_breakdown, details, &rows);
    const struct table table = TABLE("breakdowns", breakdown_columns, rows.items, rows.len);
    if (view_nests(view)) {
        return write_nested(view, &table, rss_breakdown, details);
    }
    view_table(view, &table);
    TRY(list_mappings(view->profile, rss_breakdown->splits.items, details, 0, rows.len, &list));
    view_table(view, &TABLE("mappings", mapping_columns, list.rows.items, list.rows.len));
    return ERR_OK;
}
