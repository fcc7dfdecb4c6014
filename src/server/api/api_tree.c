// SPDX-License-Identifier: MIT
// api_tree: /api/v1/tree: bottom-up, top-down and flame graph.
#include "base/compiler.h"
#include "profile/select/pattern.h"
#include "server/api/api.h"
#include "server/columns/columns.h"

enum {
    NODES_BY_DEFAULT = 20000,
};

static struct shown_tree_spec read_spec(const struct request *request)
{
    return (struct shown_tree_spec){
        .direction =
            (enum call_tree_direction)request_number(request, PARAM_DIRECTION, CALL_TREE_TOP_DOWN),
        .key = (enum call_tree_key)request_number(request, PARAM_BY, CALL_TREE_BY_FUNCTION),
        .collapses = request_number(request, PARAM_COLLAPSE, 0) == 1,
    };
}

enum err api_find_tree(struct question *q, struct cached_tree **out)
{
    struct shown_tree_spec spec = read_spec(q->request);
    if (q->is_diff && spec.key != CALL_TREE_BY_FUNCTION) {
        return question_refuse(q, 0, PARAM_BY, ERR_INVALID, "by: a diff is by function");
    }
    return question_tree(q, spec, out);
}

static uint64_t root_total(const struct question *q, const struct shown_tree *tree)
{
    uint64_t new = costs_get(&tree->total[SIDE_NEW].items[0], q->sort);
    uint64_t old = q->is_diff ? costs_get(&tree->total[SIDE_OLD].items[0], q->sort) : 0;
    return side_score_of(SCORE_LARGER, new, old);
}

static MUST_USE enum err
read_wish(struct question *q, const struct shown_tree *tree, struct shown_tree_wish *out)
{
    const struct request *request = q->request;
    uint64_t limit = request_number(request, PARAM_LIMIT, NODES_BY_DEFAULT);
    double share = request->values[PARAM_MIN_SHARE].fraction;
    uint64_t root = request_number(request, PARAM_ROOT, 0);
    if (root >= tree->nodes.len) {
        return question_refuse(q, 0, PARAM_ROOT, ERR_NOT_FOUND, "root: the tree has no such node");
    }
    // Rounded up, so that a share of 0.5 in 5 is at least 3.
    double minimum = share * (double)root_total(q, tree);
    uint64_t whole = (uint64_t)minimum;
    *out = (struct shown_tree_wish){
        .root = (uint32_t)root,
        .levels = (uint32_t)request_number(request, PARAM_DEPTH, 0),
        .minimum = whole + ((double)whole < minimum),
        .limit = limit > 0 ? limit : REQUEST_ROWS_MAX,
        .sort = q->sort,
        .score = (enum side_score)request_number(request, PARAM_SORT_BY, SCORE_LARGER),
        .by_any_cost = request_number(request, PARAM_ANY_COST, 0) == 1,
    };
    return ERR_OK;
}

static uint32_t count_children(const struct shown_tree *tree, uint32_t node)
{
    uint32_t count = 0;
    for (uint32_t i = tree->nodes.items[node].first_child; i != REC_NONE;
         i = tree->nodes.items[i].next_sibling) {
        count++;
    }
    return count;
}

// What is written of the nodes: those picked, and what they refer to.
struct picked {
    const struct shown_tree *tree;
    struct u32_vec nodes;
    struct u32_vec positions; // by node of the tree: where it stands among those picked
    struct costs_vec costs;   // scratch, in order
};

static void picked_release(struct picked *picked)
{
    u32_vec_release(&picked->nodes);
    u32_vec_release(&picked->positions);
    costs_vec_release(&picked->costs);
}

static MUST_USE enum err number_nodes(struct picked *picked)
{
    TRY(u32_vec_resize(&picked->positions, picked->tree->nodes.len));
    for (size_t i = 0; i < picked->nodes.len; i++) {
        picked->positions.items[picked->nodes.items[i]] = (uint32_t)i;
    }
    return costs_vec_resize(&picked->costs, picked->nodes.len);
}

static void write_costs(struct question *q,
                        struct picked *picked,
                        const char *key,
                        const struct costs_vec *costs,
                        struct json_writer *w)
{
    for (size_t i = 0; i < picked->nodes.len; i++) {
        picked->costs.items[i] = costs->items[picked->nodes.items[i]];
    }
    costs_table(w, key, q->costs, picked->costs.items, picked->costs.len);
}

static void write_shape(const struct picked *picked, struct json_writer *w)
{
    const struct call_tree_node *nodes = picked->tree->nodes.items;
    column_of_positions(w, "id", picked->nodes.items, picked->nodes.len);
    column_begin(w, "parent");
    for (size_t i = 0; i < picked->nodes.len; i++) {
        uint32_t parent = nodes[picked->nodes.items[i]].parent;
        json_position(w, i == 0 ? REC_NONE : picked->positions.items[parent]);
    }
    column_end(w);
    column_begin(w, "depth");
    for (size_t i = 0; i < picked->nodes.len; i++) {
        json_u64(w, nodes[picked->nodes.items[i]].depth);
    }
    column_end(w);
    column_begin(w, "inlined");
    for (size_t i = 0; i < picked->nodes.len; i++) {
        json_bool(w, nodes[picked->nodes.items[i]].is_inlined);
    }
    column_end(w);
    column_begin(w, "pruned");
    for (size_t i = 0; i < picked->nodes.len; i++) {
        json_bool(w, picked->tree->pruned.items[picked->nodes.items[i]] != 0);
    }
    column_end(w);
    column_begin(w, "child_count");
    for (size_t i = 0; i < picked->nodes.len; i++) {
        json_u64(w, count_children(picked->tree, picked->nodes.items[i]));
    }
    column_end(w);
}

static void write_code_column(struct question *q,
                              const struct picked *picked,
                              struct code_tables *tables,
                              struct json_writer *w)
{
    bool by_location =
        request_number(q->request, PARAM_BY, CALL_TREE_BY_FUNCTION) == CALL_TREE_BY_LOCATION;
    column_begin(w, by_location ? "location" : "function");
    for (size_t i = 0; i < picked->nodes.len; i++) {
        uint32_t node = picked->nodes.items[i];
        uint32_t position =
            by_location
                ? code_tables_location(tables, SIDE_NEW, picked->tree->nodes.items[node].location)
                : code_tables_function(tables, picked->tree->functions.items[node]);
        json_position(w, position);
    }
    column_end(w);
}

static void write_matches(const struct picked *picked,
                          const struct tree_matches *matches,
                          struct json_writer *w)
{
    column_begin(w, "matched");
    for (size_t i = 0; i < picked->nodes.len; i++) {
        json_u64(w, matches->flags.items[picked->nodes.items[i]]);
    }
    column_end(w);
}

static void write_nodes(struct question *q,
                        struct picked *picked,
                        const struct tree_matches *matches,
                        struct code_tables *tables,
                        struct json_writer *w)
{
    const struct shown_tree *tree = picked->tree;
    table_begin(w, "nodes", picked->nodes.len);
    write_shape(picked, w);
    write_code_column(q, picked, tables, w);
    write_costs(q, picked, "self", &tree->self[SIDE_NEW], w);
    write_costs(q, picked, "total", &tree->total[SIDE_NEW], w);
    if (q->is_diff) {
        write_costs(q, picked, "old_self", &tree->self[SIDE_OLD], w);
        write_costs(q, picked, "old_total", &tree->total[SIDE_OLD], w);
    }
    if (matches != NULL) {
        write_matches(picked, matches, w);
    }
    table_end(w);
}

// *has_search: a search was asked for, and `out` holds what it found.
static MUST_USE enum err search(struct question *q,
                                const struct shown_tree *tree,
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
        return question_refuse(q, 0, PARAM_SEARCH, ERR_INVALID,
                               "search: one search at a time, please");
    }
    enum err problem = pattern_init(&pattern, text != NULL ? PATTERN_TEXT : PATTERN_REGEX,
                                    text != NULL ? text : regex, "search", &q->problem->info);
    if (problem == ERR_OK) {
        problem = shown_tree_search(tree, &pattern, out, &q->problem->info);
    }
    q->problem->parameter = problem != ERR_OK ? request_param_name(PARAM_SEARCH_REGEX) : NULL;
    return problem;
}

static void write_search(const struct tree_matches *matches, struct json_writer *w)
{
    json_key(w, "search");
    if (matches == NULL) {
        json_null(w);
        return;
    }
    json_begin_object(w);
    json_key_u64(w, "matched_nodes", matches->count);
    costs_object(w, "totals", ALL_COSTS, &matches->totals);
    json_end_object(w);
}

enum err api_tree(struct question *q, struct json_writer *w)
{
    CLEANUP(cached_tree_unrefp) struct cached_tree *cached = NULL;
    CLEANUP(tree_matches_release) struct tree_matches found = {0};
    CLEANUP(picked_release) struct picked picked = {0};
    CLEANUP(code_tables_release) struct code_tables tables = {.code = q->code};
    struct shown_tree_wish wish;
    bool has_search;
    bool is_complete;
    TRY(api_find_tree(q, &cached));
    picked.tree = &cached->tree;
    TRY(search(q, picked.tree, &found, &has_search));
    TRY(read_wish(q, picked.tree, &wish));
    TRY(shown_tree_pick(picked.tree, &wish, &picked.nodes, &is_complete));
    TRY(number_nodes(&picked));

    const struct tree_matches *matches = has_search ? &found : NULL;
    json_key_u64(w, "total_nodes", picked.tree->nodes.len);
    json_key_bool(w, "complete", is_complete);
    write_nodes(q, &picked, matches, &tables, w);
    write_search(matches, w);
    return code_tables_write(&tables, w);
}
