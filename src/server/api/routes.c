// SPDX-License-Identifier: MIT
#include "server/api/routes.h"

#include "base/compiler.h"
#include "server/api/api.h"
#include "views_json/views/views.h"

#define SIDE (PARAM_BIT(PARAM_TOKEN) | PARAM_BIT(PARAM_RECORDING))
#define STACKED                                                                                   \
    (SIDE | PARAM_BIT(PARAM_FUNCTION) | PARAM_BIT(PARAM_FUNCTION_REGEX) | PARAM_BIT(PARAM_FILE) | \
     PARAM_BIT(PARAM_FILE_REGEX) | PARAM_BIT(PARAM_MODULE) | PARAM_BIT(PARAM_MODULE_REGEX) |      \
     PARAM_BIT(PARAM_FOCUS) | PARAM_BIT(PARAM_IGNORE) | PARAM_BIT(PARAM_SHOW_FROM) |              \
     PARAM_BIT(PARAM_PROCESS) | PARAM_BIT(PARAM_THREAD))
#define RANGE                                                                       \
    (PARAM_BIT(PARAM_FROM_MS) | PARAM_BIT(PARAM_TO_MS) | PARAM_BIT(PARAM_CLASSES) | \
     PARAM_BIT(PARAM_OLD_FROM_MS) | PARAM_BIT(PARAM_OLD_TO_MS))
// Filters by size or lifetime, for answers by stack. Not over time: lifetimes have no times.
#define BLOCKS                                                         \
    (STACKED | PARAM_BIT(PARAM_SIZE_MIN) | PARAM_BIT(PARAM_SIZE_MAX) | \
     PARAM_BIT(PARAM_LIFETIME_MIN) | PARAM_BIT(PARAM_LIFETIME_MAX))
#define FILTER (BLOCKS | RANGE)
#define DIFF   (PARAM_BIT(PARAM_DIFF) | PARAM_BIT(PARAM_SORT_BY))
#define COSTS  PARAM_BIT(PARAM_COSTS)
#define SORT   PARAM_BIT(PARAM_SORT)
#define LIMIT  PARAM_BIT(PARAM_LIMIT)
#define FRAMES PARAM_BIT(PARAM_HIDE_WRAPPERS)
#define SHAPE                                                                                \
    (PARAM_BIT(PARAM_DIRECTION) | PARAM_BIT(PARAM_BY) | PARAM_BIT(PARAM_COLLAPSE) | FRAMES | \
     PARAM_BIT(PARAM_UNFOLD))

static const struct route routes[] = {
    {"/api/v1/meta", SIDE, false, false, api_meta, NULL},
    {"/api/v1/health", SIDE, false, false, NULL, view_health},
    {"/api/v1/summary", FILTER | DIFF | LIMIT, true, false, api_summary, NULL},
    {"/api/v1/verdict", FILTER | DIFF, true, false, NULL, view_verdict},
    {"/api/v1/call_sites", FILTER | DIFF | COSTS | SORT | LIMIT | PARAM_BIT(PARAM_STACKS), true,
     false, api_call_sites, NULL},
    {"/api/v1/stacks",
     FILTER | DIFF | COSTS | SORT | LIMIT | SHAPE | PARAM_BIT(PARAM_OFFSET) |
         PARAM_BIT(PARAM_NODE) | PARAM_BIT(PARAM_FUNCTION_ID),
     true, false, api_stacks, NULL},
    {"/api/v1/tree",
     FILTER | DIFF | COSTS | SORT | LIMIT | SHAPE | PARAM_BIT(PARAM_ROOT) | PARAM_BIT(PARAM_DEPTH) |
         PARAM_BIT(PARAM_MIN_SHARE) | PARAM_BIT(PARAM_ANY_COST) | PARAM_BIT(PARAM_SEARCH) |
         PARAM_BIT(PARAM_SEARCH_REGEX),
     true, false, api_tree, NULL},
    {"/api/v1/functions", FILTER | DIFF | COSTS | SORT | LIMIT | FRAMES | PARAM_BIT(PARAM_BY_SELF),
     true, false, api_functions, NULL},
    {"/api/v1/function",
     FILTER | DIFF | COSTS | SORT | FRAMES | PARAM_BIT(PARAM_ID) | PARAM_BIT(PARAM_NAME) |
         PARAM_BIT(PARAM_IN_MODULE),
     true, false, api_function, NULL},
    {"/api/v1/call_graph", FILTER | COSTS | LIMIT | FRAMES, true, false, api_call_graph, NULL},
    {"/api/v1/source", FILTER | COSTS | PARAM_BIT(PARAM_DIFF) | PARAM_BIT(PARAM_FILE_PATH), true,
     true, api_source, NULL},
    {"/api/v1/series",
     STACKED | PARAM_BIT(PARAM_VALUE) | PARAM_BIT(PARAM_TOP) | PARAM_BIT(PARAM_BY), true, false,
     api_series, NULL},
    {"/api/v1/sizes", BLOCKS | PARAM_BIT(PARAM_TOP) | PARAM_BIT(PARAM_RANK), true, false, api_sizes,
     NULL},
    {"/api/v1/lifetimes", BLOCKS | PARAM_BIT(PARAM_TOP) | PARAM_BIT(PARAM_RANK), true, false,
     api_lifetimes, NULL},
    {"/api/v1/size_lifetime", BLOCKS, true, false, api_size_lifetime, NULL},
    {"/api/v1/leaks", BLOCKS | COSTS | LIMIT | PARAM_BIT(PARAM_BY) | PARAM_BIT(PARAM_GROWTH), true,
     false, api_leaks, NULL},
    {"/api/v1/rss", SIDE | PARAM_BIT(PARAM_PROCESS) | PARAM_BIT(PARAM_MOMENT_MS), false, false,
     api_rss, NULL},
    {"/api/v1/adhoc", SIDE | LIMIT, false, false, api_adhoc, NULL},
    {"/api/v1/blocks", STACKED | PARAM_BIT(PARAM_SIZE_MIN) | PARAM_BIT(PARAM_SIZE_MAX) | LIMIT,
     true, false, api_blocks, NULL},
    {"/api/v1/processes", FILTER | COSTS, true, false, NULL, view_processes},
    {"/api/v1/threads", FILTER | COSTS, true, false, NULL, view_threads},
    {"/api/v1/modules", FILTER | COSTS, true, false, NULL, view_modules},
    {"/api/v1/files", FILTER | COSTS | SORT, true, false, api_files, NULL},
};

const struct route *route_find(const char *target)
{
    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        if (target_has_path(target, routes[i].path)) {
            return &routes[i];
        }
    }
    return NULL;
}
