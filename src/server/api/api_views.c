// SPDX-License-Identifier: MIT
// api_views: the API answers that are views (views_json/views/views.h). It converts request
// parameters into options of a view. Last: a source file with the costs of its lines.
#include "base/clock.h"
#include "base/compiler.h"
#include "profile/tables/function_costs.h"
#include "server/api/api.h"
#include "server/state/source_file.h"
#include "views_json/views/views.h"

enum {
    TOP_BY_DEFAULT = 10,
    SITES_BY_DEFAULT = 100,
    SUMMARY_SITES_BY_DEFAULT = 5,
    FUNCTIONS_BY_DEFAULT = 1000,
    LEAKS_BY_DEFAULT = 100,
    EVENTS_BY_DEFAULT = 100,
    SINGLE_BLOCKS_BY_DEFAULT = 10000,
};

static size_t limit_of(const struct query *q, uint64_t by_default)
{
    return request_number(q->request, PARAM_LIMIT, by_default);
}

enum err api_summary(struct query *q)
{
    static const enum cost costs[] = {COST_PEAK_BYTES, COST_LEAKED_BYTES, COST_ALLOCATIONS,
                                      COST_TEMPORARY, COST_ALLOCATED_BYTES};
    const struct summary_options options = {
        .sites = {.limit = limit_of(q, SUMMARY_SITES_BY_DEFAULT)},
        .costs = costs,
        .cost_count = ARRAY_LEN(costs),
    };
    return view_summary(&q->view, &options);
}

enum err api_call_sites(struct query *q)
{
    const uint64_t stacks = request_number(q->request, PARAM_STACKS, 0);
    const struct call_sites_options options = {
        .limit = limit_of(q, SITES_BY_DEFAULT), .lists_stacks = stacks > 0, .stack_limit = stacks};
    if (q->is_diff && stacks > 0) {
        return problem_set(q->problem, 0, PARAM_STACKS, ERR_INVALID,
                           "stacks: not available in a diff");
    }
    return view_call_sites(&q->view, &options);
}

enum err api_functions(struct query *q)
{
    const struct functions_options options = {
        .frames = query_frames(q),
        .by_self = request_number(q->request, PARAM_BY_SELF, 0) == 1,
        .limit = limit_of(q, FUNCTIONS_BY_DEFAULT),
    };
    return view_functions(&q->view, &options);
}

// Find the function that the parameters name.
static MUST_USE enum err find_function(struct query *q, uint32_t *out)
{
    const char *name = request_text(q->request, PARAM_NAME);
    const char *module = request_text(q->request, PARAM_IN_MODULE);
    size_t count = q->code->origins.len;
    if (request_has(q->request, PARAM_ID) == (name != NULL)) {
        return problem_set(q->problem, 0, PARAM_ID, ERR_INVALID, "id or name is required");
    }
    uint64_t found = request_number(q->request, PARAM_ID, count);
    for (uint32_t i = 0; name != NULL && found == count && i < count; i++) {
        if (strcmp(code_union_name(q->code, i), name) == 0 &&
            (module == NULL || strcmp(code_union_module(q->code, i), module) == 0)) {
            found = i;
        }
    }
    if (found >= count) {
        return problem_set(q->problem, 0, name != NULL ? PARAM_NAME : PARAM_ID, ERR_NOT_FOUND,
                           "the recording has no such function");
    }
    // In a comparison, functions of the same name share one id.
    struct code_origin origin = q->code->origins.items[found];
    *out = q->code->ids[origin.side].items[origin.function];
    return ERR_OK;
}

enum err api_function(struct query *q)
{
    CLEANUP(function_trees_release) struct function_trees trees = {0};
    uint32_t function = 0;
    TRY(find_function(q, &function));
    TRY(function_trees_build_of(q->code, &q->selection, q->view.old_selection, query_frames(q),
                                function, &trees));
    return view_function_detail(&q->view, &trees, function);
}

enum err api_call_graph(struct query *q)
{
    return view_call_graph(&q->view, query_frames(q), limit_of(q, 0));
}

static MUST_USE enum err
read_row_group(struct query *q, enum request_by otherwise, enum row_group_by *out)
{
    enum request_by by;
    TRY(query_choose_by(q, REQUEST_BY_CALL_SITE, otherwise, &by));
    *out = by == REQUEST_BY_STACK ? ROW_GROUPS_BY_STACK : ROW_GROUPS_BY_SITE_ALONE;
    return ERR_OK;
}

enum err api_series(struct query *q)
{
    enum row_group_by by;
    TRY(read_row_group(q, REQUEST_BY_STACK, &by));
    const uint64_t value = request_number(q->request, PARAM_VALUE, SERIES_LIVE_BYTES);
    const struct series_options options = {
        .value = (enum series_value)value,
        .value_name = request_choice_name(PARAM_VALUE, value),
        .by = by,
        .top_count = request_number(q->request, PARAM_TOP, TOP_BY_DEFAULT),
    };
    return view_series(&q->view, &options);
}

static MUST_USE enum err write_histogram(struct query *q, enum histogram_of of)
{
    const struct histogram_options options = {
        .of = of,
        .by_bytes = request_number(q->request, PARAM_RANK, 0) == 1,
        .top_count = request_number(q->request, PARAM_TOP, TOP_BY_DEFAULT),
    };
    return view_histogram(&q->view, &options);
}

enum err api_sizes(struct query *q)
{
    TRY(query_need(q, CAPABILITY_SIZES, "block sizes"));
    return write_histogram(q, HISTOGRAM_SIZES);
}

enum err api_lifetimes(struct query *q)
{
    TRY(query_need(q, CAPABILITY_LIFETIMES, "lifetimes"));
    return write_histogram(q, HISTOGRAM_LIFETIMES);
}

enum err api_size_lifetime(struct query *q)
{
    TRY(query_need(q, CAPABILITY_SIZES, "block sizes"));
    TRY(query_need(q, CAPABILITY_LIFETIMES, "lifetimes"));
    return view_size_lifetime(&q->view);
}

enum err api_leaks(struct query *q)
{
    static const uint64_t costs_by_default =
        (uint64_t)1 << COST_LEAKED_BYTES | (uint64_t)1 << COST_LEAKED_ALLOCATIONS |
        (uint64_t)1 << COST_ALLOCATIONS | (uint64_t)1 << COST_ALLOCATED_BYTES;
    enum row_group_by by;
    TRY(read_row_group(q, REQUEST_BY_CALL_SITE, &by));
    const struct leaks_options options = {
        .by = by,
        .has_class = request_has(q->request, PARAM_GROWTH),
        .class = (enum growth_class)request_number(q->request, PARAM_GROWTH, 0),
        .limit = limit_of(q, LEAKS_BY_DEFAULT),
    };
    q->view.costs = request_number(q->request, PARAM_COSTS, costs_by_default);
    TRY(view_leaks(&q->view, &options));
    view_suppressions(&q->view);
    return ERR_OK;
}

// Choose the breakdown whose mappings are listed: that of `moment_ms`, else the peak's, else
// REC_NONE.
static MUST_USE enum err
choose_breakdown(struct query *q, const struct rss_breakdown *rss_breakdown, uint32_t *out)
{
    const struct rss_breakdown_split *peak = rss_breakdown_peak(rss_breakdown);
    *out = peak != NULL ? (uint32_t)(peak - rss_breakdown->splits.items) : REC_NONE;
    if (!request_has(q->request, PARAM_MOMENT_MS)) {
        return ERR_OK;
    }
    const uint64_t moment_ms = request_number(q->request, PARAM_MOMENT_MS, 0);
    for (uint32_t i = 0; i < rss_breakdown->splits.len; i++) {
        const struct rss_breakdown_split *split = &rss_breakdown->splits.items[i];
        if (split->time_ms == moment_ms && split->parts.len > 0) {
            *out = i;
            return ERR_OK;
        }
    }
    return problem_set(q->problem, 0, PARAM_MOMENT_MS, ERR_NOT_FOUND,
                       "moment_ms: there are no mappings of that moment");
}

enum err api_rss(struct query *q)
{
    CLEANUP(rss_breakdown_release) struct rss_breakdown rss_breakdown = {0};
    CLEANUP(flag_vec_release) struct flag_vec details = {0};
    uint32_t chosen;
    TRY(rss_breakdown_build(q->profile, (uint32_t)request_number(q->request, PARAM_PROCESS, 0),
                            &rss_breakdown));
    TRY(choose_breakdown(q, &rss_breakdown, &chosen));
    TRY(flag_vec_resize(&details, rss_breakdown.splits.len));
    if (chosen != REC_NONE) {
        details.items[chosen] = 1;
        json_key_u64(q->view.w, "moment_ms", rss_breakdown.splits.items[chosen].time_ms);
    } else {
        json_key_null(q->view.w, "moment_ms");
    }
    return view_rss(&q->view, &rss_breakdown, &details);
}

enum err api_adhoc(struct query *q)
{
    return view_adhoc(&q->view, limit_of(q, EVENTS_BY_DEFAULT));
}

enum err api_blocks(struct query *q)
{
    TRY(query_need(q, CAPABILITY_BLOCKS, "list of single blocks (record --blocks)"));
    const struct blocks_options options = {.lists_blocks = true,
                                           .limit = limit_of(q, SINGLE_BLOCKS_BY_DEFAULT)};
    return view_blocks(&q->view, &options);
}

enum err api_files(struct query *q)
{
    return view_groups(&q->view, COST_GROUPS_BY_FILE);
}

static void write_text(struct query *q, const char *path)
{
    struct json_writer *w = q->view.w;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    struct err_info info = {0};
    uint64_t modified_ms = 0;
    bool is_readable = false;
    if (!query_can(q, CAPABILITY_SOURCE)) {
        (void)err_set(&info, ERR_PERMISSION, "the server does not show source files"); // sent below
    } else {
        is_readable = source_file_read(path, &text, &modified_ms, &info) == ERR_OK;
    }
    uint64_t start_ms = q->profile->recording.meta.start_unix_ns / NS_PER_MS;
    json_key_bool(w, "is_readable", is_readable);
    json_key_string(w, "reason", is_readable ? NULL : info.text);
    json_key(w, "text");
    if (is_readable) {
        json_value_string_bytes(w, strbuf_text(&text), text.len);
    } else {
        json_value_null(w);
    }
    json_key_bool(w, "is_newer", is_readable && start_ms > 0 && modified_ms > start_ms);
}

enum err api_source(struct query *q)
{
    const char *path = request_text(q->request, PARAM_FILE_PATH);
    if (path == NULL) {
        return problem_set(q->problem, 0, PARAM_FILE_PATH, ERR_INVALID, "file_path is required");
    }
    if (!view_source_is_named(&q->view, path)) {
        return problem_set(q->problem, 0, PARAM_FILE_PATH, ERR_NOT_FOUND,
                           "file_path: no frame of the recording names this file");
    }
    json_key_string(q->view.w, "path", path);
    write_text(q, path);
    return view_source_lines(&q->view, path);
}
