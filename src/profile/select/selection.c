// SPDX-License-Identifier: MIT
// selection: what a selection says of its rows: their costs, their time, and the frames of their
// stacks. See filter.h.
#include <string.h>

#include "base/compiler.h"
#include "profile/accuracy/sampling.h"
#include "profile/select/filter.h"

bool selection_row_exists(const struct selection *selection, uint32_t row)
{
    const struct profile *profile = selection->profile;
    return process_lives_left(&profile->lives, profile_process_of_row(profile, row)) >=
           selection->range.end;
}

struct code_chain selection_chain(const struct selection *selection, uint32_t node)
{
    const struct profile *profile = selection->profile;
    const struct rec_node *at = &profile->recording.nodes[node];
    struct code_chain chain = code_index_node_chain(&profile->code, node, at->frame);
    if (selection->shown.len > 0 && selection->shown.items[at->parent] == 0) {
        while (chain.count > 0 && selection->starts.items[chain.locations[chain.count - 1]] == 0) {
            chain.count--;
        }
    }
    return chain;
}

struct call_site_location selection_call_site(const struct selection *selection, uint32_t node)
{
    const struct profile *profile = selection->profile;
    struct call_site_location innermost = {.location = REC_NONE, .frame = REC_NONE};
    if (selection->shown.len == 0) {
        return profile_call_site(profile, node);
    }
    for (uint32_t at = node; at != 0; at = profile->recording.nodes[at].parent) {
        const uint32_t frame = profile->recording.nodes[at].frame;
        const struct code_chain chain = selection_chain(selection, at);
        for (size_t i = 0; i < chain.count; i++) {
            const struct call_site_location site = {
                .location = chain.locations[i], .frame = frame, .is_inlined = i + 1 < chain.count};
            if (!profile_is_wrapper(profile, site.location)) {
                return site;
            }
            call_site_offer(&innermost, &profile->code, site);
        }
        if (chain.count == 0) {
            break;
        }
    }
    return innermost;
}

static MUST_USE enum err copy_flags(const struct flag_vec *flags, struct flag_vec *out)
{
    TRY(flag_vec_resize(out, flags->len));
    if (flags->len > 0) {
        memcpy(out->items, flags->items, flags->len);
    }
    return ERR_OK;
}

enum err selection_at_end(const struct selection *selection, struct selection *out)
{
    CLEANUP(selection_release) struct selection part = *selection;
    part.rows = (struct u32_vec){0};
    part.costs = (struct costs_vec){0};
    part.rules = (struct u32_vec){0};
    part.matches = (struct suppression_match_vec){0};
    part.shown = (struct flag_vec){0};
    part.starts = (struct flag_vec){0};
    part.kept = NULL;
    part.trees = NULL;
    part.is_lent = false;
    part.is_everything = false;
    TRY(copy_flags(&selection->shown, &part.shown));
    TRY(copy_flags(&selection->starts, &part.starts));
    for (size_t i = 0; i < selection->rows.len; i++) {
        const uint32_t row = selection->rows.items[i];
        if (selection_row_exists(selection, row)) {
            TRY(u32_vec_push(&part.rows, row));
            TRY(costs_vec_push(&part.costs, selection_costs(selection, i)));
        }
    }
    *out = TAKE(part);
    return ERR_OK;
}

struct selection selection_lend(const struct selection *selection, struct cancel *cancel)
{
    struct selection lent = *selection;
    lent.is_lent = true;
    lent.cancel = cancel;
    return lent;
}

void selection_release(struct selection *selection)
{
    if (selection->is_lent) {
        *selection = (struct selection){0};
    }
    u32_vec_release(&selection->rows);
    costs_vec_release(&selection->costs);
    u32_vec_release(&selection->rules);
    suppression_match_vec_release(&selection->matches);
    flag_vec_release(&selection->shown);
    flag_vec_release(&selection->starts);
}

bool selection_knows(const struct selection *selection, enum cost cost)
{
    return (selection->unknown >> cost & 1) == 0;
}

enum err selection_need(const struct selection *selection,
                        const char *who,
                        enum cost cost,
                        struct err_info *info)
{
    if (selection_knows(selection, cost)) {
        return ERR_OK;
    }
    const bool is_filtered = profile_knows(selection->profile, cost);
    return err_set(info, ERR_UNSUPPORTED, "%s: %s has no data on %s", who,
                   is_filtered ? "the filtered part" : "the recording",
                   profile_cost_info(selection->profile, cost).phrase);
}

uint64_t selection_length_ms(const struct selection *selection)
{
    const struct recording *recording = &selection->profile->recording;
    if (!selection->has_range) {
        return recording->meta.runtime_ms;
    }
    uint64_t start_ms = selection->range.first * recording->slice_ms;
    uint64_t end_ms = time_range_end_ms(recording, selection->range);
    return end_ms > start_ms ? end_ms - start_ms : 0;
}

struct costs selection_costs(const struct selection *selection, size_t index)
{
    struct costs costs =
        selection->costs.items != NULL
            ? selection->costs.items[index]
            : costs_of_row(&selection->profile->recording.rows[selection->rows.items[index]]);
    if (index < selection->rules.len && selection->rules.items[index] != 0) {
        costs.values[COST_LEAKED_BYTES] = 0;
        costs.values[COST_LEAKED_ALLOCATIONS] = 0;
    }
    costs.sizes =
        sampled_sizes_of_row(&selection->profile->recording, selection->rows.items[index]);
    return costs;
}
