// SPDX-License-Identifier: MIT
#include "profile/calls/tree_costs.h"

#include "base/compiler.h"

static MUST_USE enum err begin_own(struct tree_costs *costs)
{
    static const struct costs nothing = {0};
    return costs->own.len > 0 ? ERR_OK : costs_vec_push(&costs->own, nothing);
}

enum err tree_costs_begin(struct tree_costs *costs, size_t count)
{
    TRY(begin_own(costs));
    TRY(costs_vec_resize(&costs->totals, count));
    TRY(u32_vec_resize(&costs->own_of, count));
    for (size_t i = 0; i < count; i++) {
        costs->own_of.items[i] = REC_NONE;
    }
    return ERR_OK;
}

enum err tree_costs_push(struct tree_costs *costs)
{
    static const struct costs nothing = {0};
    TRY(begin_own(costs));
    TRY(u32_vec_push(&costs->own_of, TREE_COSTS_NOTHING));
    return costs_vec_push(&costs->totals, nothing);
}

void tree_costs_goes_on(struct tree_costs *costs, uint32_t node)
{
    costs->own_of.items[node] = TREE_COSTS_NOTHING;
}

void tree_costs_ends(struct tree_costs *costs, uint32_t node)
{
    costs->own_of.items[node] = REC_NONE;
}

enum err tree_costs_add(struct tree_costs *costs, uint32_t node, const struct costs *part)
{
    uint32_t *own = &costs->own_of.items[node];
    if (*own == REC_NONE) {
        costs_add(&costs->totals.items[node], part);
        return ERR_OK;
    }
    if (*own != TREE_COSTS_NOTHING) {
        costs_add(&costs->own.items[*own], part);
        return ERR_OK;
    }
    *own = (uint32_t)costs->own.len;
    return costs_vec_push(&costs->own, *part);
}

size_t tree_costs_bytes(const struct tree_costs *costs)
{
    return (costs->totals.len + costs->own.len) * sizeof(costs->own.items[0]) +
           costs->own_of.len * sizeof(costs->own_of.items[0]);
}

void tree_costs_shorten(struct tree_costs *costs, size_t count)
{
    costs->totals.len = costs->totals.len > count ? count : costs->totals.len;
    costs->own_of.len = costs->own_of.len > count ? count : costs->own_of.len;
}

void tree_costs_release(struct tree_costs *costs)
{
    costs_vec_release(&costs->totals);
    costs_vec_release(&costs->own);
    u32_vec_release(&costs->own_of);
}
