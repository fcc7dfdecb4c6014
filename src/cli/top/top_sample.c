// SPDX-License-Identifier: MIT
#include "cli/top/top_sample.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "cli/text/location_text.h"
#include "formats/import/input_file.h"

enum {
    STACKS_MAX = 20
};

void top_sample_free(struct top_sample *sample)
{
    if (sample == NULL) {
        return;
    }
    findings_release(&sample->findings);
    rss_breakdown_release(&sample->rss);
    timeline_release(&sample->timeline);
    site_moment_unref(sample->moment);
    call_sites_release(&sample->sites);
    selection_release(&sample->selection);
    profile_close(sample->profile);
    free(sample);
}

void top_sample_freep(struct top_sample **sample)
{
    top_sample_free(*sample);
}

static MUST_USE enum err query_profile(struct top_sample *sample, const struct profile *profile)
{
    sample->sampling = sampling_of(&profile->recording);
    TRY(profile_select(profile, NULL, &sample->selection, NULL));
    TRY(summary_build(&sample->selection, &sample->summary));
    TRY(call_sites_build_alone(&sample->selection, &sample->sites));
    TRY(site_moment_build(&sample->selection, &sample->sites, &sample->moment));
    TRY(timeline_build(&sample->selection, &sample->timeline));
    TRY(rss_breakdown_build(profile, 0, &sample->rss));
    return findings_build(&sample->selection, &sample->summary, &sample->rss, &sample->findings);
}

enum err top_sample_take(struct profile *profile, struct top_sample **out)
{
    CLEANUP(top_sample_freep) struct top_sample *sample = calloc(1, sizeof(*sample));
    TRY(sample != NULL ? query_profile(sample, profile) : ERR_NO_MEMORY);
    sample->profile = profile;
    *out = TAKE(sample);
    return ERR_OK;
}

enum err top_sample_open(const char *path,
                         const struct name_sources *sources,
                         struct top_sample **out,
                         struct err_info *info)
{
    CLEANUP(profile_closep) struct profile *profile = NULL;
    TRY(input_open_profile(path, sources, NULL, &profile, info));
    TRY(top_sample_take(profile, out));
    profile = NULL;
    return ERR_OK;
}

uint64_t top_sample_rss_bytes(const struct top_sample *sample)
{
    const struct rss_breakdown_sample_vec *samples = &sample->rss.samples;
    return samples->len > 0 ? samples->items[samples->len - 1].rss_bytes : 0;
}

// Select only the rows of a call site.
static MUST_USE enum err
select_site(const struct top_sample *sample, size_t site, struct selection *out)
{
    CLEANUP(selection_release) struct selection part = {0};
    part.profile = sample->profile;
    part.range = sample->selection.range;
    part.sizes = sample->selection.sizes;
    part.lifetimes = sample->selection.lifetimes;
    for (size_t i = 0; i < sample->selection.rows.len; i++) {
        if (sample->sites.row_sites.items[i] == site) {
            TRY(u32_vec_push(&part.rows, sample->selection.rows.items[i]));
            TRY(costs_vec_push(&part.costs, selection_costs(&sample->selection, i)));
        }
    }
    *out = TAKE(part);
    return ERR_OK;
}

// Whether the frame of a location extends the run of wrapper frames that the last line has.
static bool extends_run(const struct top_sample *sample,
                        const struct top_stack_line_vec *lines,
                        uint32_t location)
{
    const struct top_stack_line *last = &lines->items[lines->len - 1];
    return !last->is_title && profile_is_wrapper(sample->profile, location) &&
           profile_is_wrapper(sample->profile, last->location);
}

static bool is_outside_main(const struct top_sample *sample, const struct top_stack_line *line)
{
    return function_is_outside_main(profile_location_function(sample->profile, line->location));
}

static MUST_USE enum err list_stack(const struct top_sample *sample,
                                    const struct call_sites *sites,
                                    uint32_t stack,
                                    struct top_stack_line_vec *out)
{
    const struct top_stack_line title = {.is_title = true,
                                         .costs = *call_sites_costs(sites, stack)};
    TRY(top_stack_line_vec_push(out, title));
    const size_t first = out->len;
    const struct call_tree_node *nodes = sites->tree.nodes.items;
    for (uint32_t node = stack; nodes[node].parent != REC_NONE; node = nodes[node].parent) {
        struct top_stack_line line = {.location = nodes[node].location,
                                      .is_inlined = nodes[node].is_inlined};
        if (extends_run(sample, out, line.location)) {
            line.inner = out->items[out->len - 1].inner + 1;
            line.is_inlined = false;
            out->len--;
        }
        TRY(top_stack_line_vec_push(out, line));
    }
    size_t shown = out->len;
    while (shown > first && is_outside_main(sample, &out->items[shown - 1])) {
        shown--;
    }
    out->len = shown > first ? shown : out->len;
    return ERR_OK;
}

enum err
top_sample_stacks(const struct top_sample *sample, size_t site, struct top_stack_line_vec *out)
{
    CLEANUP(selection_release) struct selection part = {0};
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    CLEANUP(u32_vec_release) struct u32_vec stacks = {0};
    TRY(select_site(sample, site, &part));
    TRY(call_sites_build(&part, &sites));
    if (sites.sites.len == 0) {
        return ERR_OK;
    }
    const struct call_site *found = &sites.sites.items[0];
    TRY(call_sites_ranked_stacks(&sites, found, COST_LEAKED_BYTES, &stacks));
    if (stacks.len == 0) {
        TRY(call_sites_ranked_stacks(&sites, found, COST_ALLOCATIONS, &stacks));
    }
    for (size_t i = 0; i < stacks.len && i < STACKS_MAX; i++) {
        TRY(list_stack(sample, &sites, stacks.items[i], out));
    }
    return ERR_OK;
}
