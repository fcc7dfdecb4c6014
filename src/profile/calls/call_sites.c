// SPDX-License-Identifier: MIT
// call_sites: merges stacks by call site, and ranks sites and stacks. See call_sites.h.
#include "profile/calls/call_sites.h"

#include "base/compiler.h"
#include "base/order.h"
#include "host/containers/map_u64.h"

// The site of each stack, while building.
struct assignment {
    struct map_u64 by_location; // location -> site
    struct u32_vec site_of;     // by tree node; REC_NONE where no stack ends
    uint32_t latest;            // the site that was found last; mostly it is the next one, too
};

static void assignment_release(struct assignment *assignment)
{
    map_u64_release(&assignment->by_location);
    u32_vec_release(&assignment->site_of);
}

static MUST_USE enum err find_site(struct call_sites *sites,
                                   struct assignment *assignment,
                                   struct call_site_location where,
                                   uint32_t *out)
{
    *out = assignment->latest;
    if (*out < sites->sites.len && sites->sites.items[*out].location == where.location) {
        return ERR_OK;
    }
    TRY(map_u64_number(&assignment->by_location, where.location, sites->sites.len, out));
    if (*out == sites->sites.len) {
        struct call_site site = {.location = where.location, .is_inlined = where.is_inlined};
        TRY(call_site_vec_push(&sites->sites, site));
    }
    assignment->latest = *out;
    return ERR_OK;
}

static MUST_USE enum err
assign(struct call_sites *sites, struct assignment *assignment, const struct selection *selection)
{
    const struct recording *recording = &selection->profile->recording;
    TRY(u32_vec_resize(&assignment->site_of, sites->tree.nodes.len));
    TRY(u32_vec_resize(&sites->costs_of, sites->tree.nodes.len));
    for (size_t i = 0; i < assignment->site_of.len; i++) {
        assignment->site_of.items[i] = REC_NONE;
        sites->costs_of.items[i] = REC_NONE;
    }
    for (size_t i = 0; i < selection->rows.len; i++) {
        TRY(cancel_step(selection->cancel));
        const uint32_t stack = sites->tree.row_nodes.items[i];
        const struct costs costs = selection_costs(selection, i);
        uint32_t *site = &assignment->site_of.items[stack];
        if (*site == REC_NONE) {
            const uint32_t node = recording->rows[selection->rows.items[i]].node;
            TRY(find_site(sites, assignment, selection_call_site(selection, node), site));
            sites->sites.items[*site].stack_count++;
            sites->costs_of.items[stack] = (uint32_t)sites->costs.len;
            TRY(costs_vec_push(&sites->costs, (struct costs){0}));
        }
        costs_add(&sites->costs.items[sites->costs_of.items[stack]], &costs);
        costs_add(&sites->sites.items[*site].costs, &costs);
    }
    return ERR_OK;
}

// Arrange the stacks by site.
static MUST_USE enum err group_stacks(struct call_sites *sites, const struct assignment *assignment)
{
    uint32_t first = 0;
    for (size_t i = 0; i < sites->sites.len; i++) {
        struct call_site *site = &sites->sites.items[i];
        site->stack_first = first;
        first += site->stack_count;
        site->stack_count = 0;
    }
    TRY(u32_vec_resize(&sites->stacks, first));
    for (size_t stack = 0; stack < assignment->site_of.len; stack++) {
        uint32_t id = assignment->site_of.items[stack];
        if (id != REC_NONE) {
            struct call_site *site = &sites->sites.items[id];
            sites->stacks.items[site->stack_first + site->stack_count++] = (uint32_t)stack;
        }
    }
    return ERR_OK;
}

static MUST_USE enum err build_whole(const struct selection *selection, struct call_sites *out)
{
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    CLEANUP(assignment_release) struct assignment assignment = {0};
    TRY(selection->trees != NULL
            ? call_tree_build_frames(selection, CALL_TREE_ALL, &sites.tree)
            : call_tree_build_shape(selection, CALL_TREE_BY_LOCATION, &sites.tree));
    TRY(assign(&sites, &assignment, selection));
    TRY(group_stacks(&sites, &assignment));
    *out = TAKE(sites);
    return ERR_OK;
}

static MUST_USE enum err build_alone(const struct selection *selection, struct call_sites *out)
{
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    CLEANUP(assignment_release) struct assignment assignment = {0};
    const struct profile *profile = selection->profile;
    for (size_t i = 0; i < selection->rows.len; i++) {
        TRY(cancel_step(selection->cancel));
        const uint32_t node = profile->recording.rows[selection->rows.items[i]].node;
        uint32_t site;
        TRY(find_site(&sites, &assignment, selection_call_site(selection, node), &site));
        const struct costs costs = selection_costs(selection, i);
        costs_add(&sites.sites.items[site].costs, &costs);
        TRY(u32_vec_push(&sites.row_sites, site));
    }
    *out = TAKE(sites);
    return ERR_OK;
}

DEFINE_KEPT_KIND(whole_sites,
                 struct call_sites,
                 build_whole(source, out),
                 call_sites_bytes(result),
                 call_sites_release(result));
DEFINE_KEPT_KIND(sites_alone,
                 struct call_sites,
                 build_alone(source, out),
                 call_sites_bytes(result),
                 call_sites_release(result));

enum err call_sites_build(const struct selection *selection, struct call_sites *out)
{
    return kept_results_get(selection->kept, &whole_sites, selection, out, &out->is_lent);
}

enum err call_sites_build_alone(const struct selection *selection, struct call_sites *out)
{
    return kept_results_get(selection->kept, &sites_alone, selection, out, &out->is_lent);
}

size_t call_sites_bytes(const struct call_sites *sites)
{
    return sites->is_lent ? 0
                          : call_tree_bytes(&sites->tree) + call_site_vec_bytes(&sites->sites) +
                                u32_vec_bytes(&sites->stacks) + costs_vec_bytes(&sites->costs) +
                                u32_vec_bytes(&sites->costs_of) + u32_vec_bytes(&sites->row_sites);
}

void call_sites_release(struct call_sites *sites)
{
    if (sites->is_lent) {
        *sites = (struct call_sites){0};
    }
    call_tree_release(&sites->tree);
    call_site_vec_release(&sites->sites);
    u32_vec_release(&sites->stacks);
    costs_vec_release(&sites->costs);
    u32_vec_release(&sites->costs_of);
    u32_vec_release(&sites->row_sites);
}

struct ranking {
    const struct call_sites *sites;
    enum cost cost;
};

static int compare_sites(const void *left, const void *right, void *context)
{
    const struct ranking *ranking = context;
    uint32_t left_id = *(const uint32_t *)left;
    uint32_t right_id = *(const uint32_t *)right;
    const struct call_site *sites = ranking->sites->sites.items;
    return order_u64(costs_get(&sites[right_id].costs, ranking->cost),
                     costs_get(&sites[left_id].costs, ranking->cost))
               ?: order_u64(left_id, right_id);
}

static int compare_stacks(const void *left, const void *right, void *context)
{
    const struct ranking *ranking = context;
    uint32_t left_id = *(const uint32_t *)left;
    uint32_t right_id = *(const uint32_t *)right;
    return order_u64(costs_get(call_sites_costs(ranking->sites, right_id), ranking->cost),
                     costs_get(call_sites_costs(ranking->sites, left_id), ranking->cost))
               ?: order_u64(left_id, right_id);
}

enum err call_sites_ranked(const struct call_sites *sites, enum cost cost, struct u32_vec *out)
{
    CLEANUP(u32_vec_release) struct u32_vec ids = {0};
    for (size_t i = 0; i < sites->sites.len; i++) {
        if (costs_get(&sites->sites.items[i].costs, cost) > 0) {
            TRY(u32_vec_push(&ids, (uint32_t)i));
        }
    }
    u32_vec_sort_by(&ids, compare_sites, &(struct ranking){.sites = sites, .cost = cost});
    *out = TAKE(ids);
    return ERR_OK;
}

enum err call_sites_ranked_stacks(const struct call_sites *sites,
                                  const struct call_site *site,
                                  enum cost cost,
                                  struct u32_vec *out)
{
    CLEANUP(u32_vec_release) struct u32_vec ids = {0};
    for (uint32_t i = 0; i < site->stack_count; i++) {
        uint32_t stack = sites->stacks.items[site->stack_first + i];
        if (costs_get(call_sites_costs(sites, stack), cost) > 0) {
            TRY(u32_vec_push(&ids, stack));
        }
    }
    u32_vec_sort_by(&ids, compare_stacks, &(struct ranking){.sites = sites, .cost = cost});
    *out = TAKE(ids);
    return ERR_OK;
}
