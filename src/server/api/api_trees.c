// SPDX-License-Identifier: MIT
// api_trees: /api/v1/tree, and /api/v1/stacks: the whole stacks through a node of a tree, through a
// function, or all.
//
// The stacks of a node are found by rows, since every tree of a selection knows the node where each
// row's stack ends. Context: H.
#include "base/compiler.h"
#include "host/text/number.h"
#include "profile/calls/call_tree.h"
#include "profile/select/pattern.h"
#include "server/api/api.h"
#include "views_json/views/views.h"

enum {
    NODES_BY_DEFAULT = 20000,
    STACKS_BY_DEFAULT = 50,
    UNFOLDED_MAX = 1000,
};

// Read the paths of unfolded runs: numbers, separated by commas.
static MUST_USE enum err read_unfolded(struct query *q, struct u64_vec *out)
{
    const char *at = request_text(q->request, PARAM_UNFOLD);
    uint64_t path;
    while (at != NULL && *at != '\0') {
        if (out->len == UNFOLDED_MAX || !number_take(&at, 10, &path) ||
            (*at != ',' && *at != '\0')) {
            return problem_set(q->problem, 0, PARAM_UNFOLD, ERR_INVALID,
                               "unfold: at most %d numbers, separated by commas", UNFOLDED_MAX);
        }
        TRY(u64_vec_push(out, path));
        at += *at == ',';
    }
    return ERR_OK;
}

// `unfolded` has the paths that the spec borrows.
static MUST_USE enum err
read_spec(struct query *q, struct u64_vec *unfolded, struct tree_view_spec *out)
{
    const struct request *request = q->request;
    enum request_by by;
    TRY(read_unfolded(q, unfolded));
    TRY(query_choose_by(q, REQUEST_BY_LOCATION, REQUEST_BY_FUNCTION, &by));
    *out = (struct tree_view_spec){
        .direction =
            (enum call_tree_direction)request_number(request, PARAM_DIRECTION, CALL_TREE_TOP_DOWN),
        .key = by == REQUEST_BY_FUNCTION ? CALL_TREE_BY_FUNCTION : CALL_TREE_BY_LOCATION,
        .frames = query_frames(q),
        .collapses = request_number(request, PARAM_COLLAPSE, 0) == 1,
        .unfolded = unfolded->items,
        .unfolded_count = unfolded->len,
    };
    return ERR_OK;
}

static MUST_USE enum err find_tree(struct query *q, struct cached_tree **out)
{
    CLEANUP(u64_vec_release) struct u64_vec unfolded = {0};
    struct tree_view_spec spec;
    TRY(read_spec(q, &unfolded, &spec));
    if (q->is_diff && spec.key != CALL_TREE_BY_FUNCTION) {
        return problem_set(q->problem, 0, PARAM_BY, ERR_INVALID,
                           "by: a diff is always by function");
    }
    return query_tree(q, spec, out);
}

static uint64_t root_total(const struct query *q, const struct tree_view *tree)
{
    uint64_t new = costs_get(tree_costs_total(&tree->costs[SIDE_NEW], 0), q->view.sort);
    uint64_t old =
        q->is_diff ? costs_get(tree_costs_total(&tree->costs[SIDE_OLD], 0), q->view.sort) : 0;
    return side_score_of(SCORE_LARGER, new, old);
}

static MUST_USE enum err
read_wish(struct query *q, const struct tree_view *tree, struct tree_view_wish *out)
{
    const struct request *request = q->request;
    uint64_t limit = request_number(request, PARAM_LIMIT, NODES_BY_DEFAULT);
    double share = request->values[PARAM_MIN_SHARE].fraction;
    uint64_t root = request_number(request, PARAM_ROOT, 0);
    if (root >= tree->nodes.len) {
        return problem_set(q->problem, 0, PARAM_ROOT, ERR_NOT_FOUND,
                           "root: not a node of the tree");
    }
    // Round up, so that a share of 0.5 in 5 is at least 3.
    double minimum = share * (double)root_total(q, tree);
    uint64_t whole = (uint64_t)minimum;
    *out = (struct tree_view_wish){
        .root = (uint32_t)root,
        .levels = (uint32_t)request_number(request, PARAM_DEPTH, 0),
        .minimum = whole + ((double)whole < minimum),
        .limit = limit > 0 ? limit : REQUEST_ROWS_MAX,
        .sort = q->view.sort,
        .score = (enum side_score)request_number(request, PARAM_SORT_BY, SCORE_LARGER),
        .by_any_cost = request_number(request, PARAM_ANY_COST, 0) == 1,
    };
    return ERR_OK;
}

// Set *has_search if a search was requested; `out` then has its matches.
static MUST_USE enum err search_tree(struct query *q,
                                     const struct tree_view *tree,
                                     struct tree_matches *out,
                                     bool *has_search)
{
    const char *text = request_text(q->request, PARAM_SEARCH);
    const char *regex = request_text(q->request, PARAM_SEARCH_REGEX);
    CLEANUP(pattern_release) struct pattern pattern = {0};
    *has_search = text != NULL || regex != NULL;
    if (!*has_search) {
        return ERR_OK;
    }
    if (text != NULL && regex != NULL) {
        return problem_set(q->problem, 0, PARAM_SEARCH, ERR_INVALID,
                           "search: only one search can be given");
    }
    enum err problem = pattern_init(&pattern, text != NULL ? PATTERN_TEXT : PATTERN_REGEX,
                                    text != NULL ? text : regex, "search", &q->problem->info);
    if (problem == ERR_OK) {
        problem = tree_view_search(tree, &pattern, out, &q->problem->info);
    }
    q->problem->parameter = problem != ERR_OK ? request_param_name(PARAM_SEARCH_REGEX) : NULL;
    return problem;
}

enum err api_tree(struct query *q)
{
    CLEANUP(cached_tree_unrefp) struct cached_tree *cached = NULL;
    CLEANUP(tree_matches_release) struct tree_matches found = {0};
    CLEANUP(u64_vec_release) struct u64_vec unfolded = {0};
    struct tree_options options = {0};
    TRY(read_spec(q, &unfolded, &options.spec));
    bool has_search;
    TRY(find_tree(q, &cached));
    options.tree = &cached->tree;
    TRY(search_tree(q, options.tree, &found, &has_search));
    options.matches = has_search ? &found : NULL;
    TRY(read_wish(q, options.tree, &options.wish));
    return view_tree(&q->view, &options);
}

// Stacks

// Clear the marks of rows whose stack does not end at or below `node`.
static MUST_USE enum err
keep_below(const struct tree_view *tree, uint32_t node, struct flag_vec *rows)
{
    CLEANUP(flag_vec_release) struct flag_vec below = {0};
    TRY(flag_vec_resize(&below, tree->nodes.len));
    for (uint32_t i = node; i < tree->nodes.len; i++) {
        bool is_child = i > node && below.items[tree->nodes.items[i].parent] != 0;
        below.items[i] = i == node || is_child;
    }
    for (size_t i = 0; i < rows->len; i++) {
        rows->items[i] &= below.items[tree->row_nodes.items[i]];
    }
    return ERR_OK;
}

static MUST_USE enum err keep_of_node(struct query *q, uint64_t node, struct flag_vec *rows)
{
    CLEANUP(cached_tree_unrefp) struct cached_tree *cached = NULL;
    TRY(find_tree(q, &cached));
    if (node >= cached->tree.nodes.len) {
        return problem_set(q->problem, 0, PARAM_NODE, ERR_NOT_FOUND,
                           "node: not a node of the tree");
    }
    return keep_below(&cached->tree, (uint32_t)node, rows);
}

// Clear the marks of rows whose stack does not contain the function.
static MUST_USE enum err keep_of_function(struct query *q, uint64_t function, struct flag_vec *rows)
{
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    if (function >= q->profile->code.functions.len) {
        return problem_set(q->problem, 0, PARAM_FUNCTION_ID, ERR_NOT_FOUND,
                           "function_id: the recording has no such function");
    }
    CLEANUP(flag_vec_release) struct flag_vec has = {0};
    TRY(call_sites_build(&q->selection, &sites)); // of a whole recording it is kept
    TRY(flag_vec_resize(&has, sites.tree.nodes.len));
    for (size_t i = 1; i < sites.tree.nodes.len; i++) {
        const struct call_tree_node *node = &sites.tree.nodes.items[i];
        uint32_t own = profile_location_get(q->profile, node->location)->function;
        has.items[i] = has.items[node->parent] != 0 || own == function;
    }
    for (size_t i = 0; i < rows->len; i++) {
        rows->items[i] &= has.items[sites.tree.row_nodes.items[i]];
    }
    return ERR_OK;
}

static MUST_USE enum err write_pairs(struct query *q, const struct stacks_options *options)
{
    static const struct tree_view_spec spec = {.direction = CALL_TREE_TOP_DOWN,
                                               .key = CALL_TREE_BY_FUNCTION};
    static const enum param no_params[] = {PARAM_NODE, PARAM_FUNCTION_ID};
    CLEANUP(cached_tree_unrefp) struct cached_tree *cached = NULL;
    for (size_t i = 0; i < ARRAY_LEN(no_params); i++) {
        if (request_has(q->request, no_params[i])) {
            return problem_set(q->problem, 0, no_params[i], ERR_INVALID,
                               "%s: not available in a diff", request_param_name(no_params[i]));
        }
    }
    TRY(query_tree(q, spec, &cached));
    view_stack_pairs(&q->view, &cached->tree, options);
    return ERR_OK;
}

enum err api_stacks(struct query *q)
{
    CLEANUP(flag_vec_release) struct flag_vec rows = {0};
    const uint64_t limit = request_number(q->request, PARAM_LIMIT, STACKS_BY_DEFAULT);
    struct stacks_options options = {
        .first = request_number(q->request, PARAM_OFFSET, 0),
        .limit = limit > 0 ? limit : REQUEST_ROWS_MAX,
    };
    if (q->is_diff) {
        return write_pairs(q, &options);
    }
    TRY(flag_vec_resize(&rows, q->selection.rows.len));
    for (size_t i = 0; i < rows.len; i++) {
        rows.items[i] = 1;
    }
    if (request_has(q->request, PARAM_NODE)) {
        TRY(keep_of_node(q, request_number(q->request, PARAM_NODE, 0), &rows));
    }
    if (request_has(q->request, PARAM_FUNCTION_ID)) {
        TRY(keep_of_function(q, request_number(q->request, PARAM_FUNCTION_ID, 0), &rows));
    }
    options.rows = &rows;
    return view_stacks(&q->view, &options);
}
