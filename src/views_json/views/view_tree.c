// SPDX-License-Identifier: MIT
// view_tree: a call tree: bottom-up, top-down or flame graph.
#include "base/compiler.h"
#include "profile/accuracy/sampling.h"
#include "views_json/views/views.h"

struct node_row {
    uint32_t id;
    uint32_t parent; // index in the table; REC_NONE for the first
    uint32_t depth;
    uint32_t child_count;
    uint32_t hidden;
    uint64_t path;
    uint64_t unfolded_by;
    bool inlined;
    bool pruned;
    uint32_t function; // id in the union, REC_NONE for the root
    struct place place;
    uint32_t matched;
    const struct costs *self;
    const struct costs *total;
    const struct costs *old_self;
    const struct costs *old_total;
    struct sampled_sizes sizes; // of `self`
};

DEFINE_VEC(node_row_vec, struct node_row);

static const struct column node_columns[] = {
    COLUMN(CELL_U32, node_row, id),
    COLUMN(CELL_POSITION, node_row, parent),
    COLUMN(CELL_U32, node_row, depth),
    COLUMN(CELL_BOOL, node_row, inlined),
    COLUMN(CELL_BOOL, node_row, pruned),
    COLUMN(CELL_U32, node_row, child_count),
    COLUMN_WHEN(WHEN_FOLDED, CELL_U32, node_row, hidden),
    COLUMN_WHEN(WHEN_FOLDED, CELL_U64, node_row, path),
    COLUMN_WHEN(WHEN_FOLDED, CELL_U64, node_row, unfolded_by),
    COLUMN_WHEN(WHEN_BY_FUNCTION, CELL_FUNCTION, node_row, function),
    COLUMN_WHEN(WHEN_BY_LOCATION, CELL_LOCATION, node_row, place),
    COLUMNS_COMPARED(node_row, self, total),
    COLUMN_AS_WHEN("inverse_lengths",
                   WHEN_SAMPLED | WHEN_FOR_PAGE,
                   CELL_DOUBLE,
                   node_row,
                   sizes.inverse_lengths),
    COLUMN_AS_WHEN(
        "shortest_length", WHEN_SAMPLED | WHEN_FOR_PAGE, CELL_U64, node_row, sizes.shortest_length),
    COLUMN_WHEN(WHEN_SEARCHED, CELL_U32, node_row, matched),
};

static uint32_t count_children(const struct tree_view *tree, uint32_t node)
{
    uint32_t count = 0;
    for (uint32_t i = tree->nodes.items[node].first_child; i != REC_NONE;
         i = tree->nodes.items[i].next_sibling) {
        count++;
    }
    return count;
}

static struct node_row
row_of(const struct view *view, const struct tree_options *options, uint32_t id)
{
    const struct tree_view *tree = options->tree;
    const struct call_tree_node *node = &tree->nodes.items[id];
    struct node_row row = {
        .id = id,
        .depth = node->depth,
        .child_count = count_children(tree, id),
        .hidden = node->hidden,
        .path = node->hidden > 0 ? node->path : 0,
        .unfolded_by = node->unfolded_by,
        .inlined = node->is_inlined,
        .pruned = tree->pruned.items[id] != 0,
        .function = tree->functions.items[id],
        .place = {SIDE_NEW, node->location},
        .matched = options->matches != NULL ? options->matches->flags.items[id] : 0,
        .self = tree_costs_self(&tree->costs[SIDE_NEW], id),
        .total = tree_costs_total(&tree->costs[SIDE_NEW], id),
        .sizes = tree_costs_self(&tree->costs[SIDE_NEW], id)->sizes,
    };
    if (view->old_selection != NULL) {
        row.old_self = tree_costs_self(&tree->costs[SIDE_OLD], id);
        row.old_total = tree_costs_total(&tree->costs[SIDE_OLD], id);
    }
    return row;
}

static MUST_USE enum err list_rows(const struct view *view,
                                   const struct tree_options *options,
                                   const struct u32_vec *nodes,
                                   struct node_row_vec *out)
{
    CLEANUP(u32_vec_release) struct u32_vec positions = {0}; // by node: index in the table
    TRY(u32_vec_resize(&positions, options->tree->nodes.len));
    for (size_t i = 0; i < nodes->len; i++) {
        positions.items[nodes->items[i]] = (uint32_t)i;
    }
    for (size_t i = 0; i < nodes->len; i++) {
        struct node_row row = row_of(view, options, nodes->items[i]);
        uint32_t parent = options->tree->nodes.items[row.id].parent;
        row.parent = i == 0 ? REC_NONE : positions.items[parent];
        TRY(node_row_vec_push(out, row));
    }
    return ERR_OK;
}

static void write_search(struct view *view, const struct tree_matches *matches)
{
    if (matches == NULL) {
        json_key_null(view->w, "search");
        return;
    }
    json_key_object(view->w, "search");
    json_key_u64(view->w, "matched_nodes", matches->count);
    view_costs(view, "totals", ALL_COSTS, view_unknown(view, SIDE_NEW), &matches->totals);
    view_errors(view, SIDE_NEW, "totals_errors", ALL_COSTS, &matches->totals);
    json_end_object(view->w);
}

// Write what a page needs for the errors of sums that it makes of nodes.
static void write_variance(struct view *view, const struct tree_options *options)
{
    const struct sampling sampling = sampling_of(&view->profile->recording);
    if (options->wish.by_any_cost && sampling.bytes != 0) {
        json_key_double(view->w, "variance", sampling_variance(&sampling));
    }
}

enum err view_tree(struct view *view, const struct tree_options *options)
{
    CLEANUP(u32_vec_release) struct u32_vec nodes = {0};
    CLEANUP(node_row_vec_release) struct node_row_vec rows = {0};
    bool is_complete;
    bool is_top_down = options->spec.direction == CALL_TREE_TOP_DOWN;
    TRY(tree_view_pick(options->tree, &options->wish, &nodes, &is_complete));
    TRY(list_rows(view, options, &nodes, &rows));
    struct table table = TABLE("nodes", node_columns, rows.items, rows.len);
    table.has = options->spec.key == CALL_TREE_BY_FUNCTION ? WHEN_BY_FUNCTION : WHEN_BY_LOCATION;
    // For pages, where a function was called, too: of one of its frames. Frames of two recordings
    // have no common place.
    const bool has_places =
        view->layout == VIEW_COLUMNS && view->old_selection == NULL && !options->wish.by_any_cost;
    table.has |= has_places ? WHEN_BY_LOCATION : 0;
    table.has |= options->spec.frames == CALL_TREE_SITES ? WHEN_FOLDED : 0;
    table.has |= options->matches != NULL ? WHEN_SEARCHED : 0;
    table.has |= options->wish.by_any_cost ? WHEN_FOR_PAGE : 0;
    json_key_string(view->w, "direction", is_top_down ? "top_down" : "bottom_up");
    json_key_string(view->w, "sort", cost_get_info(view->sort)->key);
    json_key_u64(view->w, "total_nodes", options->tree->nodes.len);
    json_key_bool(view->w, "complete", is_complete);
    view_table(view, &table);
    write_variance(view, options);
    write_search(view, options->matches);
    return ERR_OK;
}
