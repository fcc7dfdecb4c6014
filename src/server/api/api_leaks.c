// SPDX-License-Identifier: MIT
// api_leaks: /api/v1/leaks: what is alive at the end, and how it grew.
#include "base/compiler.h"
#include "profile/time/growth.h"
#include "server/api/api.h"
#include "server/columns/columns.h"
#include "server/columns/told_stacks.h"

enum {
    LEAKS_BY_DEFAULT = 100
};

static const uint64_t costs_by_default =
    (uint64_t)1 << COST_LEAKED_BYTES | (uint64_t)1 << COST_LEAKED_ALLOCATIONS |
    (uint64_t)1 << COST_ALLOCATIONS | (uint64_t)1 << COST_ALLOCATED_BYTES;

static void keep_class(struct growth_entry_vec *entries, enum growth_class class)
{
    size_t kept = 0;
    for (size_t i = 0; i < entries->len; i++) {
        if (entries->items[i].class == class) {
            entries->items[kept++] = entries->items[i];
        }
    }
    entries->len = kept;
}

static const struct row_group *group_of(const struct growth *growth, size_t entry)
{
    return &growth->groups.groups.items[growth->entries.items[entry].group];
}

static void
write_site_columns(const struct growth *growth, struct code_tables *tables, struct json_writer *w)
{
    const struct call_site *sites = growth->groups.sites.sites.items;
    size_t count = growth->entries.len;
    column_begin(w, "location");
    for (size_t i = 0; i < count; i++) {
        uint32_t location = sites[group_of(growth, i)->site].location;
        json_position(w, code_tables_location(tables, SIDE_NEW, location));
    }
    column_end(w);
    column_begin(w, "inlined");
    for (size_t i = 0; i < count; i++) {
        json_bool(w, sites[group_of(growth, i)->site].is_inlined);
    }
    column_end(w);
    column_begin(w, "stack_count");
    for (size_t i = 0; i < count; i++) {
        json_u64(w, group_of(growth, i)->stack_count);
    }
    column_end(w);
}

static void write_time(struct json_writer *w, uint32_t slice, uint64_t slice_ms, uint32_t end)
{
    if (slice == REC_NONE) {
        json_null(w);
    } else {
        json_u64(w, (slice + (uint64_t)end) * slice_ms);
    }
}

static void write_growth_columns(const struct growth *growth, struct json_writer *w)
{
    uint64_t slice_ms = growth->groups.profile->recording.slice_ms;
    const struct growth_entry_vec *entries = &growth->entries;
    column_begin(w, "growth");
    for (size_t i = 0; i < entries->len; i++) {
        json_string(w, growth_class_name(entries->items[i].class));
    }
    column_end(w);
    column_begin(w, "growth_confidence");
    for (size_t i = 0; i < entries->len; i++) {
        json_string(w, growth_confidence_name(entries->items[i].confidence));
    }
    column_end(w);
    column_begin(w, "slope_bytes_per_s");
    for (size_t i = 0; i < entries->len; i++) {
        if (entries->items[i].class == GROWTH_GROWING) {
            json_double(w, entries->items[i].slope_bytes_per_s);
        } else {
            json_null(w);
        }
    }
    column_end(w);
    column_begin(w, "latest_kept_ms");
    for (size_t i = 0; i < entries->len; i++) {
        write_time(w, entries->items[i].latest_birth_slice, slice_ms, 1);
    }
    column_end(w);
    column_begin(w, "first_ms");
    for (size_t i = 0; i < entries->len; i++) {
        write_time(w, entries->items[i].first_slice, slice_ms, 0);
    }
    column_end(w);
    column_begin(w, "last_ms");
    for (size_t i = 0; i < entries->len; i++) {
        write_time(w, entries->items[i].last_slice, slice_ms, 1);
    }
    column_end(w);
}

static MUST_USE enum err
write_costs(const struct question *q, const struct growth *growth, struct json_writer *w)
{
    CLEANUP(costs_vec_release) struct costs_vec costs = {0};
    TRY(costs_vec_resize(&costs, growth->entries.len));
    for (size_t i = 0; i < costs.len; i++) {
        costs.items[i] = group_of(growth, i)->costs;
    }
    uint64_t bits = request_number(q->request, PARAM_COSTS, costs_by_default);
    costs_table(w, "costs", bits, costs.items, costs.len);
    return ERR_OK;
}

static MUST_USE enum err
tell_stacks(const struct growth *growth, struct code_tables *tables, struct told_stacks *told)
{
    for (size_t i = 0; i < growth->entries.len; i++) {
        uint32_t stack = group_of(growth, i)->stack;
        // By call site there is no single stack: the root's, which has no frames.
        TRY(told_stacks_add(told, &growth->groups.sites.tree, stack != REC_NONE ? stack : 0,
                            tables));
    }
    return ERR_OK;
}

// The rules that took something out.
static void write_suppressions(const struct question *q, struct json_writer *w)
{
    static const struct {
        const char *key;
        size_t offset;
    } numbers[] = {
        {"stack_count", offsetof(struct suppression_match, stack_count)},
        {"leaked_bytes", offsetof(struct suppression_match, leaked_bytes)},
        {"leaked_allocations", offsetof(struct suppression_match, leaked_allocations)},
    };
    const struct suppression_match_vec *matches = &q->selection.matches;
    size_t count = 0;
    for (size_t i = 0; i < matches->len; i++) {
        count += matches->items[i].stack_count > 0;
    }
    table_begin(w, "suppressions", count);
    column_begin(w, "pattern");
    for (size_t i = 0; i < matches->len; i++) {
        if (matches->items[i].stack_count > 0) {
            json_string(w, suppression_pattern(q->filter.suppressions, i));
        }
    }
    column_end(w);
    for (size_t n = 0; n < ARRAY_LEN(numbers); n++) {
        column_begin(w, numbers[n].key);
        for (size_t i = 0; i < matches->len; i++) {
            if (matches->items[i].stack_count > 0) {
                json_u64(w,
                         *(const uint64_t *)((const char *)&matches->items[i] + numbers[n].offset));
            }
        }
        column_end(w);
    }
    table_end(w);
}

enum err api_leaks(struct question *q, struct json_writer *w)
{
    CLEANUP(code_tables_release) struct code_tables tables = {.code = q->code};
    CLEANUP(told_stacks_release) struct told_stacks told = {0};
    CLEANUP(growth_release) struct growth growth = {0};
    uint64_t by = request_number(q->request, PARAM_SITES_BY, ROW_GROUPS_BY_SITE);
    uint64_t limit = request_number(q->request, PARAM_LIMIT, LEAKS_BY_DEFAULT);
    bool has_class = request_has(q->request, PARAM_GROWTH);
    TRY(growth_build(&q->selection, (enum row_group_by)by,
                     limit == 0 || has_class ? SIZE_MAX : limit, &growth));
    if (has_class) {
        keep_class(&growth.entries, (enum growth_class)request_number(q->request, PARAM_GROWTH, 0));
    }
    size_t count = growth.entries.len;
    json_key_u64(w, "total_count", count);
    growth.entries.len = limit > 0 && limit < count ? limit : count;
    TRY(tell_stacks(&growth, &tables, &told));
    table_begin(w, "leaks", growth.entries.len);
    write_site_columns(&growth, &tables, w);
    told_stacks_write_columns(&told, 0, growth.entries.len, w);
    TRY(write_costs(q, &growth, w));
    write_growth_columns(&growth, w);
    table_end(w);
    told_stacks_write_frames(&told, w);
    write_suppressions(q, w);
    return code_tables_write(&tables, w);
}
