// SPDX-License-Identifier: MIT
// export_callgrind: Callgrind's profile data format, as kcachegrind and callgrind_annotate read it.
//
//   ob=(1) /opt/bin/server
//   fl=(2) /src/app.c
//   fn=(3) load
//   10 4096 2                    self cost of load at line 10, by event
//   ...
//   cfn=(4) push                 cost of its call of push there, with cob= and cfi=
//   calls=2 0
//   10 4096 2
//
// Self costs are summed by location. An edge (location of the call, called function) has the cost
// of the stacks through it; a stack counts once, even if the edge recurs in it. Each name is
// written once, with a number for later references. `calls` is the number of allocations through
// the edge, because a recording has no number of function calls. Of a sampled recording `desc:` has
// the errors of the totals, which callgrind_annotate prints. Context: H.
#include <inttypes.h>

#include "base/compiler.h"
#include "formats/codec/clean_text.h"
#include "formats/export/estimates_note.h"
#include "formats/export/exporter.h"
#include "host/containers/map_u64.h"
#include "profile/tables/keyed_costs.h"

static const struct estimated_total events[] = {
    {"PeakBytes", COST_PEAK_BYTES},
    {"PeakBlocks", COST_PEAK_BLOCKS},
    {"AllocatedBytes", COST_ALLOCATED_BYTES},
    {"Allocations", COST_ALLOCATIONS},
    {"Temporary", COST_TEMPORARY},
    {"LeakedBytes", COST_LEAKED_BYTES},
    {"LeakedBlocks", COST_LEAKED_ALLOCATIONS},
};

// Of a process that still runs.
static const struct estimated_total live_events[] = {
    {"PeakBytes", COST_PEAK_BYTES},
    {"PeakBlocks", COST_PEAK_BLOCKS},
    {"AllocatedBytes", COST_ALLOCATED_BYTES},
    {"Allocations", COST_ALLOCATIONS},
    {"Temporary", COST_TEMPORARY},
    {"LiveBytes", COST_LEAKED_BYTES},
    {"LiveBlocks", COST_LEAKED_ALLOCATIONS},
};

static const struct clean_rule rule = {0}; // a name ends with its line and may contain any
                                           // character

// Each kind of name has its own numbers.
enum name_kind {
    NAME_OBJECT,
    NAME_FILE,
    NAME_FUNCTION,
    NAME_KIND_COUNT
};

// The keywords for the places of self costs, and for called functions.
static const char *const self_words[NAME_KIND_COUNT] = {"ob", "fl", "fn"};
static const char *const called_words[NAME_KIND_COUNT] = {"cob", "cfi", "cfn"};

struct callgrind {
    const struct export_view *view;           // borrowed
    const struct estimated_total *events;     // borrowed
    FILE *out;                                // borrowed
    struct map_u64 edge_ids;                  // owned; (location, function) -> edge
    struct u32_vec edges;                     // owned; by edge: the first node below it
    struct map_u64 is_named[NAME_KIND_COUNT]; // owned; numbers of names already written
    struct strbuf text;                       // owned; scratch
};

static void callgrind_release(struct callgrind *c)
{
    map_u64_release(&c->edge_ids);
    u32_vec_release(&c->edges);
    for (int kind = 0; kind < NAME_KIND_COUNT; kind++) {
        map_u64_release(&c->is_named[kind]);
    }
    strbuf_release(&c->text);
}

// Return the number of the function at a location.
static uint64_t function_number(const struct profile *profile, uint32_t location)
{
    if (location == REC_NONE) {
        return 0;
    }
    return 1 + profile_location_get(profile, location)->function;
}

// Write "fn=(3) load", or "fn=(3)" after the first time.
static MUST_USE enum err
write_name(struct callgrind *c, const char *word, enum name_kind kind, uint64_t number)
{
    (void)fprintf(c->out, "%s=(%" PRIu64 ")", word, number);
    if (map_u64_find(&c->is_named[kind], number) == NULL) {
        TRY(map_u64_put(&c->is_named[kind], number, 1));
        (void)fprintf(c->out, " %s", strbuf_text(&c->text));
    }
    (void)fputc('\n', c->out);
    strbuf_clear(&c->text);
    return ERR_OK;
}

static void append_path(struct callgrind *c, const char *path)
{
    clean_append(&c->text, path[0] != '\0' ? path : "???", rule);
}

// Write the names of the function at a location, of its object and of its file.
static MUST_USE enum err
write_place(struct callgrind *c, const char *const words[NAME_KIND_COUNT], uint32_t location)
{
    const struct profile *profile = c->view->profile;
    uint32_t module = REC_NONE;
    uint32_t file = 0;
    if (location != REC_NONE) {
        const struct code_location *place = profile_location_get(profile, location);
        module = profile->code.functions.items[place->function].module;
        file = place->file;
    }
    append_path(c, location != REC_NONE ? profile_location_module(profile, location) : "");
    TRY(write_name(c, words[NAME_OBJECT], NAME_OBJECT, module != REC_NONE ? module + 2ULL : 1));
    append_path(c, location != REC_NONE ? profile_location_file(profile, location) : "");
    TRY(write_name(c, words[NAME_FILE], NAME_FILE, file + 1ULL));
    clean_append_function(&c->text, profile, location, rule);
    return write_name(c, words[NAME_FUNCTION], NAME_FUNCTION,
                      function_number(profile, location) + 1);
}

static bool has_event(const struct callgrind *c, size_t event)
{
    return selection_knows(&c->view->selection, events[event].cost);
}

// Write a number for each event, and end the line.
static void write_numbers(struct callgrind *c, const struct costs *costs)
{
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        if (has_event(c, i)) {
            (void)fprintf(c->out, " %" PRIu64, costs_get(costs, events[i].cost));
        }
    }
    (void)fputc('\n', c->out);
}

static void write_costs(struct callgrind *c, uint32_t location, const struct costs *costs)
{
    uint32_t line =
        location != REC_NONE ? profile_location_get(c->view->profile, location)->line : 0;
    (void)fprintf(c->out, "%" PRIu32, line);
    write_numbers(c, costs);
}

static MUST_USE enum err write_selves(struct callgrind *c)
{
    const struct call_tree *tree = &c->view->tree;
    CLEANUP(u32_vec_release) struct u32_vec keys = {0};
    CLEANUP(keyed_costs_release) struct keyed_costs costs = {0};
    size_t location_count = c->view->profile->code.locations.len;
    TRY(u32_vec_resize(&keys, tree->nodes.len));
    for (size_t i = 0; i < keys.len; i++) {
        keys.items[i] = tree->nodes.items[i].location;
    }
    TRY(keyed_costs_build(tree, &keys, location_count, &costs));
    for (uint32_t location = 0; location < location_count; location++) {
        if (costs_any(&costs.self.items[location])) {
            TRY(write_place(c, self_words, location));
            write_costs(c, location, &costs.self.items[location]);
        }
    }
    if (costs_any(tree_costs_self(&tree->costs, 0))) {
        TRY(write_place(c, self_words, REC_NONE));
        write_costs(c, REC_NONE, tree_costs_self(&tree->costs, 0));
    }
    return ERR_OK;
}

// Find the edge to each node, REC_NONE for the root and for thread entries.
static MUST_USE enum err find_edges(struct callgrind *c, struct u32_vec *keys)
{
    const struct call_tree_node *nodes = c->view->tree.nodes.items;
    TRY(u32_vec_resize(keys, c->view->tree.nodes.len));
    for (uint32_t i = 0; i < keys->len; i++) {
        keys->items[i] = REC_NONE;
        if (i == 0 || nodes[i].parent == 0) {
            continue;
        }
        uint64_t called = function_number(c->view->profile, nodes[i].location);
        uint64_t key = (uint64_t)nodes[nodes[i].parent].location << 32 | called;
        TRY(map_u64_number(&c->edge_ids, key, c->edges.len, &keys->items[i]));
        if (keys->items[i] == c->edges.len) {
            TRY(u32_vec_push(&c->edges, i));
        }
    }
    return ERR_OK;
}

static MUST_USE enum err write_calls(struct callgrind *c)
{
    const struct call_tree *tree = &c->view->tree;
    CLEANUP(u32_vec_release) struct u32_vec keys = {0};
    CLEANUP(keyed_costs_release) struct keyed_costs costs = {0};
    TRY(find_edges(c, &keys));
    TRY(keyed_costs_build(tree, &keys, c->edges.len, &costs));
    for (size_t i = 0; i < c->edges.len; i++) {
        const struct call_tree_node *called = &tree->nodes.items[c->edges.items[i]];
        const struct costs *passed = &costs.inclusive.items[i];
        uint32_t caller = tree->nodes.items[called->parent].location;
        TRY(write_place(c, self_words, caller));
        TRY(write_place(c, called_words, called->location));
        (void)fprintf(c->out, "calls=%" PRIu64 " 0\n", costs_get(passed, COST_ALLOCATIONS));
        write_costs(c, caller, passed);
    }
    return ERR_OK;
}

static void write_totals(struct callgrind *c, const char *word)
{
    (void)fprintf(c->out, "%s:", word);
    write_numbers(c, tree_costs_total(&c->view->tree.costs, 0));
}

// Write the names and descriptions of the known costs.
static void write_events(struct callgrind *c)
{
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        if (has_event(c, i)) {
            (void)fprintf(c->out, "event: %s : %s\n", c->events[i].name,
                          profile_cost_info(c->view->profile, events[i].cost).phrase);
        }
    }
    (void)fputs("events:", c->out);
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        if (has_event(c, i)) {
            (void)fprintf(c->out, " %s", c->events[i].name);
        }
    }
    (void)fputc('\n', c->out);
}

static enum err write_callgrind(const struct export_view *view, FILE *out)
{
    const struct profile *profile = view->profile;
    const struct rec_meta *meta = &profile->recording.meta;
    CLEANUP(callgrind_release)
    struct callgrind c = {
        .view = view, .events = profile_has_ended(profile) ? events : live_events, .out = out};
    clean_append(&c.text, profile_string(profile, meta->command_line), rule);
    estimates_note_append(view, tree_costs_total(&view->tree.costs, 0), c.events, ARRAY_LEN(events),
                          "\ndesc: ", "", &c.text);
    (void)fprintf(out,
                  "# callgrind format\nversion: 1\ncreator: cairn\npid: %" PRIu32
                  "\ncmd: %s\npart: 1\npositions: line\n",
                  meta->pid, strbuf_text(&c.text));
    strbuf_clear(&c.text);
    write_events(&c);
    write_totals(&c, "summary");
    (void)fputc('\n', out);
    TRY(write_selves(&c));
    TRY(write_calls(&c));
    write_totals(&c, "totals");
    return ERR_OK;
}

const struct exporter exporter_callgrind = {
    .name = "callgrind",
    .file_suffix = ".callgrind",
    .help = "for kcachegrind and callgrind_annotate: costs by line, and along calls",
    .uses = EXPORT_FOLDS,
    .write = write_callgrind,
};
