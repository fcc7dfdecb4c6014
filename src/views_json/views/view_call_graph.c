// SPDX-License-Identifier: MIT
// view_call_graph: all calls between functions, and the costs of each source line.
//
// Every node of the tree by location represents a call from its parent's function to its own. The
// nodes get keys (of calls, of locations, of source lines), and keyed_costs sums them up.
#include "base/compiler.h"
#include "base/minmax.h"
#include "base/order.h"
#include "profile/calls/call_tree.h"
#include "profile/tables/keyed_costs.h"
#include "views_json/views/views.h"

// A key made of two numbers.
struct pair {
    uint32_t first;
    uint32_t second;
};

DEFINE_VEC(pair_vec, struct pair);

// One table of the answer: its keys, the key of each node, and the costs.
struct keyed_table {
    struct pair_vec pairs; // by key
    struct map_u64 known;  // pair -> key
    struct u32_vec keys;   // by node
    struct keyed_costs costs;
    struct u32_vec order; // of keys with costs, highest first
};

static void keyed_table_release(struct keyed_table *table)
{
    pair_vec_release(&table->pairs);
    map_u64_release(&table->known);
    u32_vec_release(&table->keys);
    keyed_costs_release(&table->costs);
    u32_vec_release(&table->order);
}

static MUST_USE enum err
set_key(struct keyed_table *table, size_t node, uint32_t first, uint32_t second)
{
    uint32_t *key = &table->keys.items[node];
    TRY(map_u64_number(&table->known, map_u64_pair(first, second), table->pairs.len, key));
    return *key == table->pairs.len ? pair_vec_push(&table->pairs, (struct pair){first, second})
                                    : ERR_OK;
}

struct call_graph {
    struct call_tree tree;
    struct u32_vec functions;     // by node
    struct keyed_table edges;     // caller and callee; REC_NONE: the thread's entry
    struct keyed_table locations; // location and function
    struct keyed_table lines;     // file and line
    struct u32_vec line_location; // by key of lines: one location on the line
    struct u32_vec line_keys;     // by location
};

static void call_graph_release(struct call_graph *graph)
{
    call_tree_release(&graph->tree);
    u32_vec_release(&graph->functions);
    keyed_table_release(&graph->edges);
    keyed_table_release(&graph->locations);
    keyed_table_release(&graph->lines);
    u32_vec_release(&graph->line_location);
    u32_vec_release(&graph->line_keys);
}

static MUST_USE enum err
key_node(const struct profile *profile, struct call_graph *graph, uint32_t node)
{
    uint32_t location = graph->tree.nodes.items[node].location;
    uint32_t function = graph->functions.items[node];
    uint32_t caller = graph->functions.items[graph->tree.nodes.items[node].parent];
    const struct code_location *where = profile_location_get(profile, location);
    TRY(set_key(&graph->edges, node, caller, function));
    TRY(set_key(&graph->locations, node, location, function));
    graph->lines.keys.items[node] = REC_NONE;
    if (where->file == 0) {
        return ERR_OK;
    }
    TRY(set_key(&graph->lines, node, where->file, where->line));
    graph->line_keys.items[location] = graph->lines.keys.items[node];
    return graph->line_location.len < graph->lines.pairs.len
               ? u32_vec_push(&graph->line_location, location)
               : ERR_OK;
}

static int compare_keys(const void *left, const void *right, void *context)
{
    const struct costs *costs = context;
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return order_u64(costs_get(&costs[b], COST_PEAK_BYTES), costs_get(&costs[a], COST_PEAK_BYTES))
               ?: order_u64(a, b);
}

static void rank_functions(struct keyed_table *table)
{
    for (uint32_t key = 0; key < table->pairs.len; key++) {
        if (costs_any(&table->costs.inclusive.items[key])) {
            u32_vec_add(&table->order, key);
        }
    }
    u32_vec_sort_by(&table->order, compare_keys, table->costs.inclusive.items);
}

static MUST_USE enum err
build_graph(const struct view *view, enum call_tree_frames frames, struct call_graph *graph)
{
    TRY(call_tree_build_frames(view->selection, frames, &graph->tree));
    TRY(call_tree_functions(view->profile, &graph->tree, &graph->functions));
    struct keyed_table *tables[] = {&graph->edges, &graph->locations, &graph->lines};
    size_t count = graph->tree.nodes.len;
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        TRY(u32_vec_resize(&tables[i]->keys, count));
        tables[i]->keys.items[0] = REC_NONE;
    }
    TRY(u32_vec_resize(&graph->line_keys, view->profile->code.locations.len));
    for (size_t i = 0; i < graph->line_keys.len; i++) {
        graph->line_keys.items[i] = REC_NONE;
    }
    for (uint32_t node = 1; node < count; node++) {
        TRY(cancel_step(view->selection->cancel));
        TRY(key_node(view->profile, graph, node));
    }
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        struct keyed_table *table = tables[i];
        TRY(keyed_costs_build(&graph->tree, &table->keys, table->pairs.len, &table->costs));
        rank_functions(table);
    }
    return keyed_costs_take_sites(view->selection, &graph->line_keys, &graph->lines.costs);
}

struct edge_row {
    uint32_t caller; // id in the union, or REC_NONE
    uint32_t callee;
    const struct costs *inclusive;
};

DEFINE_VEC(edge_row_vec, struct edge_row);

static const struct column edge_columns[] = {
    COLUMN(CELL_FUNCTION, edge_row, caller),
    COLUMN(CELL_FUNCTION, edge_row, callee),
    COLUMN(CELL_COSTS_AT, edge_row, inclusive),
    COLUMN_ERRORS("inclusive_errors", CELL_ERRORS_AT, edge_row, inclusive),
};

static uint32_t union_id(const struct view *view, uint32_t function)
{
    return function != REC_NONE ? view->code->ids[SIDE_NEW].items[function] : REC_NONE;
}

static void write_edges(struct view *view, const struct keyed_table *edges, size_t limit)
{
    CLEANUP(edge_row_vec_release) struct edge_row_vec rows = {0};
    for (size_t i = 0; i < limited_u64(edges->order.len, limit); i++) {
        uint32_t key = edges->order.items[i];
        const struct edge_row row = {
            .caller = union_id(view, edges->pairs.items[key].first),
            .callee = union_id(view, edges->pairs.items[key].second),
            .inclusive = &edges->costs.inclusive.items[key],
        };
        edge_row_vec_add(&rows, row);
    }
    view_table(view, &TABLE("edges", edge_columns, rows.items, rows.len));
}

struct place_row {
    struct place place;
    const struct costs *self;
    const struct costs *inclusive;
};

DEFINE_VEC(place_row_vec, struct place_row);

static const struct column place_columns[] = {
    COLUMN(CELL_LOCATION, place_row, place),
    COLUMN(CELL_COSTS_AT, place_row, self),
    COLUMN(CELL_COSTS_AT, place_row, inclusive),
    COLUMN_ERRORS("self_errors", CELL_ERRORS_AT, place_row, self),
    COLUMN_ERRORS("inclusive_errors", CELL_ERRORS_AT, place_row, inclusive),
};

// `location_of` is by key. NULL: the first number of the key is the location.
static void write_places(struct view *view,
                         const char *name,
                         const struct keyed_table *places,
                         const uint32_t *location_of,
                         size_t limit)
{
    CLEANUP(place_row_vec_release) struct place_row_vec rows = {0};
    for (size_t i = 0; i < limited_u64(places->order.len, limit); i++) {
        uint32_t key = places->order.items[i];
        uint32_t location = location_of != NULL ? location_of[key] : places->pairs.items[key].first;
        const struct place_row row = {
            .place = {SIDE_NEW, location},
            .self = &places->costs.self.items[key],
            .inclusive = &places->costs.inclusive.items[key],
        };
        place_row_vec_add(&rows, row);
    }
    view_table(view, &TABLE(name, place_columns, rows.items, rows.len));
}

enum err view_call_graph(struct view *view, enum call_tree_frames frames, size_t limit)
{
    CLEANUP(call_graph_release) struct call_graph graph = {0};
    TRY(build_graph(view, frames, &graph));
    json_key_u64(view->w, "total_edges", graph.edges.order.len);
    json_key_u64(view->w, "total_locations", graph.locations.order.len);
    json_key_u64(view->w, "total_lines", graph.lines.order.len);
    write_edges(view, &graph.edges, limit);
    write_places(view, "locations", &graph.locations, NULL, limit);
    write_places(view, "lines", &graph.lines, graph.line_location.items, limit);
    return ERR_OK;
}
