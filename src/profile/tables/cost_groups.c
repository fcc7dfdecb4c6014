// SPDX-License-Identifier: MIT
#include "profile/tables/cost_groups.h"

#include <inttypes.h>

#include "base/compiler.h"
#include "base/order.h"
#include "profile/tables/histogram.h"
#include "profile/tables/summary.h"

const char *cost_group_by_name(enum cost_group_by by)
{
    static const char *const names[COST_GROUPS_BY_COUNT] = {
        [COST_GROUPS_BY_FUNCTION] = "function", [COST_GROUPS_BY_FILE] = "file",
        [COST_GROUPS_BY_MODULE] = "module",     [COST_GROUPS_BY_THREAD] = "thread",
        [COST_GROUPS_BY_PROCESS] = "process",   [COST_GROUPS_BY_SIZE] = "size",
    };
    return by < COST_GROUPS_BY_COUNT ? names[by] : "";
}

// Group by an id that each call site has.
static MUST_USE enum err by_site(const struct selection *selection, struct cost_groups *out)
{
    const struct code_index *code = &selection->profile->code;
    bool is_file = out->by == COST_GROUPS_BY_FILE;
    size_t count = is_file ? string_table_count(&code->names) : code->functions.len;
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    CLEANUP(u32_vec_release) struct u32_vec places = {0}; // group + 1; the last is for no stack
    TRY(call_sites_build_alone(selection, &sites));
    TRY(u32_vec_resize(&places, count + 1));
    for (size_t i = 0; i < sites.sites.len; i++) {
        const struct call_site *site = &sites.sites.items[i];
        uint32_t id = REC_NONE;
        if (site->location != REC_NONE) {
            const struct code_location *location = &code->locations.items[site->location];
            id = is_file ? location->file : location->function;
        }
        uint32_t *place = &places.items[id != REC_NONE ? id : count];
        if (*place == 0) {
            TRY(cost_group_vec_push(&out->items, (struct cost_group){.id = id}));
            *place = (uint32_t)out->items.len;
        }
        costs_add(&out->items.items[*place - 1].costs, &site->costs);
    }
    return ERR_OK;
}

static MUST_USE enum err by_table(const struct selection *selection, struct cost_groups *out)
{
    static const enum group_by tables[] = {[COST_GROUPS_BY_MODULE] = GROUP_BY_MODULE,
                                           [COST_GROUPS_BY_THREAD] = GROUP_BY_THREAD,
                                           [COST_GROUPS_BY_PROCESS] = GROUP_BY_PROCESS};
    CLEANUP(group_vec_release) struct group_vec groups = {0};
    TRY(groups_build(selection, tables[out->by], &groups));
    for (size_t i = 0; i < groups.len; i++) {
        struct cost_group group = {.id = groups.items[i].id, .costs = groups.items[i].costs};
        if (costs_any(&group.costs)) {
            TRY(cost_group_vec_push(&out->items, group));
        }
    }
    return ERR_OK;
}

// The smallest n with size < 2^n, + 1: 1 for 0 bytes, 2 for 1, 3 for 2 and 3, ...
static uint32_t octave_of(uint64_t size_bytes)
{
    return size_bytes == 0 ? 1 : 65 - (uint32_t)__builtin_clzll(size_bytes);
}

static MUST_USE enum err by_size(const struct selection *selection, struct cost_groups *out)
{
    CLEANUP(histogram_release) struct histogram histogram = {0};
    TRY(histogram_build(selection, HISTOGRAM_SIZES, false, 0, &histogram));
    for (size_t i = 0; i < histogram.total.len; i++) {
        const struct bucket_amount *amount = &histogram.total.items[i];
        uint32_t octave = octave_of(rec_bucket_low(histogram.first_bucket + (uint32_t)i));
        if (amount->count == 0) {
            continue;
        }
        if (out->items.len == 0 || out->items.items[out->items.len - 1].id != octave) {
            TRY(cost_group_vec_push(&out->items, (struct cost_group){.id = octave}));
        }
        struct costs *costs = &out->items.items[out->items.len - 1].costs;
        const struct costs part = histogram_costs(&histogram, i);
        costs_add(costs, &part);
    }
    return ERR_OK;
}

static int compare_groups(const void *left, const void *right, void *context)
{
    const struct cost_group *a = left;
    const struct cost_group *b = right;
    enum cost cost = *(const enum cost *)context;
    return order_u64(costs_get(&b->costs, cost), costs_get(&a->costs, cost))
               ?: order_u64(a->id, b->id);
}

uint32_t cost_groups_unknown(const struct selection *selection, enum cost_group_by by)
{
    static const uint32_t all = (1U << COST_COUNT) - 1;
    static const uint32_t of_sizes = 1U << COST_ALLOCATIONS | 1U << COST_ALLOCATED_BYTES;
    return selection->unknown | (by == COST_GROUPS_BY_SIZE ? all & ~of_sizes : 0);
}

enum err cost_groups_build(const struct selection *selection,
                           enum cost_group_by by,
                           enum cost cost,
                           struct cost_groups *out)
{
    static enum err (*const builders[])(const struct selection *, struct cost_groups *) = {
        [COST_GROUPS_BY_FUNCTION] = by_site, [COST_GROUPS_BY_FILE] = by_site,
        [COST_GROUPS_BY_MODULE] = by_table,  [COST_GROUPS_BY_THREAD] = by_table,
        [COST_GROUPS_BY_PROCESS] = by_table, [COST_GROUPS_BY_SIZE] = by_size,
    };
    CLEANUP(cost_groups_release)
    struct cost_groups groups = {
        .profile = selection->profile, .by = by, .unknown = cost_groups_unknown(selection, by)};
    if (by < COST_GROUPS_BY_COUNT) {
        TRY(builders[by](selection, &groups));
    }
    if (by != COST_GROUPS_BY_SIZE) {
        cost_group_vec_sort_by(&groups.items, compare_groups, &cost);
    }
    *out = TAKE(groups);
    return ERR_OK;
}

void cost_groups_release(struct cost_groups *groups)
{
    cost_group_vec_release(&groups->items);
}

void cost_group_append_name(const struct cost_groups *groups, size_t index, struct strbuf *out)
{
    const struct profile *profile = groups->profile;
    const struct recording *recording = &profile->recording;
    uint32_t id = groups->items.items[index].id;
    uint64_t low;
    switch (groups->by) {
    case COST_GROUPS_BY_FUNCTION:
        strbuf_append_text(out, id == REC_NONE
                                    ? ""
                                    : string_table_get(&profile->code.names,
                                                       profile->code.functions.items[id].name));
        return;
    case COST_GROUPS_BY_FILE:
        strbuf_append_text(out, id == REC_NONE ? "" : string_table_get(&profile->code.names, id));
        return;
    case COST_GROUPS_BY_MODULE:
        strbuf_append_text(out, profile_module_path(profile, id));
        return;
    case COST_GROUPS_BY_THREAD:
        strbuf_append_text(out, profile_string(profile, recording->threads[id].name));
        return;
    case COST_GROUPS_BY_PROCESS:
        strbuf_append_text(out, profile_string(profile, recording->processes[id].executable));
        return;
    case COST_GROUPS_BY_SIZE:
        low = id > 1 ? UINT64_C(1) << (id - 2) : 0;
        strbuf_printf(out, "%" PRIu64 "..%" PRIu64, low, low == 0 ? 0 : low + (low - 1));
        return;
    case COST_GROUPS_BY_COUNT:
        return;
    }
}

void cost_group_append_detail(const struct cost_groups *groups, size_t index, struct strbuf *out)
{
    const struct recording *recording = &groups->profile->recording;
    uint32_t id = groups->items.items[index].id;
    switch (groups->by) {
    case COST_GROUPS_BY_FUNCTION:
        if (id != REC_NONE) {
            strbuf_append_text(
                out, profile_module_path(groups->profile,
                                         groups->profile->code.functions.items[id].module));
        }
        return;
    case COST_GROUPS_BY_THREAD:
        strbuf_printf(out, "%" PRIu32, recording->threads[id].thread_id);
        return;
    case COST_GROUPS_BY_PROCESS:
        strbuf_printf(out, "%" PRIu32, recording->processes[id].pid);
        return;
    case COST_GROUPS_BY_FILE:
    case COST_GROUPS_BY_MODULE:
    case COST_GROUPS_BY_SIZE:
    case COST_GROUPS_BY_COUNT:
        return;
    }
}
