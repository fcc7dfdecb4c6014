// SPDX-License-Identifier: MIT
// api_overview: /api/v1/meta, /health and /summary: what was recorded, how far it can be trusted,
// and where most of the memory went.
#include "base/compiler.h"
#include "profile/accuracy/coverage.h"
#include "profile/accuracy/sampling.h"
#include "profile/calls/call_sites.h"
#include "profile/tables/profile_json.h"
#include "profile/time/marks.h"
#include "server/api/api.h"
#include "server/columns/columns.h"

enum {
    TOP_BY_DEFAULT = 5
};

static void write_damage(const struct profile *profile, struct json_writer *w)
{
    json_key_string(w, "damage", profile->damage[0] != '\0' ? profile->damage : NULL);
}

static void write_file(const struct opened *opened, struct json_writer *w)
{
    json_key(w, "file");
    json_begin_object(w);
    json_key_string(w, "name", path_file_name(opened->path));
    json_key_string(w, "path", opened->path);
    json_key_u64(w, "bytes", opened->bytes);
    json_end_object(w);
}

static void write_baseline(const struct question *q, struct json_writer *w)
{
    const struct opened *baseline = q->snapshot->sides[SIDE_OLD];
    json_key(w, "baseline");
    if (baseline == NULL) {
        json_null(w);
        return;
    }
    json_begin_object(w);
    write_file(baseline, w);
    profile_json_run(w, baseline->profile);
    json_key_u64(w, "runtime_ms", baseline->whole.runtime_ms);
    write_damage(baseline->profile, w);
    json_end_object(w);
}

static void write_capabilities(const struct question *q, struct json_writer *w)
{
    json_key(w, "capabilities");
    json_begin_object(w);
    for (int i = 0; i < CAPABILITY_COUNT; i++) {
        enum capability capability = (enum capability)i;
        json_key_bool(w, capability_name(capability), question_can(q, capability));
    }
    json_end_object(w);
}

static void write_cost_table(struct json_writer *w)
{
    table_begin(w, "costs", COST_COUNT);
    column_begin(w, "key");
    for (int cost = 0; cost < COST_COUNT; cost++) {
        json_string(w, cost_get_info((enum cost)cost)->key);
    }
    column_end(w);
    column_begin(w, "unit");
    for (int cost = 0; cost < COST_COUNT; cost++) {
        bool is_bytes = cost_get_info((enum cost)cost)->unit == COST_UNIT_BYTES;
        json_string(w, is_bytes ? "bytes" : "calls");
    }
    column_end(w);
    column_begin(w, "phrase");
    for (int cost = 0; cost < COST_COUNT; cost++) {
        json_string(w, cost_get_info((enum cost)cost)->phrase);
    }
    column_end(w);
    table_end(w);
}

enum err api_meta(struct question *q, struct json_writer *w)
{
    const struct recording *recording = &q->profile->recording;
    json_key_string(w, "tool_version", q->settings->tool_version);
    write_file(q->opened, w);
    json_key_string(w, "state", profile_state_name(q->profile));
    write_damage(q->profile, w);
    profile_json_run(w, q->profile);
    json_key_u64(w, "runtime_ms", q->opened->whole.runtime_ms);
    json_key_u64(w, "slice_ms", recording->slice_ms);
    json_key_u64(w, "slice_count", recording->slice_count);
    marks_write_json(w, q->profile);
    json_key_u64(w, "processes", q->opened->whole.processes);
    json_key_u64(w, "threads", q->opened->whole.threads);
    write_baseline(q, w);
    write_capabilities(q, w);
    write_cost_table(w);
    json_key_string(w, "editor", q->settings->editor);
    return ERR_OK;
}

static void write_counters(const struct profile *profile, struct json_writer *w)
{
    const struct recording *recording = &profile->recording;
    table_begin(w, "counters", recording->counter_count);
    column_begin(w, "name");
    for (size_t i = 0; i < recording->counter_count; i++) {
        json_string(w, profile_string(profile, recording->counters[i].name));
    }
    column_end(w);
    column_begin(w, "text");
    for (size_t i = 0; i < recording->counter_count; i++) {
        json_string(w, profile_string(profile, recording->counters[i].text));
    }
    column_end(w);
    column_begin(w, "kind");
    for (size_t i = 0; i < recording->counter_count; i++) {
        json_string(w, recording->counters[i].kind == REC_COUNTER_LOSS ? "loss" : "note");
    }
    column_end(w);
    column_begin(w, "value");
    for (size_t i = 0; i < recording->counter_count; i++) {
        json_u64(w, recording->counters[i].value);
    }
    column_end(w);
    table_end(w);
}

// A column of a table with an entry for each module.
struct module_text_column {
    const char *key;
    const char *(*get)(const struct profile *profile, uint32_t module);
};

static const char *module_path(const struct profile *profile, uint32_t module)
{
    return profile_string(profile, profile->recording.modules[module].path);
}

static const char *module_name(const struct profile *profile, uint32_t module)
{
    return path_file_name(module_path(profile, module));
}

static const char *module_build_id(const struct profile *profile, uint32_t module)
{
    return profile_string(profile, profile->recording.modules[module].build_id);
}

static void
write_coverage(const struct module_coverage_vec *coverage, size_t count, struct json_writer *w)
{
    column_begin(w, "frames");
    for (size_t i = 0; i < count; i++) {
        json_u64(w, coverage->items[i].frames);
    }
    column_end(w);
    column_begin(w, "frames_with_function");
    for (size_t i = 0; i < count; i++) {
        json_u64(w, coverage->items[i].with_function);
    }
    column_end(w);
    column_begin(w, "frames_with_line");
    for (size_t i = 0; i < count; i++) {
        json_u64(w, coverage->items[i].with_line);
    }
    column_end(w);
}

enum err api_health(struct question *q, struct json_writer *w)
{
    static const struct module_text_column columns[] = {
        {"path", module_path},
        {"name", module_name},
        {"build_id", module_build_id},
        {"symbol_source", profile_module_source},
        {"symbol_advice", profile_module_advice},
    };
    const struct recording *recording = &q->profile->recording;
    CLEANUP(module_coverage_vec_release) struct module_coverage_vec coverage = {0};
    TRY(coverage_build(q->profile, &coverage));
    write_damage(q->profile, w);
    sampling_json(w, recording);
    write_counters(q->profile, w);
    table_begin(w, "modules", recording->module_count);
    for (size_t c = 0; c < ARRAY_LEN(columns); c++) {
        column_begin(w, columns[c].key);
        for (uint32_t i = 0; i < recording->module_count; i++) {
            json_string(w, columns[c].get(q->profile, i));
        }
        column_end(w);
    }
    column_begin(w, "is_executable");
    for (size_t i = 0; i < recording->module_count; i++) {
        json_bool(w, recording->modules[i].is_executable != 0);
    }
    column_end(w);
    write_coverage(&coverage, recording->module_count, w);
    table_end(w);
    return ERR_OK;
}

static MUST_USE enum err write_health_figures(const struct question *q, struct json_writer *w)
{
    const struct recording *recording = &q->profile->recording;
    CLEANUP(module_coverage_vec_release) struct module_coverage_vec coverage = {0};
    struct module_coverage all = {0};
    uint64_t lost_events = 0;
    TRY(coverage_build(q->profile, &coverage));
    for (size_t i = 0; i < coverage.len; i++) {
        all.frames += coverage.items[i].frames;
        all.with_function += coverage.items[i].with_function;
        all.with_line += coverage.items[i].with_line;
    }
    for (size_t i = 0; i < recording->counter_count; i++) {
        bool is_loss = recording->counters[i].kind == REC_COUNTER_LOSS;
        lost_events += is_loss ? recording->counters[i].value : 0;
    }
    json_key(w, "health");
    json_begin_object(w);
    json_key_u64(w, "lost_events", lost_events);
    json_key_u64(w, "frames", all.frames);
    json_key_u64(w, "frames_with_function", all.with_function);
    json_key_u64(w, "frames_with_line", all.with_line);
    json_end_object(w);
    return ERR_OK;
}

static MUST_USE enum err write_top_list(struct question *q,
                                        const struct call_sites *sites,
                                        enum cost cost,
                                        struct code_tables *tables,
                                        struct json_writer *w)
{
    CLEANUP(u32_vec_release) struct u32_vec ids = {0};
    TRY(call_sites_ranked(sites, cost, &ids));
    uint64_t limit = request_number(q->request, PARAM_LIMIT, TOP_BY_DEFAULT);
    size_t count = limit > 0 && limit < ids.len ? limit : ids.len;
    table_begin(w, cost_get_info(cost)->key, count);
    column_begin(w, "location");
    for (size_t i = 0; i < count; i++) {
        uint32_t location = sites->sites.items[ids.items[i]].location;
        json_position(w, code_tables_location(tables, SIDE_NEW, location));
    }
    column_end(w);
    column_begin(w, "inlined");
    for (size_t i = 0; i < count; i++) {
        json_bool(w, sites->sites.items[ids.items[i]].is_inlined);
    }
    column_end(w);
    column_begin(w, "stack_count");
    for (size_t i = 0; i < count; i++) {
        json_u64(w, sites->sites.items[ids.items[i]].stack_count);
    }
    column_end(w);
    column_begin(w, "cost");
    for (size_t i = 0; i < count; i++) {
        json_u64(w, costs_get(&sites->sites.items[ids.items[i]].costs, cost));
    }
    column_end(w);
    table_end(w);
    return ERR_OK;
}

static MUST_USE enum err
write_top(struct question *q, struct code_tables *tables, struct json_writer *w)
{
    static const enum cost costs[] = {COST_PEAK_BYTES, COST_LEAKED_BYTES, COST_ALLOCATIONS,
                                      COST_TEMPORARY, COST_ALLOCATED_BYTES};
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    TRY(call_sites_build(&q->selection, &sites));
    json_key(w, "top");
    json_begin_object(w);
    for (size_t i = 0; i < ARRAY_LEN(costs); i++) {
        TRY(write_top_list(q, &sites, costs[i], tables, w));
    }
    json_end_object(w);
    return ERR_OK;
}

enum err api_summary(struct question *q, struct json_writer *w)
{
    CLEANUP(code_tables_release) struct code_tables tables = {.code = q->code};
    struct summary summary;
    TRY(summary_build(&q->selection, &summary));
    profile_json_totals(w, "totals", &summary);
    if (q->is_diff) {
        TRY(summary_build(&q->old_selection, &summary));
        profile_json_totals(w, "baseline_totals", &summary);
    } else {
        json_key(w, "baseline_totals");
        json_null(w);
    }
    TRY(write_top(q, &tables, w));
    TRY(write_health_figures(q, w));
    return code_tables_write(&tables, w);
}
