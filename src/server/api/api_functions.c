// SPDX-License-Identifier: MIT
// api_functions: /api/v1/functions and /function: the caller/callee views, of one recording or two.
//
// profile/tables/function_costs.h computes; its keys become columns here.
#include <string.h>

#include "base/compiler.h"
#include "profile/tables/function_costs.h"
#include "server/api/api.h"
#include "server/columns/columns.h"

enum {
    FUNCTIONS_BY_DEFAULT = 1000
};

static MUST_USE enum err build_trees(const struct question *q, struct function_trees *out)
{
    return function_trees_build(q->code, &q->selection, q->is_diff ? &q->old_selection : NULL, out);
}

static MUST_USE enum err rank_keys(const struct question *q,
                                   const struct function_costs *costs,
                                   bool by_self,
                                   struct ranked_key_vec *out)
{
    enum side_score score =
        (enum side_score)request_number(q->request, PARAM_SORT_BY, SCORE_LARGER);
    return function_costs_rank(costs, by_self, q->sort, score, out);
}

static MUST_USE enum err write_costs(const struct question *q,
                                     const char *key,
                                     const struct costs_vec *costs,
                                     const struct ranked_key_vec *keys,
                                     struct json_writer *w)
{
    CLEANUP(costs_vec_release) struct costs_vec ordered = {0};
    TRY(costs_vec_resize(&ordered, keys->len));
    for (size_t i = 0; i < keys->len; i++) {
        ordered.items[i] = costs->items[keys->items[i].key];
    }
    costs_table(w, key, q->costs, ordered.items, ordered.len);
    return ERR_OK;
}

// The costs tables of both sides.
static MUST_USE enum err write_both(const struct question *q,
                                    const struct function_costs *costs,
                                    bool with_self,
                                    const struct ranked_key_vec *keys,
                                    struct json_writer *w)
{
    if (with_self) {
        TRY(write_costs(q, "self", &costs->sides[SIDE_NEW].self, keys, w));
    }
    TRY(write_costs(q, "inclusive", &costs->sides[SIDE_NEW].inclusive, keys, w));
    if (q->is_diff && with_self) {
        TRY(write_costs(q, "old_self", &costs->sides[SIDE_OLD].self, keys, w));
    }
    if (q->is_diff) {
        TRY(write_costs(q, "old_inclusive", &costs->sides[SIDE_OLD].inclusive, keys, w));
    }
    return ERR_OK;
}

static void write_function_column(const struct question *q,
                                  const struct ranked_key_vec *keys,
                                  struct code_tables *tables,
                                  struct json_writer *w)
{
    column_begin(w, "function");
    for (size_t i = 0; i < keys->len; i++) {
        uint32_t key = keys->items[i].key;
        bool is_function = key < q->code->origins.len;
        json_position(w, is_function ? code_tables_function(tables, key) : REC_NONE);
    }
    column_end(w);
}

enum err api_functions(struct question *q, struct json_writer *w)
{
    CLEANUP(code_tables_release) struct code_tables tables = {.code = q->code};
    CLEANUP(function_trees_release) struct function_trees trees = {0};
    CLEANUP(function_costs_release) struct function_costs costs = {0};
    CLEANUP(ranked_key_vec_release) struct ranked_key_vec keys = {0};
    TRY(build_trees(q, &trees));
    TRY(function_costs_build(&trees, BY_FUNCTION, 0, &costs));
    TRY(rank_keys(q, &costs, request_number(q->request, PARAM_BY_SELF, 0) == 1, &keys));
    json_key_u64(w, "total_count", keys.len);
    uint64_t limit = request_number(q->request, PARAM_LIMIT, FUNCTIONS_BY_DEFAULT);
    keys.len = limit > 0 && limit < keys.len ? limit : keys.len;
    table_begin(w, "functions", keys.len);
    write_function_column(q, &keys, &tables, w);
    TRY(write_both(q, &costs, true, &keys, w));
    table_end(w);
    return code_tables_write(&tables, w);
}

// The function that the parameters name.
static MUST_USE enum err find_function(struct question *q, uint32_t *out)
{
    const char *name = request_text(q->request, PARAM_NAME);
    const char *module = request_text(q->request, PARAM_IN_MODULE);
    size_t count = q->code->origins.len;
    if (request_has(q->request, PARAM_ID) == (name != NULL)) {
        return question_refuse(q, 0, PARAM_ID, ERR_INVALID, "either id or name must be given");
    }
    uint64_t found = request_number(q->request, PARAM_ID, count);
    for (uint32_t i = 0; name != NULL && found == count && i < count; i++) {
        if (strcmp(code_union_name(q->code, i), name) == 0 &&
            (module == NULL || strcmp(code_union_module(q->code, i), module) == 0)) {
            found = i;
        }
    }
    if (found >= count) {
        return question_refuse(q, 0, name != NULL ? PARAM_NAME : PARAM_ID, ERR_NOT_FOUND,
                               "the recording has no such function");
    }
    // Two that are called the same have one id in a diff.
    struct code_origin origin = q->code->origins.items[found];
    *out = q->code->ids[origin.side].items[origin.function];
    return ERR_OK;
}

// One table of neighbours. `own` (by side, may be NULL) is added under the last key: what the
// function allocated itself.
static MUST_USE enum err write_neighbours(struct question *q,
                                          const char *name,
                                          struct function_costs *costs,
                                          struct code_tables *tables,
                                          struct json_writer *w)
{
    CLEANUP(ranked_key_vec_release) struct ranked_key_vec keys = {0};
    TRY(rank_keys(q, costs, false, &keys));
    table_begin(w, name, keys.len);
    write_function_column(q, &keys, tables, w);
    TRY(write_both(q, costs, false, &keys, w));
    table_end(w);
    return ERR_OK;
}

static MUST_USE enum err write_lines(struct question *q,
                                     const struct function_trees *trees,
                                     uint32_t function,
                                     struct code_tables *tables,
                                     struct json_writer *w)
{
    CLEANUP(function_costs_release) struct function_costs costs = {0};
    CLEANUP(ranked_key_vec_release) struct ranked_key_vec keys = {0};
    TRY(function_costs_build(trees, BY_LOCATION, function, &costs));
    TRY(rank_keys(q, &costs, false, &keys));
    table_begin(w, "locations", keys.len);
    column_begin(w, "location");
    for (size_t i = 0; i < keys.len; i++) {
        json_position(w, code_tables_location(tables, SIDE_NEW, keys.items[i].key));
    }
    column_end(w);
    TRY(write_costs(q, "self", &costs.sides[SIDE_NEW].self, &keys, w));
    TRY(write_costs(q, "inclusive", &costs.sides[SIDE_NEW].inclusive, &keys, w));
    table_end(w);
    return ERR_OK;
}

static void write_function(const struct question *q,
                           const struct function_costs *costs,
                           uint32_t function,
                           struct code_tables *tables,
                           struct json_writer *w)
{
    json_key(w, "function");
    json_position(w, code_tables_function(tables, function));
    costs_object(w, "self", q->costs, &costs->sides[SIDE_NEW].self.items[function]);
    costs_object(w, "inclusive", q->costs, &costs->sides[SIDE_NEW].inclusive.items[function]);
    if (q->is_diff) {
        costs_object(w, "old_self", q->costs, &costs->sides[SIDE_OLD].self.items[function]);
        costs_object(w, "old_inclusive", q->costs,
                     &costs->sides[SIDE_OLD].inclusive.items[function]);
    }
}

enum err api_function(struct question *q, struct json_writer *w)
{
    CLEANUP(code_tables_release) struct code_tables tables = {.code = q->code};
    CLEANUP(function_trees_release) struct function_trees trees = {0};
    CLEANUP(function_costs_release) struct function_costs all = {0};
    CLEANUP(function_costs_release) struct function_costs callers = {0};
    CLEANUP(function_costs_release) struct function_costs callees = {0};
    uint32_t function = 0;
    TRY(find_function(q, &function));
    TRY(build_trees(q, &trees));
    TRY(function_costs_build(&trees, BY_FUNCTION, function, &all));
    TRY(function_costs_build(&trees, BY_CALLER, function, &callers));
    TRY(function_costs_build(&trees, BY_CALLEE, function, &callees));
    write_function(q, &all, function, &tables, w);
    TRY(write_neighbours(q, "callers", &callers, &tables, w));
    TRY(write_neighbours(q, "callees", &callees, &tables, w));
    TRY(write_lines(q, &trees, function, &tables, w));
    return code_tables_write(&tables, w);
}
