// SPDX-License-Identifier: MIT
// site_moment: adds up the live bytes of call sites, and finds sites by name. See site_moment.h.
#include "profile/calls/site_moment.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/text/strbuf.h"

// Write what identifies the site at `location`.
static void write_name(struct strbuf *out, const struct profile *profile, uint32_t location)
{
    strbuf_clear(out);
    if (location == REC_NONE) {
        strbuf_append_char(out, '\n'); // an empty text has the id 0, which is of no site
        return;
    }
    strbuf_append_text(out, profile_location_function(profile, location));
    strbuf_append_char(out, '\n');
    strbuf_append_text(out, profile_location_file(profile, location));
    strbuf_printf(out, "\n%" PRIu32 "\n", profile_location_get(profile, location)->line);
    strbuf_append_text(out, profile_location_module(profile, location));
}

static MUST_USE enum err
add_names(const struct profile *profile, const struct call_sites *sites, struct site_moment *moment)
{
    CLEANUP(strbuf_release) struct strbuf name = {0};
    for (size_t i = 0; i < sites->sites.len; i++) {
        uint32_t id = 0;
        write_name(&name, profile, sites->sites.items[i].location);
        TRY(strbuf_result(&name));
        TRY(string_table_intern(&moment->names, name.data, name.len, &id));
        TRY(u32_vec_push(&moment->ids, id));
    }
    return site_figures_vec_resize(&moment->figures, string_table_count(&moment->names));
}

static void add_row(struct site_figures *figures, const struct costs *costs, bool is_live)
{
    figures->allocations += costs_get(costs, COST_ALLOCATIONS);
    figures->temporary += costs_get(costs, COST_TEMPORARY);
    figures->allocated_bytes += costs_get(costs, COST_ALLOCATED_BYTES);
    sampled_sizes_add(&figures->sizes, &costs->sizes);
    if (is_live) {
        figures->live_bytes += costs_get(costs, COST_LEAKED_BYTES);
        figures->live_blocks += costs_get(costs, COST_LEAKED_ALLOCATIONS);
    }
}

static void site_moment_unrefp(struct site_moment **moment)
{
    site_moment_unref(*moment);
}

enum err site_moment_build(const struct selection *selection,
                           const struct call_sites *sites,
                           struct site_moment **out)
{
    const struct profile *profile = selection->profile;
    CLEANUP(site_moment_unrefp) struct site_moment *moment = calloc(1, sizeof(*moment));
    if (moment == NULL) {
        return ERR_NO_MEMORY;
    }
    moment->references = 1;
    moment->time_ms = profile->recording.meta.runtime_ms;
    TRY(add_names(profile, sites, moment));
    for (size_t i = 0; i < selection->rows.len; i++) {
        const struct costs costs = selection_costs(selection, i);
        const bool is_live = selection_row_exists(selection, selection->rows.items[i]);
        const uint32_t site = sites->row_sites.items[i];
        add_row(&moment->figures.items[moment->ids.items[site]], &costs, is_live);
        add_row(&moment->total, &costs, is_live);
    }
    *out = TAKE(moment);
    return ERR_OK;
}

struct site_moment *site_moment_ref(struct site_moment *moment)
{
    moment->references++;
    return moment;
}

void site_moment_unref(struct site_moment *moment)
{
    if (moment == NULL || --moment->references > 0) {
        return;
    }
    string_table_release(&moment->names);
    site_figures_vec_release(&moment->figures);
    u32_vec_release(&moment->ids);
    free(moment);
}

struct site_figures
site_moment_earlier(const struct site_moment *earlier, const struct site_moment *later, size_t site)
{
    const char *name = string_table_get(&later->names, later->ids.items[site]);
    uint32_t id = 0;
    const bool is_known = string_table_find(&earlier->names, name, strlen(name), &id) == ERR_OK;
    return is_known ? earlier->figures.items[id] : (struct site_figures){0};
}

struct site_figures site_figures_error(const struct sampling *sampling,
                                       const struct site_figures *figures)
{
    const struct costs costs = {
        .values = {[COST_LEAKED_BYTES] = figures->live_bytes,
                   [COST_LEAKED_ALLOCATIONS] = figures->live_blocks,
                   [COST_ALLOCATIONS] = figures->allocations,
                   [COST_TEMPORARY] = figures->temporary,
                   [COST_ALLOCATED_BYTES] = figures->allocated_bytes},
        .sizes = figures->sizes,
    };
    const struct costs errors = sampling_errors(sampling, &costs);
    return (struct site_figures){
        .live_bytes = costs_get(&errors, COST_LEAKED_BYTES),
        .live_blocks = costs_get(&errors, COST_LEAKED_ALLOCATIONS),
        .allocations = costs_get(&errors, COST_ALLOCATIONS),
        .temporary = costs_get(&errors, COST_TEMPORARY),
        .allocated_bytes = costs_get(&errors, COST_ALLOCATED_BYTES),
    };
}

// A block changes the level if it is live at one moment only: at the later one if it was allocated
// in between, at the earlier one if it was freed in between.
uint64_t site_change_error(const struct sampling *sampling,
                           const struct site_figures *earlier,
                           const struct site_figures *later)
{
    const uint64_t allocated_bytes = excess_u64(later->allocated_bytes, earlier->allocated_bytes);
    const uint64_t freed_bytes =
        excess_u64(earlier->live_bytes + allocated_bytes, later->live_bytes);
    return sampling_error_of_bytes(sampling, min_u64(allocated_bytes, later->live_bytes) +
                                                 min_u64(freed_bytes, earlier->live_bytes));
}

uint64_t site_allocations_error(const struct sampling *sampling,
                                const struct site_figures *earlier,
                                const struct site_figures *later)
{
    struct costs costs = {.sizes = later->sizes};
    costs.values[COST_ALLOCATIONS] = excess_u64(later->allocations, earlier->allocations);
    costs.sizes.inverse_lengths =
        fmax(costs.sizes.inverse_lengths - earlier->sizes.inverse_lengths, 0); // they are rounded
    const struct costs errors = sampling_errors(sampling, &costs);
    return costs_get(&errors, COST_ALLOCATIONS);
}
