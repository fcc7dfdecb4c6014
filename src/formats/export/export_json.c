// SPDX-License-Identifier: MIT
// export_json: the whole profile as JSON, for programs. docs/user/export.md describes its fields.
//
// Tables refer to each other by position. Nodes are a tree of stacks, parents first; they are
// columns, since there are many. Rows are what each stack did on each thread: the sums of their
// costs are the totals. Context: H.
#include "base/compiler.h"
#include "formats/export/export_formats.h"
#include "host/text/json_writer.h"
#include "profile/tables/adhoc.h"
#include "profile/tables/profile_json.h"
#include "profile/tables/summary.h"
#include "profile/time/cut_timeline.h"

enum {
    EXPORT_JSON_VERSION = 1
};

static void key_index(struct json_writer *w, const char *key, uint32_t index)
{
    json_key(w, key);
    if (index == REC_NONE) {
        json_null(w);
    } else {
        json_u64(w, index);
    }
}

static void write_processes(struct json_writer *w, const struct profile *profile)
{
    json_key(w, "processes");
    json_begin_array(w);
    for (size_t i = 0; i < profile->recording.process_count; i++) {
        const struct rec_process *process = &profile->recording.processes[i];
        json_begin_object(w);
        json_key_u64(w, "pid", process->pid);
        json_key_u64(w, "parent_pid", process->parent_pid);
        json_key_u64(w, "epoch", process->epoch);
        json_key_string(w, "executable", profile_string(profile, process->executable));
        json_key_string(w, "command_line", profile_string(profile, process->command_line));
        json_key_u64(w, "start_ms", process->start_ms);
        json_key_u64(w, "end_ms", process->end_ms);
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_threads(struct json_writer *w, const struct profile *profile)
{
    json_key(w, "threads");
    json_begin_array(w);
    for (size_t i = 0; i < profile->recording.thread_count; i++) {
        const struct rec_thread *thread = &profile->recording.threads[i];
        json_begin_object(w);
        json_key_u64(w, "process", thread->process);
        json_key_u64(w, "thread_id", thread->thread_id);
        json_key_string(w, "name", profile_string(profile, thread->name));
        json_key_u64(w, "merged_count", thread->merged_count);
        json_key_u64(w, "start_ms", thread->start_ms);
        json_key_u64(w, "end_ms", thread->end_ms);
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_modules(struct json_writer *w, const struct profile *profile)
{
    json_key(w, "modules");
    json_begin_array(w);
    for (size_t i = 0; i < profile->recording.module_count; i++) {
        const struct rec_module *module = &profile->recording.modules[i];
        json_begin_object(w);
        json_key_string(w, "path", profile_string(profile, module->path));
        json_key_string(w, "build_id", profile_string(profile, module->build_id));
        json_key_bool(w, "executable", module->is_executable != 0);
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_code(struct json_writer *w, const struct code_index *code)
{
    json_key(w, "functions");
    json_begin_array(w);
    for (size_t i = 0; i < code->functions.len; i++) {
        const struct code_function *function = &code->functions.items[i];
        json_begin_object(w);
        json_key_string(w, "name", string_table_get(&code->names, function->name));
        key_index(w, "module", function->module);
        json_end_object(w);
    }
    json_end_array(w);
    json_key(w, "locations");
    json_begin_array(w);
    for (size_t i = 0; i < code->locations.len; i++) {
        const struct code_location *location = &code->locations.items[i];
        json_begin_object(w);
        json_key_u64(w, "function", location->function);
        json_key_string(w, "file", string_table_get(&code->names, location->file));
        json_key_u64(w, "line", location->line);
        json_key_u64(w, "offset", location->offset);
        json_end_object(w);
    }
    json_end_array(w);
}

static void write_nodes(struct json_writer *w, const struct call_tree *tree)
{
    json_key(w, "nodes");
    json_begin_object(w);
    json_key(w, "parent");
    json_begin_array(w);
    json_null(w);
    for (size_t i = 1; i < tree->nodes.len; i++) {
        json_u64(w, tree->nodes.items[i].parent);
    }
    json_end_array(w);
    json_key(w, "location");
    json_begin_array(w);
    json_null(w);
    for (size_t i = 1; i < tree->nodes.len; i++) {
        json_u64(w, tree->nodes.items[i].location);
    }
    json_end_array(w);
    json_key(w, "inlined");
    json_begin_array(w);
    for (size_t i = 0; i < tree->nodes.len; i++) {
        json_u64(w, tree->nodes.items[i].is_inlined);
    }
    json_end_array(w);
    json_end_object(w);
}

static void write_rows(struct json_writer *w, const struct export_view *view)
{
    json_key(w, "costs");
    json_begin_array(w);
    for (int cost = 0; cost < COST_COUNT; cost++) {
        if (selection_knows(&view->selection, (enum cost)cost)) {
            json_string(w, cost_get_info((enum cost)cost)->key);
        }
    }
    json_end_array(w);
    json_key(w, "rows");
    json_begin_array(w);
    for (size_t i = 0; i < view->selection.rows.len; i++) {
        uint32_t row = view->selection.rows.items[i];
        struct costs costs = selection_costs(&view->selection, i);
        json_begin_object(w);
        json_key_u64(w, "thread", view->profile->recording.rows[row].thread);
        json_key_u64(w, "node", view->tree.row_nodes.items[i]);
        json_key(w, "costs");
        json_begin_array(w);
        for (int cost = 0; cost < COST_COUNT; cost++) {
            if (selection_knows(&view->selection, (enum cost)cost)) {
                json_u64(w, costs.values[cost]);
            }
        }
        json_end_array(w);
        json_end_object(w);
    }
    json_end_array(w);
}

// A cost of a slice under its name, null if it is not known.
static void u64_or_null(struct json_writer *w, bool is_known, uint64_t value)
{
    if (is_known) {
        json_u64(w, value);
    } else {
        json_null(w);
    }
}

static void
key_cost(struct json_writer *w, const struct selection *selection, enum cost cost, uint64_t value)
{
    bool is_known = profile_knows(selection->profile, cost) && cut_timeline_is_known(selection);
    json_key(w, cost_get_info(cost)->key);
    u64_or_null(w, is_known, value);
}

static MUST_USE enum err write_timeline(struct json_writer *w, const struct selection *selection)
{
    CLEANUP(cut_timeline_release) struct cut_timeline timeline = {0};
    TRY(cut_timeline_build(selection, &timeline));
    json_key_u64(w, "slice_ms", timeline.slice_ms);
    json_key(w, "slices");
    json_begin_array(w);
    for (size_t i = 0; i < timeline.points.len; i++) {
        const struct timeline_point *point = &timeline.points.items[i];
        json_begin_object(w);
        key_cost(w, selection, COST_ALLOCATIONS, point->allocations);
        key_cost(w, selection, COST_ALLOCATED_BYTES, point->allocated_bytes);
        key_cost(w, selection, COST_FREES, point->frees);
        key_cost(w, selection, COST_FREED_BYTES, point->freed_bytes);
        key_cost(w, selection, COST_TEMPORARY, point->temporary);
        json_key(w, "live_bytes");
        u64_or_null(w, cut_timeline_is_known(selection), point->live_bytes);
        json_end_object(w);
    }
    json_end_array(w);
    return ERR_OK;
}

// What the program reported; `stack` is of positions in `locations`, innermost first.
static MUST_USE enum err write_adhoc(struct json_writer *w, const struct profile *profile)
{
    CLEANUP(adhoc_release) struct adhoc_list list = {0};
    TRY(adhoc_collect(profile, ADHOC_BY_PROCESS, &list));
    json_key(w, "adhoc");
    json_begin_array(w);
    for (size_t i = 0; i < list.events.len; i++) {
        const struct adhoc_event *event = &list.events.items[i];
        json_begin_object(w);
        json_key_string(w, "name", event->name);
        json_key_u64(w, "process", event->process);
        json_key_u64(w, "events", event->events);
        json_key_u64(w, "weight", event->weight);
        json_key(w, "stack");
        json_begin_array(w);
        for (size_t at = 1; at < event->count; at++) {
            json_u64(w, list.locations.items[event->first + at]);
        }
        json_end_array(w);
        json_end_object(w);
    }
    json_end_array(w);
    return ERR_OK;
}

static enum err write_json(const struct export_view *view, FILE *out)
{
    struct summary summary;
    TRY(summary_build(&view->selection, &summary));
    struct json_writer w;
    json_to_stream(&w, out, JSON_COMPACT);
    json_begin_object(&w);
    json_key_string(&w, "format", "cairn-profile");
    json_key_u64(&w, "version", EXPORT_JSON_VERSION);
    profile_json_run(&w, view->profile);
    profile_json_totals(&w, "totals", &summary);
    write_processes(&w, view->profile);
    write_threads(&w, view->profile);
    write_modules(&w, view->profile);
    write_code(&w, &view->profile->code);
    write_nodes(&w, &view->tree);
    write_rows(&w, view);
    TRY(write_timeline(&w, &view->selection));
    TRY(write_adhoc(&w, view->profile));
    json_end_object(&w);
    return json_finish(&w);
}

const struct exporter exporter_json = {
    .name = "json",
    .file_suffix = ".json",
    .help = "the whole profile for programs",
    .write = write_json,
};
