// SPDX-License-Identifier: MIT
// source_place: see source_place.h.
#include "profile/calls/source_place.h"

#include <string.h>

#include "base/compiler.h"

bool source_place_has(const struct profile *profile, uint32_t location)
{
    static const char header[] = "cairn_pool_";
    static const char crate[] = "cairn::blocks::";
    const char *function = profile_location_function(profile, location);
    return profile_location_file(profile, location)[0] != '\0' &&
           strncmp(function, header, sizeof(header) - 1) != 0 &&
           strncmp(function, crate, sizeof(crate) - 1) != 0;
}

enum err source_place_of_site(const struct profile *profile,
                              const struct call_sites *sites,
                              const struct call_site *site,
                              enum cost cost,
                              uint32_t *stack,
                              uint32_t *out)
{
    CLEANUP(u32_vec_release) struct u32_vec stacks = {0};
    TRY(call_sites_ranked_stacks(sites, site, cost, &stacks));
    const uint32_t heaviest = stacks.len > 0 ? stacks.items[0] : 0;
    const struct call_tree_node *nodes = sites->tree.nodes.items;
    uint32_t found = site->location;
    bool is_found = found == REC_NONE || source_place_has(profile, found);
    for (uint32_t at = heaviest; !is_found && at != 0; at = nodes[at].parent) {
        is_found = source_place_has(profile, nodes[at].location);
        found = is_found ? nodes[at].location : found;
    }
    if (stack != NULL) {
        *stack = heaviest;
    }
    *out = found;
    return ERR_OK;
}
