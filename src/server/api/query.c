// SPDX-License-Identifier: MIT
#include "server/api/query.h"

#include "base/compiler.h"
#include "profile/growth/growth.h"
#include "server/api/filter_params.h"
#include "server/http/encoding.h"
#include "views_json/views/views.h"

enum {
    STATUS_CONFLICT = 409,
};

static const uint64_t costs_by_default =
    (uint64_t)1 << COST_PEAK_BYTES | (uint64_t)1 << COST_LEAKED_BYTES |
    (uint64_t)1 << COST_ALLOCATIONS | (uint64_t)1 << COST_TEMPORARY |
    (uint64_t)1 << COST_ALLOCATED_BYTES;

enum call_tree_frames query_frames(const struct query *query)
{
    return request_number(query->request, PARAM_HIDE_WRAPPERS, 0) == 1 ? CALL_TREE_SITES
                                                                       : CALL_TREE_ALL;
}

enum err query_choose_by(struct query *query,
                         enum request_by least,
                         enum request_by otherwise,
                         enum request_by *out)
{
    const enum request_by by = (enum request_by)request_number(query->request, PARAM_BY, otherwise);
    if (by < least || by > least + 1) {
        return problem_set(query->problem, 0, PARAM_BY, ERR_INVALID, "by: unknown value '%s'",
                           request_choice_name(PARAM_BY, by));
    }
    *out = by;
    return ERR_OK;
}

static MUST_USE enum err choose_recording(struct query *query)
{
    const struct request *request = query->request;
    struct snapshot *snapshot = query->snapshot;
    enum side side =
        request_number(request, PARAM_RECORDING, SIDE_NEW) == SIDE_OLD ? SIDE_OLD : SIDE_NEW;
    query->is_diff = request_number(request, PARAM_DIFF, 0) == 1;
    if (snapshot->sides[SIDE_OLD] == NULL && (query->is_diff || side == SIDE_OLD)) {
        return problem_set(query->problem, STATUS_CONFLICT,
                           query->is_diff ? PARAM_DIFF : PARAM_RECORDING, ERR_INVALID,
                           "no second recording is open");
    }
    if (query->is_diff && side == SIDE_OLD) {
        return problem_set(query->problem, 0, PARAM_RECORDING, ERR_INVALID,
                           "recording: not available in a diff");
    }
    query->opened = snapshot->sides[side];
    query->profile = query->opened->profile;
    query->code = query->is_diff ? &snapshot->both : &snapshot->alone[side];
    return ERR_OK;
}

static MUST_USE enum err
select_one(struct query *query, const struct opened *opened, struct selection *out)
{
    const struct profile *profile = opened->profile;
    struct filter filter = query->filter;
    if (query->settings->filter == NULL) { // else it has its own rules, or none
        filter.suppressions = &opened->rules;
    }
    TRY(filter_params_read_time(query->request, &profile->recording, &filter, query->problem));
    if (profile == query->profile) {
        query->filter = filter;
    }
    enum err problem = profile_select(profile, &filter, out, &query->problem->info);
    return problem == ERR_OK ? ERR_OK
                             : filter_params_blame(query->request, problem, query->problem);
}

enum err query_init(struct query *query, bool with_selection)
{
    const struct request *request = query->request;
    TRY(choose_recording(query));
    query->view = (struct view){
        .profile = query->profile,
        .code = query->code,
        .costs = request_number(request, PARAM_COSTS, costs_by_default),
        .sort = (enum cost)request_number(request, PARAM_SORT, COST_PEAK_BYTES),
        .score = (enum side_score)request_number(request, PARAM_SORT_BY, SCORE_LARGER),
        .layout = VIEW_COLUMNS,
        .filter = &query->filter,
    };
    query->has_selection = with_selection;
    if (!with_selection) {
        return ERR_OK;
    }
    if (query->settings->filter != NULL) {
        query->filter = *query->settings->filter;
    }
    TRY(filter_params_read(query->request, &query->filter, query->problem));
    query->filter.cancel = query->cancel;
    TRY(select_one(query, query->opened, &query->selection));
    query->view.selection = &query->selection;
    if (query->is_diff) {
        TRY(select_one(query, query->snapshot->sides[SIDE_OLD], &query->old_selection));
        query->view.old_selection = &query->old_selection;
    }
    return ERR_OK;
}

void query_release(struct query *query)
{
    view_release(&query->view);
    selection_release(&query->selection);
    selection_release(&query->old_selection);
}

enum err query_write_envelope(struct query *query)
{
    json_key_u64(query->view.w, "version", VIEW_JSON_VERSION);
    json_key_u64(query->view.w, "generation", query->snapshot->generation);
    return query->has_selection ? view_selection(&query->view, &query->opened->whole.costs)
                                : ERR_OK;
}

// Hash everything that the nodes of a tree depend on.
static MUST_USE enum err
tree_key(const struct query *query, struct tree_view_spec spec, uint64_t *out)
{
    CLEANUP(strbuf_release) struct strbuf all = {0};
    strbuf_printf(&all, "%llu %d %d %d %d %d", (unsigned long long)query->snapshot->generation,
                  query->is_diff, (int)spec.direction, (int)spec.key, (int)spec.frames,
                  spec.collapses);
    for (size_t i = 0; i < spec.unfolded_count; i++) {
        strbuf_printf(&all, " %llu", (unsigned long long)spec.unfolded[i]);
    }
    filter_params_append(query->request, &all);
    TRY(strbuf_result(&all));
    *out = content_hash(all.data, all.len);
    return ERR_OK;
}

enum err query_tree(struct query *query, struct tree_view_spec spec, struct cached_tree **out)
{
    uint64_t key;
    TRY(tree_key(query, spec, &key));
    struct cached_tree *cached = tree_cache_find(query->trees, key);
    if (cached == NULL) {
        CLEANUP(tree_view_release) struct tree_view tree = {0};
        TRY(tree_view_build(query->code, &query->selection,
                            query->is_diff ? &query->old_selection : NULL, spec, &tree));
        cached = tree_cache_add(query->trees, key, query->snapshot, &tree);
    }
    if (cached == NULL) {
        return ERR_NO_MEMORY;
    }
    *out = cached;
    return ERR_OK;
}

const char *capability_name(enum capability capability)
{
    static const char *const names[CAPABILITY_COUNT] = {
        [CAPABILITY_TIME_RANGE] = "time_range",
        [CAPABILITY_SLICES] = "slices",
        [CAPABILITY_SIZES] = "sizes",
        [CAPABILITY_LIFETIMES] = "lifetimes",
        [CAPABILITY_RSS] = "rss",
        [CAPABILITY_MAPPINGS] = "mappings",
        [CAPABILITY_GROWTH] = "growth",
        [CAPABILITY_SOURCE] = "source",
        [CAPABILITY_ADHOC] = "adhoc",
    };
    return names[capability];
}

bool query_can(const struct query *query, enum capability capability)
{
    const struct recording *recording = &query->profile->recording;
    const bool can[CAPABILITY_COUNT] = {
        [CAPABILITY_TIME_RANGE] = time_range_is_known(recording),
        [CAPABILITY_SLICES] = recording->slice_count > 0 && recording->slice_ms > 0,
        [CAPABILITY_SIZES] = recording->size_bucket_count > 0,
        [CAPABILITY_LIFETIMES] = recording->lifetime_bucket_count > 0,
        [CAPABILITY_RSS] = recording->rss_sample_count > 0,
        [CAPABILITY_GROWTH] = growth_is_known(recording),
        [CAPABILITY_SOURCE] = !query->settings->hides_sources,
        [CAPABILITY_MAPPINGS] = recording->part_count > 0,
        [CAPABILITY_ADHOC] = recording->adhoc_count > 0,
    };
    return can[capability];
}

enum err query_need(struct query *query, enum capability capability, const char *what)
{
    if (query_can(query, capability)) {
        return ERR_OK;
    }
    return problem_set(query->problem, STATUS_CONFLICT, PARAM_COUNT, ERR_UNSUPPORTED,
                       "the recording has no %s", what);
}
