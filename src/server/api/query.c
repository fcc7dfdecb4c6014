// SPDX-License-Identifier: MIT
#include "server/api/query.h"

#include <string.h>

#include "base/compiler.h"
#include "profile/growth/growth.h"
#include "profile/tables/block_table.h"
#include "server/http/encoding.h"
#include "views_json/views/views.h"

enum {
    STATUS_CONFLICT = 409,
};

static void read_names(const struct request *request, struct filter *filter)
{
    const struct {
        enum param param;
        const char **field;
    } texts[] = {
        {PARAM_FUNCTION, &filter->function_text},
        {PARAM_FUNCTION_REGEX, &filter->function},
        {PARAM_FILE, &filter->file_text},
        {PARAM_FILE_REGEX, &filter->file},
        {PARAM_MODULE, &filter->module_text},
        {PARAM_MODULE_REGEX, &filter->module},
        {PARAM_FOCUS, &filter->focus},
        {PARAM_IGNORE, &filter->ignore},
        {PARAM_SHOW_FROM, &filter->show_from},
        {PARAM_THREAD, &filter->thread},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const char *text = request_text(request, texts[i].param);
        *texts[i].field = text != NULL ? text : *texts[i].field;
    }
    filter->pid = (uint32_t)request_number(request, PARAM_PROCESS, filter->pid);
}

// Read a range of sizes or lifetimes, both ends included and optional.
static MUST_USE enum err read_buckets(const struct request *request,
                                      enum param low,
                                      enum param high,
                                      bool *has_range,
                                      struct bucket_range *range,
                                      struct problem *problem)
{
    if (!request_has(request, low) && !request_has(request, high)) {
        return ERR_OK;
    }
    uint64_t least = request_number(request, low, 0);
    uint64_t most = request_number(request, high, UINT64_MAX);
    if (most < least) {
        return problem_set(problem, 0, high, ERR_INVALID, "%s: the range ends before it begins",
                           request_param_name(high));
    }
    *has_range = true;
    *range = bucket_range_covering(least, most);
    return ERR_OK;
}

// Read all but the time range, which depends on the recording: a comparison has two.
static MUST_USE enum err
filter_read(const struct request *request, struct filter *filter, struct problem *problem)
{
    read_names(request, filter);
    TRY(read_buckets(request, PARAM_SIZE_MIN, PARAM_SIZE_MAX, &filter->has_sizes, &filter->sizes,
                     problem));
    return read_buckets(request, PARAM_LIFETIME_MIN, PARAM_LIFETIME_MAX, &filter->has_lifetimes,
                        &filter->lifetimes, problem);
}

// The first parameter of a time range that was given.
static enum param range_param(const struct request *request)
{
    static const enum param params[] = {PARAM_FROM_MS, PARAM_TO_MS, PARAM_CLASSES};
    size_t i = 0;
    while (i + 1 < ARRAY_LEN(params) && !request_has(request, params[i])) {
        i++;
    }
    return params[i];
}

// Whether two time ranges of one recording are compared.
static bool filter_has_old_time(const struct request *request)
{
    return request_has(request, PARAM_OLD_FROM_MS) || request_has(request, PARAM_OLD_TO_MS);
}

// Read the time range of a side, in slices of its recording. The old side has its own one if two
// ranges of one recording are compared.
static MUST_USE enum err filter_read_time(const struct request *request,
                                          enum side side,
                                          const struct recording *recording,
                                          struct filter *filter,
                                          struct problem *problem)
{
    const bool is_old = side == SIDE_OLD && filter_has_old_time(request);
    const enum param from = is_old ? PARAM_OLD_FROM_MS : PARAM_FROM_MS;
    const enum param to = is_old ? PARAM_OLD_TO_MS : PARAM_TO_MS;
    filter->has_range = request_has(request, from) || request_has(request, to) ||
                        request_has(request, PARAM_CLASSES);
    if (!filter->has_range) {
        return ERR_OK;
    }
    if (!time_range_is_known(recording)) {
        return problem_set(problem, STATUS_CONFLICT, range_param(request), ERR_INVALID,
                           "the recording has no time slices, so it cannot be asked for a "
                           "time range");
    }
    uint64_t from_ms = request_number(request, from, 0);
    uint64_t to_ms = request_number(request, to, UINT64_MAX);
    if (to_ms <= from_ms) {
        return problem_set(problem, 0, to, ERR_INVALID, "%s: the range ends before it begins",
                           request_param_name(to));
    }
    uint64_t classes = request_number(request, PARAM_CLASSES, BLOCKS_IN_IN | BLOCKS_IN_OUT);
    filter->range = time_range_covering(recording, from_ms, to_ms, (uint32_t)classes);
    return ERR_OK;
}

// Find the wrong parameter: a pattern's error message starts with its name.
static void blame_pattern(struct problem *problem)
{
    static const enum param patterns[] = {PARAM_FUNCTION_REGEX, PARAM_FILE_REGEX,
                                          PARAM_MODULE_REGEX,   PARAM_FOCUS,
                                          PARAM_IGNORE,         PARAM_SHOW_FROM};
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        const char *name = request_param_name(patterns[i]);
        size_t len = strcspn(problem->info.text, ":");
        if (len > 0 && strncmp(name, problem->info.text, len) == 0) {
            problem->parameter = name;
        }
    }
}

// Find the parameter of a range of unrecorded data.
static void blame_range(const struct request *request, struct problem *problem)
{
    static const enum param ranges[] = {PARAM_SIZE_MIN, PARAM_SIZE_MAX, PARAM_LIFETIME_MIN,
                                        PARAM_LIFETIME_MAX};
    problem->status = STATUS_CONFLICT;
    for (size_t i = ARRAY_LEN(ranges); i-- > 0;) {
        if (request_has(request, ranges[i])) {
            problem->parameter = request_param_name(ranges[i]);
        }
    }
}

// Report which parameter made the selection fail with `reason`, and how. problem->info describes
// the failure already. Return `reason`.
static enum err
filter_blame(const struct request *request, enum err reason, struct problem *problem)
{
    blame_pattern(problem);
    if (reason == ERR_UNSUPPORTED && problem->parameter == NULL) {
        blame_range(request, problem);
    }
    return reason;
}

// Whether the request has no parameter of the filter.
static bool filter_is_absent(const struct request *request)
{
    for (int param = PARAM_FUNCTION; param <= PARAM_LIFETIME_MAX; param++) {
        if (request_has(request, (enum param)param)) {
            return false;
        }
    }
    return true;
}

// Append all given filter parameters, so that the text identifies the filter.
static void filter_append(const struct request *request, struct strbuf *out)
{
    for (int param = PARAM_FUNCTION; param <= PARAM_RECORDING; param++) {
        const char *text = request_text(request, (enum param)param);
        strbuf_append_char(out, '\0');
        strbuf_append_text(out, text != NULL ? text : "");
    }
}

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
    const bool has_ranges = query->is_diff && filter_has_old_time(request);
    if (snapshot->sides[SIDE_OLD] == NULL &&
        ((query->is_diff && !has_ranges) || side == SIDE_OLD)) {
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
    query->old_opened = has_ranges ? query->opened : snapshot->sides[SIDE_OLD];
    query->code = has_ranges       ? &snapshot->twice
                  : query->is_diff ? &snapshot->both
                                   : &snapshot->alone[side];
    return ERR_OK;
}

static MUST_USE enum err select_one(struct query *query, enum side side, struct selection *out)
{
    const struct opened *opened = side == SIDE_OLD ? query->old_opened : query->opened;
    const struct profile *profile = opened->profile;
    struct filter filter = query->filter;
    if (query->settings->filter == NULL) { // else it has its own rules, or none
        filter.suppressions = &opened->rules;
    }
    TRY(filter_read_time(query->request, side, &profile->recording, &filter, query->problem));
    if (side == SIDE_NEW) {
        query->filter = filter;
    }
    if (filter_is_absent(query->request)) {
        const struct selection *whole =
            query->settings->filter == NULL ? &opened->everything : query->settings->selection;
        *out = selection_lend(whole, query->cancel);
        return ERR_OK;
    }
    enum err problem = profile_select(profile, &filter, out, &query->problem->info);
    return problem == ERR_OK ? ERR_OK : filter_blame(query->request, problem, query->problem);
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
    TRY(filter_read(query->request, &query->filter, query->problem));
    query->filter.cancel = query->cancel;
    TRY(select_one(query, SIDE_NEW, &query->selection));
    query->view.selection = &query->selection;
    if (query->is_diff) {
        TRY(select_one(query, SIDE_OLD, &query->old_selection));
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
    filter_append(query->request, &all);
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
        [CAPABILITY_BLOCKS] = "blocks",
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
        [CAPABILITY_BLOCKS] = block_table_is_recorded(query->profile),
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
