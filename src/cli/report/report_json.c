// SPDX-License-Identifier: MIT
// report_json: the report for programs. Every field is described in docs/format/report-json.md, in
// the same order; a change to one is a change to the other, and the version is REPORT_JSON_VERSION.
#include <unistd.h>

#include "base/compiler.h"
#include "cli/options/filter_options.h"
#include "cli/report/report.h"
#include "cli/report/report_views.h"
#include "host/os/progress.h"
#include "host/text/json_writer.h"
#include "profile/accuracy/coverage.h"
#include "profile/tables/adhoc.h"
#include "profile/tables/profile_json.h"
#include "profile/tables/unseen.h"
#include "profile/time/marks.h"

enum {
    REPORT_JSON_VERSION = 1,
    STACKS_PER_PROGRESS = 1024
};

static void write_counters(struct json_writer *w,
                           const struct profile *profile,
                           const char *key,
                           enum rec_counter_kind kind)
{
    json_key(w, key);
    json_begin_object(w);
    for (size_t i = 0; i < profile->recording.counter_count; i++) {
        const struct rec_counter *counter = &profile->recording.counters[i];
        if (counter->kind == kind) {
            json_key_u64(w, profile_string(profile, counter->name), counter->value);
        }
    }
    json_end_object(w);
}

void report_json_location(struct json_writer *w, const struct profile *profile, uint32_t location)
{
    bool is_known = location != REC_NONE;
    json_key_string(w, "function", is_known ? profile_location_function(profile, location) : "");
    json_key_string(w, "file", is_known ? profile_location_file(profile, location) : "");
    json_key_u64(w, "line", is_known ? profile_location_get(profile, location)->line : 0);
    json_key_string(w, "module", is_known ? profile_location_module(profile, location) : "");
}

static void write_stack(struct json_writer *w, const struct report *report, uint32_t stack)
{
    const struct call_tree *tree = &report->sites.tree;
    json_begin_object(w);
    report_write_costs(w, "costs", call_sites_costs(&report->sites, stack));
    json_key(w, "frames");
    json_begin_array(w);
    for (uint32_t at = stack; at != 0; at = tree->nodes.items[at].parent) {
        const struct call_tree_node *node = &tree->nodes.items[at];
        json_begin_object(w);
        report_json_location(w, report->profile, node->location);
        json_key_u64(w, "offset", report->profile->recording.frames[node->frame].offset);
        json_key_bool(w, "inlined", node->is_inlined);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
}

// Every stack is long, and there may be millions. Not where the report itself is on the screen.
static void show_progress(const struct report *report, uint64_t stacks)
{
    struct progress *progress = report->options->progress;
    if (progress != NULL && stacks % STACKS_PER_PROGRESS == 0 && isatty(STDOUT_FILENO) == 0) {
        progress_update(progress, "writing the report, call stacks", stacks, 0);
    }
}

static void write_growth(struct json_writer *w, const struct growth_entry *growth)
{
    json_key_string(w, "growth", growth != NULL ? growth_class_name(growth->class) : NULL);
    json_key_string(w, "growth_confidence",
                    growth != NULL ? growth_confidence_name(growth->confidence) : NULL);
    json_key(w, "slope_bytes_per_s");
    if (growth != NULL && growth->class == GROWTH_GROWING) {
        json_double(w, growth->slope_bytes_per_s);
    } else {
        json_null(w);
    }
}

static MUST_USE enum err
write_site(struct json_writer *w, const struct report *report, uint32_t id, enum cost cost)
{
    const struct call_site *site = &report->sites.sites.items[id];
    CLEANUP(u32_vec_release) struct u32_vec stacks = {0};
    TRY(call_sites_ranked_stacks(&report->sites, site, cost, &stacks));
    json_begin_object(w);
    report_json_location(w, report->profile, site->location);
    json_key_bool(w, "inlined", site->is_inlined);
    report_write_costs(w, "costs", &site->costs);
    write_growth(w, report_growth(report, id));
    const uint32_t limit = report->options->stack_limit;
    const size_t shown = limit == 0 || limit > stacks.len ? stacks.len : limit;
    json_key_u64(w, "stack_count", stacks.len);
    json_key_u64(w, "stacks_left_out", stacks.len - shown);
    json_key(w, "stacks");
    json_begin_array(w);
    for (size_t i = 0; i < shown; i++) {
        show_progress(report, i);
        write_stack(w, report, stacks.items[i]);
    }
    json_end_array(w);
    json_end_object(w);
    return ERR_OK;
}

static MUST_USE enum err
write_section(struct json_writer *w, const struct report *report, enum cost cost)
{
    CLEANUP(u32_vec_release) struct u32_vec ids = {0};
    TRY(call_sites_ranked(&report->sites, cost, &ids));
    json_key(w, cost_get_info(cost)->option);
    json_begin_array(w);
    uint32_t limit = report->options->site_limit;
    for (size_t i = 0; i < ids.len && (limit == 0 || i < limit); i++) {
        TRY(write_site(w, report, ids.items[i], cost));
    }
    json_end_array(w);
    return ERR_OK;
}

static MUST_USE enum err write_top(struct json_writer *w, const struct report *report)
{
    const enum cost *sections;
    size_t count = report_sections(report, &sections);
    json_key(w, "top");
    json_begin_object(w);
    for (size_t i = 0; i < count; i++) {
        TRY(write_section(w, report, sections[i]));
    }
    json_end_object(w);
    return ERR_OK;
}

static void
write_process(struct json_writer *w, const struct report *report, const struct group *group)
{
    const struct profile *profile = report->profile;
    const struct rec_process *process = &profile->recording.processes[group->id];
    json_begin_object(w);
    json_key_u64(w, "pid", process->pid);
    json_key_u64(w, "parent_pid", process->parent_pid);
    json_key_u64(w, "epoch", process->epoch);
    json_key_string(w, "executable", profile_string(profile, process->executable));
    json_key_string(w, "command_line", profile_string(profile, process->command_line));
    json_key_string(w, "allocator", profile_string(profile, process->allocator));
    json_key_bool(w, "forked", (process->flags & REC_PROCESS_FORKED) != 0);
    json_key_bool(w, "execed", (process->flags & REC_PROCESS_EXECED) != 0);
    json_key_bool(w, "own_allocator", (process->flags & REC_PROCESS_OWN_ALLOCATOR) != 0);
    json_key_u64(w, "start_ms", process->start_ms);
    json_key_u64(w, "end_ms", process->end_ms);
    json_key(w, "wait_status");
    profile_json_wait_status(w, process->exit_status);
    json_key_u64(w, "process_peak_bytes", process->peak_bytes);
    json_key_u64(w, "peak_rss_bytes", process->peak_rss_bytes);
    report_write_costs(w, "costs", &group->costs);
    json_end_object(w);
}

static void
write_thread(struct json_writer *w, const struct report *report, const struct group *group)
{
    const struct profile *profile = report->profile;
    const struct rec_thread *thread = &profile->recording.threads[group->id];
    json_begin_object(w);
    json_key_u64(w, "thread_id", thread->thread_id);
    json_key_u64(w, "pid", profile->recording.processes[thread->process].pid);
    json_key_string(w, "name", profile_string(profile, thread->name));
    json_key_u64(w, "merged_count", thread->merged_count);
    json_key_u64(w, "start_ms", thread->start_ms);
    json_key_u64(w, "end_ms", thread->end_ms);
    report_write_costs(w, "costs", &group->costs);
    json_end_object(w);
}

static MUST_USE enum err write_groups(struct json_writer *w,
                                      const struct report *report,
                                      const char *key,
                                      enum group_by by,
                                      void (*write)(struct json_writer *w,
                                                    const struct report *report,
                                                    const struct group *group))
{
    CLEANUP(group_vec_release) struct group_vec groups = {0};
    TRY(groups_build(&report->selection, by, &groups));
    json_key(w, key);
    json_begin_array(w);
    for (size_t i = 0; i < groups.len; i++) {
        write(w, report, &groups.items[i]);
    }
    json_end_array(w);
    return ERR_OK;
}

static void write_module(struct json_writer *w,
                         const struct report *report,
                         const struct group *group,
                         const struct module_coverage *coverage)
{
    static const struct rec_module none = {0};
    const struct profile *profile = report->profile;
    const struct rec_module *module =
        group->id == REC_NONE ? &none : &profile->recording.modules[group->id];
    json_begin_object(w);
    json_key_string(w, "path", profile_string(profile, module->path));
    json_key_string(w, "build_id", profile_string(profile, module->build_id));
    json_key_u64(w, "frames", coverage->frames);
    json_key_u64(w, "frames_with_function", coverage->with_function);
    json_key_u64(w, "frames_with_line", coverage->with_line);
    bool is_file = group->id != REC_NONE;
    json_key_string(w, "symbol_source", is_file ? profile_module_source(profile, group->id) : "");
    json_key_string(w, "symbol_advice", is_file ? profile_module_advice(profile, group->id) : "");
    report_write_costs(w, "costs", &group->costs);
    json_end_object(w);
}

static MUST_USE enum err write_modules(struct json_writer *w, const struct report *report)
{
    CLEANUP(module_coverage_vec_release) struct module_coverage_vec coverage = {0};
    TRY(coverage_build(report->profile, &coverage));
    CLEANUP(group_vec_release) struct group_vec groups = {0};
    TRY(groups_build(&report->selection, GROUP_BY_MODULE, &groups));
    json_key(w, "modules");
    json_begin_array(w);
    for (size_t i = 0; i < groups.len; i++) {
        const struct group *group = &groups.items[i];
        size_t place = group->id == REC_NONE ? coverage.len - 1 : group->id;
        write_module(w, report, group, &coverage.items[place]);
    }
    json_end_array(w);
    return ERR_OK;
}

static MUST_USE enum err
write_part(struct json_writer *w, const struct profile *profile, const struct ledger_part *part)
{
    CLEANUP(u32_vec_release) struct u32_vec locations = {0};
    CLEANUP(u32_vec_release) struct u32_vec inlined = {0};
    TRY(ledger_stack(profile, part->node, &locations, &inlined));
    json_begin_object(w);
    json_key_string(w, "kind", ledger_kind(part->kind)->key);
    json_key_u64(w, "pid", profile->recording.processes[part->process].pid);
    json_key_string(w, "path", profile_string(profile, part->path));
    json_key_u64(w, "areas", part->areas);
    json_key_u64(w, "rss_bytes", part->rss_bytes);
    json_key_u64(w, "virtual_bytes", part->virtual_bytes);
    json_key_u64(w, "swap_bytes", part->swap_bytes);
    json_key_bool(w, "estimate", part->is_estimate);
    json_key(w, "frames");
    json_begin_array(w);
    for (size_t i = 0; i < locations.len; i++) {
        json_begin_object(w);
        report_json_location(w, profile, locations.items[i]);
        json_key_bool(w, "inlined", inlined.items[i] != 0);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
    return ERR_OK;
}

static MUST_USE enum err write_split(struct json_writer *w,
                                     const struct report *report,
                                     const char *key,
                                     const struct ledger_split *split)
{
    json_key(w, key);
    if (split == NULL) {
        json_null(w);
        return ERR_OK;
    }
    json_begin_object(w);
    json_key_u64(w, "time_ms", split->time_ms);
    json_key_u64(w, "age_ms", ledger_split_age_ms(report->profile, split));
    json_key_bool(w, "at_exit", (split->flags & REC_LOOK_AT_EXIT) != 0);
    json_key_bool(w, "is_of_peak", ledger_is_of_peak(&report->ledger, split));
    json_key_u64(w, "processes", split->processes);
    json_key_u64(w, "rss_bytes", split->rss_bytes);
    json_key_u64(w, "swap_bytes", split->swap_bytes);
    json_key_u64(w, "requested_bytes", split->requested_bytes);
    json_key(w, "bytes");
    json_begin_object(w);
    for (uint32_t kind = 1; kind <= REC_PART_KINDS; kind++) {
        json_key_u64(w, ledger_kind(kind)->key, split->bytes[kind]);
    }
    json_end_object(w);
    json_key(w, "estimated");
    json_begin_array(w);
    for (uint32_t kind = 1; kind <= REC_PART_KINDS; kind++) {
        if (ledger_is_estimate(split, kind)) {
            json_string(w, ledger_kind(kind)->key);
        }
    }
    json_end_array(w);
    json_key(w, "parts");
    json_begin_array(w);
    for (size_t i = 0; i < split->parts.len; i++) {
        TRY(write_part(w, report->profile, &split->parts.items[i]));
    }
    json_end_array(w);
    json_end_object(w);
    return ERR_OK;
}

static MUST_USE enum err write_memory(struct json_writer *w, const struct report *report)
{
    json_key(w, "resident");
    json_begin_object(w);
    json_key_u64(w, "peak_rss_bytes", report->ledger.peak_rss_bytes);
    TRY(write_split(w, report, "peak", ledger_peak(&report->ledger)));
    TRY(write_split(w, report, "end", ledger_last(&report->ledger)));
    json_end_object(w);
    return ERR_OK;
}

enum err report_write_json(const struct report *report, enum json_style style, FILE *out)
{
    const struct profile *profile = report->profile;
    struct json_writer w;
    json_to_stream(&w, out, style);
    json_begin_object(&w);
    json_key_u64(&w, "version", REPORT_JSON_VERSION);
    json_key_string(&w, "damage", profile->damage[0] != '\0' ? profile->damage : NULL);
    profile_json_run(&w, profile);
    filter_write_json(&w, &report->selection, &report->options->filter);
    profile_json_totals(&w, "totals", &report->summary);
    write_counters(&w, profile, "lost", REC_COUNTER_LOSS);
    write_counters(&w, profile, "notes", REC_COUNTER_NOTE);
    TRY(unseen_write_json(&w, profile));
    marks_write_json(&w, profile);
    TRY(adhoc_write_json(&w, profile));
    TRY(report_json_blocks(&w, report));
    TRY(write_top(&w, report));
    TRY(write_memory(&w, report));
    TRY(write_groups(&w, report, "processes", GROUP_BY_PROCESS, write_process));
    TRY(write_groups(&w, report, "threads", GROUP_BY_THREAD, write_thread));
    TRY(write_modules(&w, report));
    TRY(report_views_write_json(report, &w));
    json_end_object(&w);
    return json_finish(&w);
}
