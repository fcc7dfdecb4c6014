// SPDX-License-Identifier: MIT
// view_functions: functions by inclusive or self cost, and one function with its callers, callees
// and lines; of one recording or two.
#include "base/compiler.h"
#include "profile/tables/function_costs.h"
#include "views_json/views/views.h"

struct function_row {
    uint32_t function;  // id in the union, or REC_NONE
    struct place place; // of a line
    const struct costs *self;
    const struct costs *inclusive;
    const struct costs *old_self;
    const struct costs *old_inclusive;
};

DEFINE_VEC(function_row_vec, struct function_row);

static const struct column function_columns[] = {
    COLUMN(CELL_FUNCTION, function_row, function),
    COLUMNS_COMPARED(function_row, self, inclusive),
};

static const struct column neighbour_columns[] = {
    COLUMN(CELL_FUNCTION, function_row, function),
    COLUMN(CELL_COSTS_AT, function_row, inclusive),
    COLUMN_WHEN(WHEN_COMPARED, CELL_COSTS_AT, function_row, old_inclusive),
    COLUMN_ERRORS("inclusive_errors", CELL_ERRORS_AT, function_row, inclusive),
    COLUMN_OLD_ERRORS("old_inclusive_errors", CELL_ERRORS_AT, function_row, old_inclusive),
};

static const struct column line_columns[] = {
    COLUMN(CELL_LOCATION, function_row, place),
    COLUMN(CELL_COSTS_AT, function_row, self),
    COLUMN(CELL_COSTS_AT, function_row, inclusive),
    COLUMN_ERRORS("self_errors", CELL_ERRORS_AT, function_row, self),
    COLUMN_ERRORS("inclusive_errors", CELL_ERRORS_AT, function_row, inclusive),
};

static struct function_row
row_of(const struct view *view, const struct function_costs *costs, uint32_t key)
{
    const struct keyed_costs *new = &costs->sides[SIDE_NEW];
    const struct keyed_costs *old = &costs->sides[SIDE_OLD];
    return (struct function_row){
        .function = key < view->code->origins.len ? key : REC_NONE,
        .place = {SIDE_NEW, key},
        .self = keyed_costs_at(&new->self, key),
        .inclusive = keyed_costs_at(&new->inclusive, key),
        .old_self = keyed_costs_at(&old->self, key),
        .old_inclusive = keyed_costs_at(&old->inclusive, key),
    };
}

static MUST_USE enum err list_rows(const struct view *view,
                                   const struct function_costs *costs,
                                   bool by_self,
                                   size_t limit,
                                   size_t *total,
                                   struct function_row_vec *out)
{
    CLEANUP(ranked_key_vec_release) struct ranked_key_vec keys = {0};
    TRY(function_costs_rank(costs, by_self, view->sort, view->score, &keys));
    *total = keys.len;
    for (size_t i = 0; i < keys.len && (limit == 0 || i < limit); i++) {
        TRY(function_row_vec_push(out, row_of(view, costs, keys.items[i].key)));
    }
    return ERR_OK;
}

enum err view_functions(struct view *view, const struct functions_options *options)
{
    CLEANUP(function_trees_release) struct function_trees trees = {0};
    CLEANUP(function_costs_release) struct function_costs costs = {0};
    CLEANUP(function_row_vec_release) struct function_row_vec rows = {0};
    size_t total;
    TRY(function_trees_build(view->code, view->selection, view->old_selection, options->frames,
                             &trees));
    TRY(function_costs_build(&trees, BY_FUNCTION, 0, &costs));
    TRY(list_rows(view, &costs, options->by_self, options->limit, &total, &rows));
    json_key_u64(view->w, "total_count", total);
    view_table(view, &TABLE("functions", function_columns, rows.items, rows.len));
    return ERR_OK;
}

// Write the callers, callees or lines of a function as a table.
static MUST_USE enum err write_neighbours(struct view *view,
                                          const struct function_trees *trees,
                                          enum function_key by,
                                          uint32_t function,
                                          struct table table)
{
    CLEANUP(function_costs_release) struct function_costs costs = {0};
    CLEANUP(function_row_vec_release) struct function_row_vec rows = {0};
    size_t total;
    TRY(function_costs_build(trees, by, function, &costs));
    TRY(list_rows(view, &costs, false, 0, &total, &rows));
    table.rows = rows.items;
    table.count = rows.len;
    view_table(view, &table);
    return ERR_OK;
}

enum err
view_function_detail(struct view *view, const struct function_trees *trees, uint32_t function)
{
    static const struct function_row *const none = NULL;
    CLEANUP(function_costs_release) struct function_costs all = {0};
    TRY(function_costs_build(trees, BY_FUNCTION, function, &all));
    const struct function_row row = row_of(view, &all, function);
    view_function(view, "function", function);
    const uint32_t unknown = view_unknown(view, SIDE_NEW);
    view_costs(view, "self", view->costs, unknown, row.self);
    view_costs(view, "inclusive", view->costs, unknown, row.inclusive);
    view_errors(view, SIDE_NEW, "self_errors", view->costs, row.self);
    view_errors(view, SIDE_NEW, "inclusive_errors", view->costs, row.inclusive);
    if (view->old_selection != NULL) {
        const uint32_t old_unknown = view_unknown(view, SIDE_OLD);
        view_costs(view, "old_self", view->costs, old_unknown, row.old_self);
        view_costs(view, "old_inclusive", view->costs, old_unknown, row.old_inclusive);
        view_errors(view, SIDE_OLD, "old_self_errors", view->costs, row.old_self);
        view_errors(view, SIDE_OLD, "old_inclusive_errors", view->costs, row.old_inclusive);
    }
    TRY(write_neighbours(view, trees, BY_CALLER, function,
                         TABLE("callers", neighbour_columns, none, 0)));
    TRY(write_neighbours(view, trees, BY_CALLEE, function,
                         TABLE("callees", neighbour_columns, none, 0)));
    return write_neighbours(view, trees, BY_LOCATION, function,
                            TABLE("locations", line_columns, none, 0));
}
