// SPDX-License-Identifier: MIT
// summary: adds up a selection, whole and by group. See summary.h.
#include "profile/tables/summary.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "host/containers/map_u64.h"
#include "profile/accuracy/sampling.h"
#include "profile/tables/rss_breakdown.h"

// False for the image after an exec: its process is counted already.
static bool begins_process(const struct recording *recording, size_t process)
{
    return recording->processes[process].epoch == 0;
}

static uint64_t threads_of(const struct rec_thread *thread)
{
    return thread->merged_count > 0 ? thread->merged_count : 1;
}

enum err summary_beginnings(const struct recording *recording, struct u32_vec *out)
{
    CLEANUP(map_u64_release) struct map_u64 latest = {0}; // by pid; pids may be reused
    TRY(u32_vec_resize(out, recording->process_count));
    for (uint32_t i = 0; i < recording->process_count; i++) {
        uint32_t pid = recording->processes[i].pid;
        const uint32_t *known = begins_process(recording, i) ? NULL : map_u64_find(&latest, pid);
        out->items[i] = known != NULL ? *known : i;
        if (known == NULL) {
            TRY(map_u64_put(&latest, pid, i));
        }
    }
    return ERR_OK;
}

// Count at least one thread for each process. The thread that calls exec is the first thread of the
// new image and counts once.
static MUST_USE enum err count_everything(const struct recording *recording,
                                          struct summary *summary)
{
    CLEANUP(u32_vec_release) struct u32_vec beginnings = {0};
    CLEANUP(flag_vec_release) struct flag_vec main_threads = {0}; // by process
    CLEANUP(u64_vec_release) struct u64_vec threads = {0};        // by process: all other threads
    TRY(summary_beginnings(recording, &beginnings));
    TRY(flag_vec_resize(&main_threads, recording->process_count));
    TRY(u64_vec_resize(&threads, recording->process_count));
    for (size_t i = 0; i < recording->thread_count; i++) {
        const struct rec_thread *thread = &recording->threads[i];
        const uint32_t beginning = beginnings.items[thread->process];
        const bool is_main = thread->thread_id == recording->processes[thread->process].pid;
        main_threads.items[beginning] |= is_main;
        threads.items[beginning] += threads_of(thread) - is_main;
    }
    for (size_t i = 0; i < recording->process_count; i++) {
        const uint64_t known = threads.items[i] + main_threads.items[i];
        if (beginnings.items[i] == i) {
            summary->processes++;
            summary->threads += known > 0 ? known : 1;
        }
    }
    return ERR_OK;
}

// The thread that calls exec is the first thread of the new image, so it counts for its process.
static MUST_USE enum err count_selected(const struct selection *selection, struct summary *summary)
{
    const struct recording *recording = &selection->profile->recording;
    CLEANUP(flag_vec_release) struct flag_vec processes = {0};
    CLEANUP(flag_vec_release) struct flag_vec threads = {0};
    CLEANUP(flag_vec_release) struct flag_vec main_threads = {0}; // by process
    CLEANUP(u32_vec_release) struct u32_vec beginnings = {0};
    TRY(summary_beginnings(recording, &beginnings));
    TRY(flag_vec_resize(&processes, recording->process_count));
    TRY(flag_vec_resize(&main_threads, recording->process_count));
    TRY(flag_vec_resize(&threads, recording->thread_count));
    for (size_t i = 0; i < selection->rows.len; i++) {
        uint32_t thread = recording->rows[selection->rows.items[i]].thread;
        uint32_t process = recording->threads[thread].process;
        uint32_t beginning = beginnings.items[process];
        bool is_main = recording->threads[thread].thread_id == recording->processes[process].pid;
        if (is_main) {
            main_threads.items[beginning] = 1;
        } else {
            threads.items[thread] = 1;
        }
        processes.items[beginning] = 1;
    }
    for (size_t i = 0; i < recording->process_count; i++) {
        summary->processes += processes.items[i];
        summary->threads += main_threads.items[i];
    }
    for (size_t i = 0; i < recording->thread_count; i++) {
        summary->threads += threads.items[i] != 0 ? threads_of(&recording->threads[i]) : 0;
    }
    return ERR_OK;
}

static MUST_USE enum err count_stacks(const struct selection *selection, struct summary *summary)
{
    const struct recording *recording = &selection->profile->recording;
    CLEANUP(flag_vec_release) struct flag_vec nodes = {0};
    TRY(flag_vec_resize(&nodes, recording->node_count));
    for (size_t i = 0; i < selection->rows.len; i++) {
        uint8_t *seen = &nodes.items[recording->rows[selection->rows.items[i]].node];
        summary->stacks += *seen == 0;
        *seen = 1;
    }
    return ERR_OK;
}

// Take the recorder's own counts, which may exceed the sums over rows.
static void take_recorded_totals(const struct rec_totals *totals, struct costs *costs)
{
    uint64_t *values = costs->values;
    values[COST_PEAK_BYTES] = totals->peak_bytes;
    values[COST_PEAK_BLOCKS] = totals->peak_blocks;
    values[COST_ALLOCATIONS] = totals->allocations;
    values[COST_ALLOCATED_BYTES] = totals->allocated_bytes;
    values[COST_FREES] = totals->frees;
    values[COST_FREED_BYTES] = totals->freed_bytes;
    values[COST_TEMPORARY] = totals->temporary;
    values[COST_TEMPORARY_BYTES] = totals->temporary_bytes;
    values[COST_LEAKED_BYTES] = excess_u64(totals->allocated_bytes, totals->freed_bytes);
    values[COST_LEAKED_ALLOCATIONS] = excess_u64(totals->allocations, totals->frees);
}

static void take_suppressed(const struct selection *selection, struct costs *costs)
{
    uint64_t *values = costs->values;
    values[COST_LEAKED_BYTES] =
        excess_u64(values[COST_LEAKED_BYTES], selection->suppressed.live_bytes);
    values[COST_LEAKED_ALLOCATIONS] =
        excess_u64(values[COST_LEAKED_ALLOCATIONS], selection->suppressed.live_blocks);
}

uint64_t summary_peak_at_least(const struct summary *summary)
{
    return excess_u64(summary->costs.values[COST_PEAK_BYTES], summary->peak_below_bytes);
}

uint64_t summary_peak_at_most(const struct summary *summary)
{
    return capped_sum_u64(summary->costs.values[COST_PEAK_BYTES], summary->peak_error_bytes);
}

uint64_t summary_peak_order_at_most(const struct summary *summary)
{
    return capped_sum_u64(summary->costs.values[COST_PEAK_BYTES], summary->peak_order_error_bytes);
}

uint64_t summary_peak_flight_bytes(const struct summary *summary)
{
    return excess_u64(summary->peak_error_bytes, summary->peak_order_error_bytes);
}

bool summary_peak_has_share(const struct summary *summary, uint64_t part_bytes)
{
    const uint64_t least_part = 100;
    return part_bytes > 0 && part_bytes >= summary->costs.values[COST_PEAK_BYTES] / least_part;
}

bool summary_has_wide_peak(const struct summary *summary, uint64_t at_least, uint64_t at_most)
{
    const uint64_t bytes = summary->costs.values[COST_PEAK_BYTES];
    const uint64_t below = excess_u64(bytes, at_least);
    const uint64_t above = excess_u64(at_most, bytes);
    return summary_peak_has_share(summary, max_u64(below, above));
}

bool summary_has_wide_rss(const struct summary *summary)
{
    const uint64_t least_part = 100;
    return summary->peak_rss_at_most >
           summary->peak_rss_bytes + summary->peak_rss_bytes / least_part;
}

static uint64_t peak_below(const struct rec_totals *totals)
{
    return totals->peak_at_least_bytes != 0
               ? excess_u64(totals->peak_bytes, totals->peak_at_least_bytes)
               : totals->peak_error_bytes;
}

// A part of the run is not above its peak. Threads tell what they did at different moments, so that
// the rows of one moment may add up to more, as in time lines.
static void limit_peak_of_part(const struct recording *recording, struct summary *summary)
{
    uint64_t *values = summary->costs.values;
    if (recording->totals.peak_bytes != 0 && !sampling_has_errors(recording)) {
        values[COST_PEAK_BYTES] = min_u64(values[COST_PEAK_BYTES], recording->totals.peak_bytes);
    }
}

// A part of the heap never held more than it allocated. Estimates narrow nothing, and under a time
// range the part may hold older blocks.
static void narrow_peak_of_part(const struct selection *selection, struct summary *summary)
{
    const uint64_t *values = summary->costs.values;
    if (!selection->has_range && selection_knows(selection, COST_ALLOCATED_BYTES) &&
        costs_get(&selection->estimated, COST_ALLOCATED_BYTES) == 0 &&
        !sampling_of(&selection->profile->recording).is_sampled) {
        const uint64_t above = excess_u64(values[COST_ALLOCATED_BYTES], values[COST_PEAK_BYTES]);
        summary->peak_error_bytes = min_u64(summary->peak_error_bytes, above);
        summary->peak_order_error_bytes = min_u64(summary->peak_order_error_bytes, above);
    }
}

static MUST_USE enum err build(const struct selection *selection, struct summary *out)
{
    const struct recording *recording = &selection->profile->recording;
    struct summary summary = {
        .unknown = selection->unknown,
        .has_times = (recording->meta.unknown & REC_UNKNOWN_TIME) == 0,
        .unknown_frees = recording->totals.unknown_frees,
        .events = recording->totals.events,
        .peak_error_bytes = recording->totals.peak_error_bytes,
        .peak_below_bytes = peak_below(&recording->totals),
        .peak_order_error_bytes =
            excess_u64(recording->totals.peak_error_bytes, recording->totals.peak_flight_bytes),
        .peak_time_ms = selection->has_range ? time_range_peak_ms(recording, selection->range)
                                             : recording->totals.peak_time_ms,
        .runtime_ms = recording->meta.runtime_ms,
        .counted_ms = selection_length_ms(selection),
    };
    for (size_t i = 0; i < selection->rows.len; i++) {
        TRY(cancel_step(selection->cancel));
        struct costs costs = selection_costs(selection, i);
        costs_add(&summary.costs, &costs);
    }
    if (selection->is_everything) {
        take_recorded_totals(&recording->totals, &summary.costs);
        take_suppressed(selection, &summary.costs);
        TRY(count_everything(recording, &summary));
    } else {
        limit_peak_of_part(recording, &summary);
        narrow_peak_of_part(selection, &summary);
        TRY(count_selected(selection, &summary));
    }
    if (summary.counted_ms > 0) {
        summary.allocations_per_s = (double)costs_get(&summary.costs, COST_ALLOCATIONS) * MS_PER_S /
                                    (double)summary.counted_ms;
    }
    TRY(count_stacks(selection, &summary));
    CLEANUP(rss_breakdown_release) struct rss_breakdown rss_breakdown = {0};
    TRY(rss_breakdown_build(selection->profile, 0, &rss_breakdown));
    summary.peak_rss_bytes = rss_breakdown.peak_rss_bytes;
    summary.peak_rss_at_most = rss_breakdown.peak_rss_at_most;
    *out = summary;
    return ERR_OK;
}

// It owns nothing.
DEFINE_KEPT_KIND(summary_kind, struct summary, build(source, out), 0, (void)result);

enum err summary_build(const struct selection *selection, struct summary *out)
{
    bool is_lent;
    return kept_results_get(selection->kept, &summary_kind, selection, out, &is_lent);
}

static uint32_t
group_of(const struct selection *selection, const struct rec_row *row, enum group_by by)
{
    const struct profile *profile = selection->profile;
    switch (by) {
    case GROUP_BY_PROCESS:
        return profile->recording.threads[row->thread].process;
    case GROUP_BY_THREAD:
        return row->thread;
    case GROUP_BY_MODULE: {
        struct call_site_location site = selection_call_site(selection, row->node);
        return site.frame == REC_NONE ? REC_NONE : profile->recording.frames[site.frame].module;
    }
    }
    return REC_NONE;
}

static size_t group_count(const struct recording *recording, enum group_by by)
{
    switch (by) {
    case GROUP_BY_PROCESS:
        return recording->process_count;
    case GROUP_BY_THREAD:
        return recording->thread_count;
    case GROUP_BY_MODULE:
        return recording->module_count;
    }
    return 0;
}

enum err groups_build(const struct selection *selection, enum group_by by, struct group_vec *out)
{
    const struct recording *recording = &selection->profile->recording;
    size_t count = group_count(recording, by);
    CLEANUP(group_vec_release) struct group_vec groups = {0};
    CLEANUP(flag_vec_release) struct flag_vec used = {0};
    TRY(group_vec_resize(&groups, count + 1)); // the last is for REC_NONE
    TRY(flag_vec_resize(&used, count + 1));
    for (size_t i = 0; i < selection->rows.len; i++) {
        TRY(cancel_step(selection->cancel));
        const struct rec_row *row = &recording->rows[selection->rows.items[i]];
        uint32_t id = group_of(selection, row, by);
        size_t place = id == REC_NONE ? count : id;
        struct costs costs = selection_costs(selection, i);
        costs_add(&groups.items[place].costs, &costs);
        used.items[place] = 1;
    }
    size_t kept = 0;
    for (size_t i = 0; i <= count; i++) {
        if (used.items[i] != 0 || (selection->is_everything && i < count)) {
            groups.items[i].id = i < count ? (uint32_t)i : REC_NONE;
            groups.items[kept++] = groups.items[i];
        }
    }
    groups.len = kept;
    *out = TAKE(groups);
    return ERR_OK;
}
