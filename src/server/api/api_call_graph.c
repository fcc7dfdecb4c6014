// SPDX-License-Identifier: MIT
// api_call_graph: /api/v1/call_graph: who called whom, and what each source line cost, of all
// functions at once.
//
// Every node of the tree by location stands for a call: from its parent's function to its own. The
// nodes get keys (of calls, of locations, of source lines), and keyed_costs adds up.
#include "base/compiler.h"
#include "profile/calls/call_tree.h"
#include "profile/tables/keyed_costs.h"
#include "server/api/api.h"
#include "server/columns/columns.h"

// A key that stands for two numbers.
struct pair {
    uint32_t first;
    uint32_t second;
};

DEFINE_VEC(pair_vec, struct pair);

// One table of the answer: what its keys stand for, the key of each node, and the costs.
struct keyed_table {
    struct pair_vec pairs; // by key
    struct map_u64 known;  // pair -> key
    struct u32_vec keys;   // by node
    struct keyed_costs costs;
    struct u32_vec order; // of keys: those that have any costs, highest first
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
    uint64_t pair = (uint64_t)first << 32 | second;
    const uint32_t *known = map_u64_find(&table->known, pair);
    uint32_t key = known != NULL ? *known : (uint32_t)table->pairs.len;
    if (known == NULL) {
        TRY(map_u64_put(&table->known, pair, key));
        TRY(pair_vec_push(&table->pairs, (struct pair){first, second}));
    }
    table->keys.items[node] = key;
    return ERR_OK;
}

struct call_graph {
    struct call_tree tree;
    struct u32_vec functions;     // by node
    struct keyed_table edges;     // caller and callee; REC_NONE: the thread's entry
    struct keyed_table locations; // location and function
    struct keyed_table lines;     // file and line
    struct u32_vec line_location; // by key of lines: a location that lies there
};

static void call_graph_release(struct call_graph *graph)
{
    call_tree_release(&graph->tree);
    u32_vec_release(&graph->functions);
    keyed_table_release(&graph->edges);
    keyed_table_release(&graph->locations);
    keyed_table_release(&graph->lines);
    u32_vec_release(&graph->line_location);
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
    return graph->line_location.len < graph->lines.pairs.len
               ? u32_vec_push(&graph->line_location, location)
               : ERR_OK;
}

static int compare_keys(const void *left, const void *right, void *context)
{
    const struct costs *costs = context;
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    uint64_t of_a = costs_get(&costs[a], COST_PEAK_BYTES);
    uint64_t of_b = costs_get(&costs[b], COST_PEAK_BYTES);
    if (of_a != of_b) {
        return of_a > of_b ? -1 : 1;
    }
    return a < b ? -1 : a > b;
}

static MUST_USE enum err add_up(const struct call_tree *tree, struct keyed_table *table)
{
    static const struct costs nothing = {0};
    TRY(keyed_costs_build(tree, &table->keys, table->pairs.len, &table->costs));
    for (uint32_t key = 0; key < table->pairs.len; key++) {
        if (memcmp(&table->costs.inclusive.items[key], &nothing, sizeof(nothing)) != 0) {
            TRY(u32_vec_push(&table->order, key));
        }
    }
    if (table->order.len > 1) {
        qsort_r(table->order.items, table->order.len, sizeof(table->order.items[0]), compare_keys,
                table->costs.inclusive.items);
    }
    return ERR_OK;
}

static MUST_USE enum err build(const struct question *q, struct call_graph *graph)
{
    TRY(call_tree_build(&q->selection, CALL_TREE_TOP_DOWN, CALL_TREE_BY_LOCATION, &graph->tree));
    TRY(call_tree_add_up(&graph->tree));
    TRY(node_functions(q->profile, &graph->tree, &graph->functions));
    struct keyed_table *tables[] = {&graph->edges, &graph->locations, &graph->lines};
    size_t count = graph->tree.nodes.len;
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        TRY(u32_vec_resize(&tables[i]->keys, count));
        tables[i]->keys.items[0] = REC_NONE;
    }
    cancel_stage(q->cancel, count);
    for (uint32_t node = 1; node < count; node++) {
        TRY(cancel_step(q->cancel));
        TRY(key_node(q->profile, graph, node));
    }
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        TRY(add_up(&graph->tree, tables[i]));
    }
    return ERR_OK;
}

static MUST_USE enum err write_costs(const struct question *q,
                                     const char *name,
                                     const struct costs_vec *costs,
                                     const struct u32_vec *order,
                                     struct json_writer *w)
{
    CLEANUP(costs_vec_release) struct costs_vec ordered = {0};
    TRY(costs_vec_resize(&ordered, order->len));
    for (size_t i = 0; i < order->len; i++) {
        ordered.items[i] = costs->items[order->items[i]];
    }
    costs_table(w, name, q->costs, ordered.items, ordered.len);
    return ERR_OK;
}

static void write_function(const struct question *q,
                           uint32_t function,
                           struct code_tables *tables,
                           struct json_writer *w)
{
    uint32_t id = function != REC_NONE ? q->code->ids[SIDE_NEW].items[function] : REC_NONE;
    json_position(w, code_tables_function(tables, id));
}

static MUST_USE enum err write_edges(const struct question *q,
                                     const struct keyed_table *edges,
                                     struct code_tables *tables,
                                     struct json_writer *w)
{
    const struct u32_vec *order = &edges->order;
    table_begin(w, "edges", order->len);
    column_begin(w, "caller");
    for (size_t i = 0; i < order->len; i++) {
        write_function(q, edges->pairs.items[order->items[i]].first, tables, w);
    }
    column_end(w);
    column_begin(w, "callee");
    for (size_t i = 0; i < order->len; i++) {
        write_function(q, edges->pairs.items[order->items[i]].second, tables, w);
    }
    column_end(w);
    TRY(write_costs(q, "inclusive", &edges->costs.inclusive, order, w));
    table_end(w);
    return ERR_OK;
}

// `location_of` by key.
static MUST_USE enum err write_places(const struct question *q,
                                      const char *name,
                                      const struct keyed_table *places,
                                      const uint32_t *location_of,
                                      struct code_tables *tables,
                                      struct json_writer *w)
{
    const struct u32_vec *order = &places->order;
    table_begin(w, name, order->len);
    column_begin(w, "location");
    for (size_t i = 0; i < order->len; i++) {
        uint32_t key = order->items[i];
        uint32_t location = location_of != NULL ? location_of[key] : places->pairs.items[key].first;
        json_position(w, code_tables_location(tables, SIDE_NEW, location));
    }
    column_end(w);
    TRY(write_costs(q, "self", &places->costs.self, order, w));
    TRY(write_costs(q, "inclusive", &places->costs.inclusive, order, w));
    table_end(w);
    return ERR_OK;
}

static void cut(struct keyed_table *table, uint64_t limit)
{
    table->order.len = limit > 0 && limit < table->order.len ? limit : table->order.len;
}

enum err api_call_graph(struct question *q, struct json_writer *w)
{
    CLEANUP(call_graph_release) struct call_graph graph = {0};
    CLEANUP(code_tables_release) struct code_tables tables = {.code = q->code};
    uint64_t limit = request_number(q->request, PARAM_LIMIT, 0);
    TRY(build(q, &graph));
    json_key_u64(w, "total_edges", graph.edges.order.len);
    json_key_u64(w, "total_locations", graph.locations.order.len);
    json_key_u64(w, "total_lines", graph.lines.order.len);
    cut(&graph.edges, limit);
    cut(&graph.locations, limit);
    cut(&graph.lines, limit);
    TRY(write_edges(q, &graph.edges, &tables, w));
    TRY(write_places(q, "locations", &graph.locations, NULL, &tables, w));
    TRY(write_places(q, "lines", &graph.lines, graph.line_location.items, &tables, w));
    return code_tables_write(&tables, w);
}
