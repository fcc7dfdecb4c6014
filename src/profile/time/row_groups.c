// SPDX-License-Identifier: MIT
#include "profile/time/row_groups.h"

#include "base/compiler.h"

// Assign a group to each stack, by node of the sites' tree.
static MUST_USE enum err
number_groups(struct row_groups *groups, enum row_group_by by, struct u32_vec *group_of)
{
    const struct call_sites *sites = &groups->sites;
    TRY(u32_vec_resize(group_of, sites->tree.nodes.len));
    for (size_t i = 0; i < sites->sites.len; i++) {
        const struct call_site *site = &sites->sites.items[i];
        for (uint32_t s = 0; s < site->stack_count; s++) {
            uint32_t stack = sites->stacks.items[site->stack_first + s];
            struct row_group group = {.site = (uint32_t)i, .stack = REC_NONE};
            if (by == ROW_GROUPS_BY_STACK) {
                group.stack = stack;
            }
            if (by == ROW_GROUPS_BY_STACK || s == 0) {
                TRY(row_group_vec_push(&groups->groups, group));
            }
            struct row_group *last = &groups->groups.items[groups->groups.len - 1];
            last->stack_count++;
            costs_add(&last->costs, call_sites_costs(sites, stack));
            group_of->items[stack] = (uint32_t)groups->groups.len - 1;
        }
    }
    return ERR_OK;
}

// Assign a group to each row.
static MUST_USE enum err number_rows(struct row_groups *groups,
                                     const struct selection *selection,
                                     enum row_group_by by,
                                     struct u32_vec *group_of)
{
    CLEANUP(u32_vec_release) struct u32_vec by_stack = {0};
    if (by == ROW_GROUPS_BY_SITE_ALONE) {
        TRY(call_sites_build_alone(selection, &groups->sites));
        TRY(row_group_vec_resize(&groups->groups, groups->sites.sites.len));
        for (uint32_t i = 0; i < groups->groups.len; i++) {
            groups->groups.items[i] = (struct row_group){
                .site = i, .stack = REC_NONE, .costs = groups->sites.sites.items[i].costs};
        }
    } else {
        TRY(call_sites_build(selection, &groups->sites));
        TRY(number_groups(groups, by, &by_stack));
    }
    TRY(u32_vec_resize(group_of, selection->rows.len));
    for (size_t i = 0; i < selection->rows.len; i++) {
        group_of->items[i] = by == ROW_GROUPS_BY_SITE_ALONE
                                 ? groups->sites.row_sites.items[i]
                                 : by_stack.items[groups->sites.tree.row_nodes.items[i]];
    }
    return ERR_OK;
}

// Counting sort, so that rows stay in order within their group.
static MUST_USE enum err sort_rows(struct row_groups *groups,
                                   const struct selection *selection,
                                   const struct u32_vec *group_of)
{
    struct u32_vec *first = &groups->row_first;
    TRY(u32_vec_resize(first, groups->groups.len + 1));
    TRY(u32_vec_resize(&groups->rows, selection->rows.len));
    for (size_t i = 0; i < selection->rows.len; i++) {
        first->items[group_of->items[i] + 1]++;
    }
    for (size_t i = 1; i < first->len; i++) {
        first->items[i] += first->items[i - 1];
    }
    CLEANUP(u32_vec_release) struct u32_vec filled = {0};
    TRY(u32_vec_resize(&filled, groups->groups.len));
    for (size_t i = 0; i < selection->rows.len; i++) {
        uint32_t group = group_of->items[i];
        groups->rows.items[first->items[group] + filled.items[group]++] = selection->rows.items[i];
    }
    return ERR_OK;
}

static MUST_USE enum err
build(const struct selection *selection, enum row_group_by by, struct row_groups *out)
{
    CLEANUP(row_groups_release) struct row_groups groups = {.profile = selection->profile};
    CLEANUP(u32_vec_release) struct u32_vec group_of = {0};
    TRY(number_rows(&groups, selection, by, &group_of));
    TRY(sort_rows(&groups, selection, &group_of));
    const struct recording *recording = &selection->profile->recording;
    TRY(rec_row_starts(recording->cells, recording->cell_count, sizeof(recording->cells[0]),
                       recording->row_count, &groups.cell_starts));
    *out = TAKE(groups);
    return ERR_OK;
}

static size_t bytes_of(const struct row_groups *groups)
{
    return call_sites_bytes(&groups->sites) + row_group_vec_bytes(&groups->groups) +
           u32_vec_bytes(&groups->rows) + u32_vec_bytes(&groups->row_first) +
           u32_vec_bytes(&groups->cell_starts);
}

#define DEFINE_KIND_BY(name, by)                                                        \
    DEFINE_KEPT_KIND(name, struct row_groups, build(source, by, out), bytes_of(result), \
                     row_groups_release(result))

DEFINE_KIND_BY(by_site, ROW_GROUPS_BY_SITE);
DEFINE_KIND_BY(by_site_alone, ROW_GROUPS_BY_SITE_ALONE);
DEFINE_KIND_BY(by_stack, ROW_GROUPS_BY_STACK);

enum err
row_groups_build(const struct selection *selection, enum row_group_by by, struct row_groups *out)
{
    static const struct kept_kind *const kinds[] = {[ROW_GROUPS_BY_SITE] = &by_site,
                                                    [ROW_GROUPS_BY_SITE_ALONE] = &by_site_alone,
                                                    [ROW_GROUPS_BY_STACK] = &by_stack};
    return kept_results_get(selection->kept, kinds[by], selection, out, &out->is_lent);
}

void row_groups_release(struct row_groups *groups)
{
    if (groups->is_lent) {
        *groups = (struct row_groups){0};
    }
    call_sites_release(&groups->sites);
    row_group_vec_release(&groups->groups);
    u32_vec_release(&groups->rows);
    u32_vec_release(&groups->row_first);
    u32_vec_release(&groups->cell_starts);
}

uint32_t row_groups_location(const struct row_groups *groups, uint32_t group)
{
    return groups->sites.sites.items[groups->groups.items[group].site].location;
}

void row_groups_timeline(const struct row_groups *groups,
                         uint32_t group,
                         struct timeline_point *points)
{
    const struct recording *recording = &groups->profile->recording;
    for (size_t i = 0; i < recording->slice_count; i++) {
        points[i] = (struct timeline_point){0};
    }
    for (uint32_t i = groups->row_first.items[group]; i < groups->row_first.items[group + 1]; i++) {
        uint32_t row = groups->rows.items[i];
        const uint32_t *starts = &groups->cell_starts.items[row];
        for (uint32_t at = starts[0]; at < starts[1]; at++) {
            const struct rec_cell *cell = &recording->cells[at];
            timeline_point_add(&points[cell->slice], cell);
        }
        timeline_points_leave(points, groups->profile, row);
    }
    timeline_points_add_up(points, recording->slice_count, 0);
    timeline_points_limit(points, recording->slice_count, recording);
}
