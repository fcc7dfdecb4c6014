// SPDX-License-Identifier: MIT
// view_run: what was recorded, and how reliable it is: `run`, `totals`, `marks`, `counters`,
// `unrecorded`, `hooks`, `unseen`.
#include "base/compiler.h"
#include "profile/accuracy/merged_stacks.h"
#include "profile/accuracy/sampling.h"
#include "profile/tables/unseen.h"
#include "profile/time/marks.h"
#include "views_json/views/view_parts.h"
#include "views_json/views/views.h"

void view_wait_status(struct view *view, int32_t status)
{
    json_known_u64(view->w, (uint64_t)status, status >= 0);
}

void view_cost_keys(struct view *view, const char *key, uint64_t bits)
{
    json_key_array(view->w, key);
    for (int cost = 0; cost < COST_COUNT; cost++) {
        if ((bits >> cost & 1) != 0) {
            json_value_string(view->w, cost_get_info((enum cost)cost)->key);
        }
    }
    json_end_array(view->w);
}

void view_damage(struct view *view)
{
    const char *damage = view->profile->damage;
    json_key_string(view->w, "damage", damage[0] != '\0' ? damage : NULL);
}

void view_sampling(struct view *view)
{
    const struct sampling sampling = sampling_of(&view->profile->recording);
    CLEANUP(strbuf_release) struct strbuf sentence = {0};
    struct json_writer *w = view->w;
    if (!sampling.is_sampled) {
        json_key_null(w, "sampling");
        return;
    }
    json_key_object(w, "sampling");
    json_key_u64(w, "allocations", sampling.allocations);
    json_key_u64(w, "allocated_bytes", sampling.allocated_bytes);
    json_key_u64(w, "recorded_allocations", sampling.recorded_allocations);
    json_key_double(w, "rate",
                    sampling.allocations > 0
                        ? (double)sampling.recorded_allocations / (double)sampling.allocations
                        : 0);
    json_key_u64(w, "max_weight", sampling.max_weight);
    json_key_u64(w, "sample_bytes", view->profile->recording.totals.sample_bytes);
    json_key_u64(w, "interval_bytes", sampling.bytes);
    json_key_u64(w, "peak_standard_error_bytes", sampling.peak_standard_error_bytes);
    sampling_append(&sampling, &sentence);
    if (sampling.bytes != 0) {
        strbuf_append_text(&sentence, ". ");
        sampling_append_error(&sampling, &sentence);
    }
    json_key_string(w, "sentence", strbuf_text(&sentence));
    json_end_object(w);
}

static MUST_USE enum err view_merged_stacks(struct view *view)
{
    struct json_writer *w = view->w;
    struct merged_stacks merged;
    TRY(merged_stacks_of(&view->profile->recording, &merged));
    if (merged.times == 0) {
        json_key_null(w, "merged_stacks");
        return ERR_OK;
    }
    json_key_object(w, "merged_stacks");
    json_key_u64(w, "allocations", merged.allocations);
    json_key_u64(w, "allocated_bytes", merged.allocated_bytes);
    json_key_u64(w, "most_missing_allocations", merged.most_missing_allocations);
    json_key_u64(w, "most_missing_bytes", merged.most_missing_bytes);
    json_end_object(w);
    return ERR_OK;
}

enum err view_run(struct view *view)
{
    const struct profile *profile = view->profile;
    const struct rec_meta *meta = &profile->recording.meta;
    struct json_writer *w = view->w;
    json_key_object(w, "run");
    json_key_string(w, "program", profile_string(profile, meta->program));
    json_key_string(w, "command_line", profile_string(profile, meta->command_line));
    json_key_u64(w, "pid", meta->pid);
    json_key_string(w, "host", profile_string(profile, meta->host));
    json_key_string(w, "kernel", profile_string(profile, meta->kernel));
    json_key_string(w, "libc", profile_string(profile, meta->libc));
    json_key_u64(w, "memory_bytes", meta->memory_bytes);
    json_key_u64(w, "cpu_count", meta->cpu_count);
    json_key_u64(w, "start_unix_ms", meta->start_unix_ns / 1000000);
    json_key_string(w, "state", profile_state_name(profile));
    json_key_bool(w, "ended", profile_has_ended(profile));
    json_key(w, "wait_status");
    view_wait_status(view, meta->exit_status);
    json_key_u64(w, "oom_limit_bytes", meta->oom_limit_bytes);
    json_key_u64(w, "checkpoint_interval_ms", meta->checkpoint_interval_ms);
    json_key_u64(w, "max_frames", meta->max_frames);
    json_key_string(w, "recorded_by", profile_string(profile, meta->tool_version));
    json_key_string(w, "source_format", profile_string(profile, meta->source_format));
    view_cost_keys(view, "unknown", profile_unknown_costs(profile));
    view_sampling(view);
    TRY(view_merged_stacks(view));
    json_end_object(w);
    return ERR_OK;
}

static bool knows_cost(const struct summary *summary, enum cost cost)
{
    return (summary->unknown >> cost & 1) == 0;
}

void view_totals(struct view *view, const char *key, const struct summary *summary)
{
    struct json_writer *w = view->w;
    json_key_object(w, key);
    for (int cost = 0; cost < COST_COUNT; cost++) {
        // The sum of the rows' own peaks was never live at one time.
        if (cost != COST_OWN_PEAK_BYTES) {
            json_key_known_u64(w, cost_get_info((enum cost)cost)->key, summary->costs.values[cost],
                               knows_cost(summary, (enum cost)cost));
        }
    }
    const bool has_peak = knows_cost(summary, COST_PEAK_BYTES);
    json_key_known_u64(w, "peak_error_bytes", summary->peak_error_bytes, has_peak);
    json_key_known_u64(w, "peak_order_error_bytes", summary->peak_order_error_bytes, has_peak);
    json_key_known_u64(w, "peak_at_least_bytes", summary_peak_at_least(summary), has_peak);
    json_key_known_u64(w, "peak_at_most_bytes", summary_peak_at_most(summary), has_peak);
    json_key_known_u64(w, "peak_time_ms", summary->peak_time_ms, has_peak && summary->has_times);
    json_key_u64(w, "peak_rss_bytes", summary->peak_rss_bytes);
    json_key_u64(w, "peak_rss_at_most_bytes", summary->peak_rss_at_most);
    json_key_known_u64(w, "runtime_ms", summary->runtime_ms, summary->has_times);
    json_key_known_u64(w, "counted_ms", summary->counted_ms, summary->has_times);
    json_key_u64(w, "processes", summary->processes);
    json_key_u64(w, "threads", summary->threads);
    json_key_u64(w, "stacks", summary->stacks);
    json_key_u64(w, "unknown_frees", summary->unknown_frees);
    json_key_u64(w, "events", summary->events);
    json_key_known_u64(w, "allocations_per_second", (uint64_t)(summary->allocations_per_s + 0.5),
                       knows_cost(summary, COST_ALLOCATIONS) && summary->has_times);
    json_end_object(w);
}

static void write_mark_kind(struct view *view, const void *row)
{
    const struct rec_mark *mark = row;
    json_value_string(view->w, mark_kind_name(mark->kind));
}

static const struct column mark_columns[] = {
    COLUMN(CELL_U64, rec_mark, time_ms),
    COLUMN_WRITTEN("kind", write_mark_kind),
    COLUMN(CELL_STRING, rec_mark, text),
};

void view_marks(struct view *view)
{
    const struct recording *recording = &view->profile->recording;
    view_table(view, &TABLE("marks", mark_columns, recording->marks, recording->mark_count));
}

static void write_counter_kind(struct view *view, const void *row)
{
    const struct rec_counter *counter = row;
    json_value_string(view->w, counter->kind == REC_COUNTER_LOSS ? "loss" : "note");
}

static const struct column counter_columns[] = {
    COLUMN(CELL_STRING, rec_counter, name),
    COLUMN(CELL_STRING, rec_counter, text),
    COLUMN_WRITTEN("kind", write_counter_kind),
    COLUMN(CELL_U64, rec_counter, value),
};

void view_counters(struct view *view)
{
    const struct recording *recording = &view->profile->recording;
    view_table(view,
               &TABLE("counters", counter_columns, recording->counters, recording->counter_count));
}

static const struct column unrecorded_columns[] = {
    COLUMN(CELL_STRING, rec_unrecorded, program),
    COLUMN(CELL_STRING, rec_unrecorded, reason),
    COLUMN(CELL_STRING, rec_unrecorded, text),
    COLUMN(CELL_U32, rec_unrecorded, pid),
    COLUMN(CELL_U64, rec_unrecorded, execs),
    COLUMN_AS("descendants_at_least", CELL_U64, rec_unrecorded, descendants),
};

void view_unrecorded(struct view *view)
{
    const struct recording *recording = &view->profile->recording;
    uint64_t descendants = 0;
    for (size_t i = 0; i < recording->unrecorded_count; i++) {
        descendants += recording->unrecorded[i].descendants;
    }
    json_key_object(view->w, "unrecorded");
    json_key_u64(view->w, "execs", unseen_execs(recording));
    json_key_u64(view->w, "descendants_at_least", descendants);
    view_table(view, &TABLE("programs", unrecorded_columns, recording->unrecorded,
                            recording->unrecorded_count));
    json_end_object(view->w);
}

static const struct column hook_columns[] = {
    COLUMN(CELL_STRING, rec_hook, module),    COLUMN(CELL_STRING, rec_hook, function),
    COLUMN(CELL_STRING, rec_hook, allocator), COLUMN(CELL_STRING, rec_hook, reason),
    COLUMN(CELL_U32, rec_hook, processes),
};

void view_hooks(struct view *view)
{
    const struct recording *recording = &view->profile->recording;
    view_table(view, &TABLE("hooks", hook_columns, recording->hooks, recording->hook_count));
}

static const struct rec_process *process_of(const struct view *view, const void *row)
{
    const struct unseen *unseen = row;
    return &view->profile->recording.processes[unseen->process];
}

static void write_unseen_pid(struct view *view, const void *row)
{
    json_value_u64(view->w, process_of(view, row)->pid);
}

static void write_unseen_executable(struct view *view, const void *row)
{
    json_value_string(view->w, profile_string(view->profile, process_of(view, row)->executable));
}

static void write_unseen_reason(struct view *view, const void *row)
{
    const struct unseen *unseen = row;
    json_value_string(view->w, unseen_key(unseen));
}

static void write_unseen_why(struct view *view, const void *row)
{
    CLEANUP(strbuf_release) struct strbuf why = {0};
    unseen_explain(row, &why);
    json_value_string(view->w, strbuf_text(&why));
}

// Write the call that mapped most: null, or a function and its module.
static void write_mapper(struct view *view, const void *row)
{
    const struct unseen *unseen = row;
    CLEANUP(u32_vec_release) struct u32_vec locations = {0};
    CLEANUP(u32_vec_release) struct u32_vec inlined = {0};
    // A lack of memory is noted for the answer.
    (void)!rss_breakdown_stack(view->profile, unseen->node, &locations, &inlined);
    if (locations.len == 0) {
        json_value_null(view->w);
        return;
    }
    const uint32_t location = locations.items[0];
    json_begin_object(view->w);
    json_key_string(view->w, "function", profile_location_function(view->profile, location));
    json_key_string(view->w, "module", profile_location_module(view->profile, location));
    json_end_object(view->w);
}

static const struct column unseen_columns[] = {
    COLUMN_WRITTEN("pid", write_unseen_pid),
    COLUMN_WRITTEN("executable", write_unseen_executable),
    COLUMN_WRITTEN("reason", write_unseen_reason),
    COLUMN_WRITTEN("why", write_unseen_why),
    COLUMN(CELL_U64, unseen, anonymous_bytes),
    COLUMN(CELL_U64, unseen, mapped_bytes),
    COLUMN(CELL_U64, unseen, heap_bytes),
    COLUMN_WRITTEN("mapped_by", write_mapper),
};

enum err view_unseen(struct view *view)
{
    CLEANUP(unseen_vec_release) struct unseen_vec list = {0};
    TRY(unseen_collect(view->profile, &list));
    view_table(view, &TABLE("unseen", unseen_columns, list.items, list.len));
    return ERR_OK;
}
