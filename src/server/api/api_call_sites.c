// SPDX-License-Identifier: MIT
// api_call_sites: /api/v1/call_sites: the lines that asked for memory, of one recording or two.
//
// Of two, sites are merged by function, since lines move from build to build.
#include <stdlib.h>

#include "base/compiler.h"
#include "profile/calls/call_sites.h"
#include "server/api/api.h"
#include "server/columns/columns.h"
#include "server/columns/told_stacks.h"

enum {
    SITES_BY_DEFAULT = 100
};

// A site as it is shown.
struct shown_site {
    enum side side;
    uint32_t location;
    bool is_inlined;
    uint32_t stack_count;
    uint32_t site; // in call_sites.sites of the new side, without a diff
    uint64_t score;
    struct costs costs[SIDE_COUNT];
};

DEFINE_VEC(shown_site_vec, struct shown_site);

static size_t limited(const struct question *q, size_t count, uint64_t otherwise)
{
    uint64_t limit = request_number(q->request, PARAM_LIMIT, otherwise);
    return limit > 0 && limit < count ? limit : count;
}

static MUST_USE enum err
collect_alone(struct question *q, const struct call_sites *sites, struct shown_site_vec *out)
{
    CLEANUP(u32_vec_release) struct u32_vec ids = {0};
    TRY(call_sites_ranked(sites, q->sort, &ids));
    for (size_t i = 0; i < ids.len; i++) {
        const struct call_site *site = &sites->sites.items[ids.items[i]];
        struct shown_site shown = {.side = SIDE_NEW,
                                   .location = site->location,
                                   .is_inlined = site->is_inlined,
                                   .stack_count = site->stack_count,
                                   .site = ids.items[i],
                                   .costs = {site->costs}};
        TRY(shown_site_vec_push(out, shown));
    }
    return ERR_OK;
}

// Adds the sites of one side. `place_of` has the place in `out` of each function of the union, and
// one more for allocations without a stack.
static MUST_USE enum err
merge_side(struct question *q, enum side side, struct u32_vec *place_of, struct shown_site_vec *out)
{
    const struct profile *profile = q->code->profiles[side];
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    TRY(call_sites_build(side == SIDE_NEW ? &q->selection : &q->old_selection, &sites));
    for (size_t i = 0; i < sites.sites.len; i++) {
        const struct call_site *site = &sites.sites.items[i];
        uint32_t function = (uint32_t)place_of->len - 1;
        if (site->location != REC_NONE) {
            uint32_t own = profile_location_get(profile, site->location)->function;
            function = q->code->ids[side].items[own];
        }
        uint32_t *place = &place_of->items[function];
        if (*place == REC_NONE) {
            struct shown_site shown = {
                .side = side, .location = site->location, .is_inlined = site->is_inlined};
            *place = (uint32_t)out->len;
            TRY(shown_site_vec_push(out, shown));
        }
        struct shown_site *shown = &out->items[*place];
        shown->stack_count += shown->side == side ? site->stack_count : 0;
        costs_add(&shown->costs[side], &site->costs);
    }
    return ERR_OK;
}

static int compare_shown(const void *left, const void *right)
{
    const struct shown_site *a = left;
    const struct shown_site *b = right;
    if (a->score != b->score) {
        return a->score > b->score ? -1 : 1;
    }
    if (a->side != b->side) {
        return a->side < b->side ? -1 : 1;
    }
    return a->location < b->location ? -1 : a->location > b->location;
}

static MUST_USE enum err collect_both(struct question *q, struct shown_site_vec *out)
{
    enum side_score score =
        (enum side_score)request_number(q->request, PARAM_SORT_BY, SCORE_LARGER);
    CLEANUP(u32_vec_release) struct u32_vec place_of = {0};
    TRY(u32_vec_resize(&place_of, q->code->origins.len + 1));
    for (size_t i = 0; i < place_of.len; i++) {
        place_of.items[i] = REC_NONE;
    }
    TRY(merge_side(q, SIDE_NEW, &place_of, out));
    TRY(merge_side(q, SIDE_OLD, &place_of, out));
    size_t kept = 0;
    for (size_t i = 0; i < out->len; i++) {
        struct shown_site site = out->items[i];
        uint64_t new = costs_get(&site.costs[SIDE_NEW], q->sort);
        uint64_t old = costs_get(&site.costs[SIDE_OLD], q->sort);
        site.score = side_score_of(score, new, old);
        if (new > 0 || old > 0) {
            out->items[kept++] = site;
        }
    }
    out->len = kept;
    if (kept > 1) {
        qsort(out->items, kept, sizeof(out->items[0]), compare_shown);
    }
    return ERR_OK;
}

// The stacks of the sites that are shown, in their order.
struct site_stacks {
    struct told_stacks told;
    struct costs_vec costs;
    struct u32_vec first; // by site
};

static void site_stacks_release(struct site_stacks *stacks)
{
    told_stacks_release(&stacks->told);
    costs_vec_release(&stacks->costs);
    u32_vec_release(&stacks->first);
}

static MUST_USE enum err tell_stacks(struct question *q,
                                     const struct call_sites *sites,
                                     const struct shown_site_vec *shown,
                                     struct code_tables *tables,
                                     struct site_stacks *out)
{
    uint64_t most = request_number(q->request, PARAM_STACKS, 0);
    for (size_t i = 0; i < shown->len; i++) {
        CLEANUP(u32_vec_release) struct u32_vec ids = {0};
        TRY(u32_vec_push(&out->first, (uint32_t)out->costs.len));
        if (most == 0 || q->is_diff) {
            continue;
        }
        const struct call_site *site = &sites->sites.items[shown->items[i].site];
        TRY(call_sites_ranked_stacks(sites, site, q->sort, &ids));
        for (size_t s = 0; s < ids.len && s < most; s++) {
            TRY(costs_vec_push(&out->costs, *call_sites_costs(sites, ids.items[s])));
            TRY(told_stacks_add(&out->told, &sites->tree, ids.items[s], tables));
        }
    }
    return u32_vec_push(&out->first, (uint32_t)out->costs.len);
}

static MUST_USE enum err write_side_costs(struct question *q,
                                          const struct shown_site_vec *sites,
                                          enum side side,
                                          struct json_writer *w)
{
    CLEANUP(costs_vec_release) struct costs_vec costs = {0};
    TRY(costs_vec_resize(&costs, sites->len));
    for (size_t i = 0; i < sites->len; i++) {
        costs.items[i] = sites->items[i].costs[side];
    }
    costs_table(w, side == SIDE_NEW ? "costs" : "old_costs", q->costs, costs.items, costs.len);
    return ERR_OK;
}

static MUST_USE enum err write_sites(struct question *q,
                                     const struct shown_site_vec *sites,
                                     const struct site_stacks *stacks,
                                     struct code_tables *tables,
                                     struct json_writer *w)
{
    table_begin(w, "sites", sites->len);
    column_begin(w, "location");
    for (size_t i = 0; i < sites->len; i++) {
        const struct shown_site *site = &sites->items[i];
        json_position(w, code_tables_location(tables, site->side, site->location));
    }
    column_end(w);
    column_begin(w, "inlined");
    for (size_t i = 0; i < sites->len; i++) {
        json_bool(w, sites->items[i].is_inlined);
    }
    column_end(w);
    column_begin(w, "stack_count");
    for (size_t i = 0; i < sites->len; i++) {
        json_u64(w, sites->items[i].stack_count);
    }
    column_end(w);
    column_of_positions(w, "stack_first", stacks->first.items, sites->len);
    column_begin(w, "stacks_shown");
    for (size_t i = 0; i < sites->len; i++) {
        json_u64(w, stacks->first.items[i + 1] - stacks->first.items[i]);
    }
    column_end(w);
    TRY(write_side_costs(q, sites, SIDE_NEW, w));
    if (q->is_diff) {
        TRY(write_side_costs(q, sites, SIDE_OLD, w));
    }
    table_end(w);
    return ERR_OK;
}

enum err api_call_sites(struct question *q, struct json_writer *w)
{
    CLEANUP(code_tables_release) struct code_tables tables = {.code = q->code};
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    CLEANUP(shown_site_vec_release) struct shown_site_vec shown = {0};
    CLEANUP(site_stacks_release) struct site_stacks stacks = {0};
    if (q->is_diff) {
        if (request_number(q->request, PARAM_STACKS, 0) > 0) {
            return question_refuse(q, 0, PARAM_STACKS, ERR_INVALID, "stacks: not in a diff");
        }
        TRY(collect_both(q, &shown));
    } else {
        TRY(call_sites_build(&q->selection, &sites));
        TRY(collect_alone(q, &sites, &shown));
    }
    json_key_u64(w, "total_count", shown.len);
    shown.len = limited(q, shown.len, SITES_BY_DEFAULT);
    TRY(tell_stacks(q, &sites, &shown, &tables, &stacks));
    TRY(write_sites(q, &shown, &stacks, &tables, w));
    table_begin(w, "stacks", stacks.costs.len);
    costs_table(w, "costs", q->costs, stacks.costs.items, stacks.costs.len);
    told_stacks_write_columns(&stacks.told, 0, stacks.costs.len, w);
    table_end(w);
    told_stacks_write_frames(&stacks.told, w);
    return code_tables_write(&tables, w);
}
