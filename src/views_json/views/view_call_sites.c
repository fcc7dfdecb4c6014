// SPDX-License-Identifier: MIT
// view_call_sites: the call sites, of one recording or two.
//
// For two recordings, sites are merged by function, since line numbers differ between builds.
#include "base/compiler.h"
#include "base/minmax.h"
#include "base/order.h"
#include "views_json/views/view_parts.h"
#include "views_json/views/views.h"

enum {
    STACKS_PER_PROGRESS = 1024
};

struct site_row {
    struct place place;
    bool inlined;
    uint64_t stack_count; // stacks with any of the cost
    uint64_t stack_first; // in the table of stacks
    uint64_t stacks_shown;
    uint32_t site; // in call_sites; unused in a comparison
    uint64_t score;
    struct costs costs;
    struct costs old_costs;
};

DEFINE_VEC(site_row_vec, struct site_row);

static const struct column site_columns[] = {
    COLUMN(CELL_LOCATION, site_row, place),
    COLUMN(CELL_BOOL, site_row, inlined),
    COLUMN(CELL_COSTS, site_row, costs),
    COLUMN_WHEN(WHEN_COMPARED, CELL_COSTS, site_row, old_costs),
    COLUMN_ERRORS("errors", CELL_ERRORS, site_row, costs),
    COLUMN_OLD_ERRORS("old_errors", CELL_ERRORS, site_row, old_costs),
    COLUMN(CELL_U64, site_row, stack_count),
    COLUMN_WHEN(WHEN_STACKS, CELL_U64, site_row, stacks_shown),
    COLUMN_WHEN(WHEN_STACKS | WHEN_COLUMNS, CELL_U64, site_row, stack_first),
};

struct stack_row {
    const struct costs *costs;
    struct frame_list frames;
};

DEFINE_VEC(stack_row_vec, struct stack_row);

static const struct column stack_columns[] = {
    COLUMN(CELL_COSTS_AT, stack_row, costs),
    COLUMN_ERRORS("errors", CELL_ERRORS_AT, stack_row, costs),
    COLUMN(CELL_FRAMES, stack_row, frames),
};

static uint64_t
count_stacks(const struct call_sites *sites, const struct call_site *site, enum cost cost)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < site->stack_count; i++) {
        uint32_t stack = sites->stacks.items[site->stack_first + i];
        count += costs_get(call_sites_costs(sites, stack), cost) > 0;
    }
    return count;
}

static MUST_USE enum err list_stacks(const struct call_sites *sites,
                                     uint32_t site,
                                     enum cost cost,
                                     size_t limit,
                                     struct stack_row_vec *out)
{
    CLEANUP(u32_vec_release) struct u32_vec ids = {0};
    TRY(call_sites_ranked_stacks(sites, &sites->sites.items[site], cost, &ids));
    for (size_t i = 0; i < limited_u64(ids.len, limit); i++) {
        const struct stack_row row = {
            .costs = call_sites_costs(sites, ids.items[i]),
            .frames = {.tree = &sites->tree, .node = ids.items[i]},
        };
        TRY(stack_row_vec_push(out, row));
    }
    return ERR_OK;
}

static void show_progress(const struct view *view, uint64_t stacks)
{
    if (view->progress != NULL && stacks % STACKS_PER_PROGRESS == 0) {
        progress_update(view->progress, "writing the report, call stacks", stacks, 0);
    }
}

// Write each site with its stacks. There may be millions, so only one site's are in memory.
static MUST_USE enum err write_nested(struct view *view,
                                      const struct table *table,
                                      const struct site_row_vec *rows,
                                      const struct call_sites *sites,
                                      const struct call_sites_options *options)
{
    json_key_array(view->w, table->key);
    for (size_t i = 0; i < rows->len; i++) {
        CLEANUP(stack_row_vec_release) struct stack_row_vec stacks = {0};
        TRY(list_stacks(sites, rows->items[i].site, view->sort, options->stack_limit, &stacks));
        const struct table nested = TABLE("stacks", stack_columns, stacks.items, stacks.len);
        json_begin_object(view->w);
        view_row(view, table, i);
        json_key_array(view->w, nested.key);
        for (size_t s = 0; s < stacks.len; s++) {
            show_progress(view, s);
            json_begin_object(view->w);
            view_row(view, &nested, s);
            json_end_object(view->w);
        }
        json_end_array(view->w);
        json_end_object(view->w);
    }
    json_end_array(view->w);
    return ERR_OK;
}

static MUST_USE enum err write_flat(struct view *view,
                                    const struct table *table,
                                    struct site_row_vec *rows,
                                    const struct call_sites *sites,
                                    const struct call_sites_options *options)
{
    CLEANUP(stack_row_vec_release) struct stack_row_vec stacks = {0};
    for (size_t i = 0; i < rows->len; i++) {
        rows->items[i].stack_first = stacks.len;
        TRY(list_stacks(sites, rows->items[i].site, view->sort, options->stack_limit, &stacks));
    }
    view_table(view, table);
    view_table(view, &TABLE("stacks", stack_columns, stacks.items, stacks.len));
    return ERR_OK;
}

static MUST_USE enum err write_sites(struct view *view,
                                     const char *key,
                                     struct site_row_vec *rows,
                                     const struct call_sites *sites,
                                     const struct call_sites_options *options)
{
    struct table table = TABLE(key, site_columns, rows->items, rows->len);
    if (!options->lists_stacks) {
        view_table(view, &table);
        return ERR_OK;
    }
    for (size_t i = 0; i < rows->len; i++) {
        struct site_row *row = &rows->items[i];
        row->stacks_shown = limited_u64(row->stack_count, options->stack_limit);
    }
    table.has = WHEN_STACKS;
    return view->layout == VIEW_ROWS ? write_nested(view, &table, rows, sites, options)
                                     : write_flat(view, &table, rows, sites, options);
}

static uint64_t
stacks_of(const struct view *view, const struct call_sites_options *options, uint32_t site)
{
    return options->counts != NULL
               ? stack_counts_of(options->counts, site, view->sort)
               : count_stacks(options->sites, &options->sites->sites.items[site], view->sort);
}

// `options` names the sites.
static void collect_alone(const struct view *view,
                          const struct call_sites_options *options,
                          const struct u32_vec *ids,
                          struct site_row_vec *out)
{
    for (size_t i = 0; i < limited_u64(ids->len, options->limit); i++) {
        const struct call_site *site = &options->sites->sites.items[ids->items[i]];
        const struct site_row row = {.place = {SIDE_NEW, site->location},
                                     .inlined = site->is_inlined,
                                     .stack_count = stacks_of(view, options, ids->items[i]),
                                     .site = ids->items[i],
                                     .costs = site->costs};
        site_row_vec_add(out, row);
    }
}

enum err
view_site_list(struct view *view, const char *key, const struct call_sites_options *options)
{
    const struct call_sites *sites = options->sites;
    CLEANUP(u32_vec_release) struct u32_vec ids = {0};
    CLEANUP(site_row_vec_release) struct site_row_vec rows = {0};
    TRY(call_sites_ranked(sites, view->sort, &ids));
    collect_alone(view, options, &ids, &rows);
    return write_sites(view, key, &rows, sites, options);
}

// Add the sites of one side. `place_of` has the index in `out` of each function of the union, and a
// last entry for allocations without a stack.
static MUST_USE enum err
merge_side(struct view *view, enum side side, struct u32_vec *place_of, struct site_row_vec *out)
{
    const struct profile *profile = view->code->profiles[side];
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    TRY(call_sites_build(side == SIDE_NEW ? view->selection : view->old_selection, &sites));
    for (size_t i = 0; i < sites.sites.len; i++) {
        const struct call_site *site = &sites.sites.items[i];
        uint32_t function = (uint32_t)place_of->len - 1;
        if (site->location != REC_NONE) {
            uint32_t own = profile_location_get(profile, site->location)->function;
            function = view->code->ids[side].items[own];
        }
        uint32_t *place = &place_of->items[function];
        if (*place == REC_NONE) {
            const struct site_row row = {.place = {side, site->location},
                                         .inlined = site->is_inlined};
            *place = (uint32_t)out->len;
            TRY(site_row_vec_push(out, row));
        }
        struct site_row *row = &out->items[*place];
        if (row->place.side == side) {
            row->stack_count += count_stacks(&sites, site, view->sort);
        }
        costs_add(side == SIDE_NEW ? &row->costs : &row->old_costs, &site->costs);
    }
    return ERR_OK;
}

static int compare_rows(const void *left, const void *right)
{
    const struct site_row *a = left;
    const struct site_row *b = right;
    return order_u64(b->score, a->score)
               ?: order_u64(a->place.side, b->place.side)
               ?: order_u64(a->place.location, b->place.location);
}

static MUST_USE enum err collect_both(struct view *view, struct site_row_vec *out)
{
    CLEANUP(u32_vec_release) struct u32_vec place_of = {0};
    TRY(u32_vec_resize(&place_of, view->code->origins.len + 1));
    for (size_t i = 0; i < place_of.len; i++) {
        place_of.items[i] = REC_NONE;
    }
    TRY(merge_side(view, SIDE_NEW, &place_of, out));
    TRY(merge_side(view, SIDE_OLD, &place_of, out));
    size_t kept = 0;
    for (size_t i = 0; i < out->len; i++) {
        struct site_row row = out->items[i];
        uint64_t new = costs_get(&row.costs, view->sort);
        uint64_t old = costs_get(&row.old_costs, view->sort);
        row.score = side_score_of(view->score, new, old);
        if (new > 0 || old > 0) {
            out->items[kept++] = row;
        }
    }
    out->len = kept;
    site_row_vec_sort(out, compare_rows);
    return ERR_OK;
}

enum err view_call_sites(struct view *view, const struct call_sites_options *options)
{
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    CLEANUP(site_row_vec_release) struct site_row_vec rows = {0};
    CLEANUP(u32_vec_release) struct u32_vec ids = {0};
    struct call_sites_options own = *options;
    if (view->old_selection != NULL) {
        TRY(collect_both(view, &rows));
        json_key_u64(view->w, "total_count", rows.len);
        rows.len = limited_u64(rows.len, options->limit);
        return write_sites(view, "sites", &rows, NULL, options);
    }
    TRY(call_sites_build(view->selection, &sites));
    TRY(call_sites_ranked(&sites, view->sort, &ids));
    json_key_u64(view->w, "total_count", ids.len);
    own.sites = &sites;
    collect_alone(view, &own, &ids, &rows);
    return write_sites(view, "sites", &rows, &sites, options);
}
