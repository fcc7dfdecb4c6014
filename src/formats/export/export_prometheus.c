// SPDX-License-Identifier: MIT
// export_prometheus: the state of the heap in Prometheus' text format 0.0.4, for `--listen`, the
// textfile collector of node_exporter, and others.
//
//   # HELP cairn_heap_live_bytes Bytes of live blocks.
//   # TYPE cairn_heap_live_bytes gauge
//   cairn_heap_live_bytes 4096
//
// The figures are those of `cairn report --json`. "Live" is the moment of the checkpoint; blocks
// of ended processes are not live, although they are leaked. The number of series is bounded: there
// are TOP_SITES call sites for each ranking, and as many processes (process_metrics.h). Call sites
// with equal labels are one series, because a scraper refuses a document that has a series twice.
// With a filter, the document has the heap, the processes and the call sites only: everything else
// belongs to whole processes. Of a sampled recording each metric of the heap and of call sites has
// a gauge with its error: cairn_heap_live_bytes_error.
// cairn_heap_exact_... are exact in every recording. Context: H.
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "formats/codec/clean_text.h"
#include "formats/export/exporter.h"
#include "formats/export/process_metrics.h"
#include "host/containers/string_table.h"
#include "profile/accuracy/sampling.h"
#include "profile/calls/call_sites.h"
#include "profile/growth/growth.h"
#include "profile/tables/rss_breakdown.h"
#include "profile/tables/summary.h"

enum {
    TOP_SITES = 20,
};

struct metric {
    const char *name;
    const char *type;
    const char *help;
};

static void begin_metric(FILE *out, const struct metric *metric)
{
    (void)fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help, metric->name,
                  metric->type);
}

// Begin the gauge with the errors of a metric, and set *out_name to its name.
static void begin_error_metric(FILE *out, const struct metric *metric, struct strbuf *out_name)
{
    static const char total[] = "_total"; // only counters may end so
    const size_t len = strlen(metric->name);
    const size_t total_len = sizeof(total) - 1;
    const bool is_total = len > total_len && strcmp(metric->name + len - total_len, total) == 0;
    strbuf_clear(out_name);
    strbuf_append(out_name, metric->name, is_total ? len - total_len : len);
    strbuf_append_text(out_name, "_error");
    (void)fprintf(out,
                  "# HELP %s Error of %s: the true value is within it in about 95 of 100 cases.\n",
                  strbuf_text(out_name), metric->name);
    (void)fprintf(out, "# TYPE %s gauge\n", strbuf_text(out_name));
}

static void write_number(FILE *out, const struct metric *metric, uint64_t value)
{
    begin_metric(out, metric);
    (void)fprintf(out, "%s %" PRIu64 "\n", metric->name, value);
}

// Write a moment or a duration in seconds.
static void write_seconds(FILE *out, const struct metric *metric, uint64_t ms)
{
    begin_metric(out, metric);
    (void)fprintf(out, "%s %" PRIu64 ".%03" PRIu64 "\n", metric->name, ms / MS_PER_S,
                  ms % MS_PER_S);
}

// --- the heap -----------------------------------------------------------------------------------

static const struct {
    enum cost cost;
    struct metric metric;
} heap_metrics[] = {
    {COST_LEAKED_BYTES, {"cairn_heap_live_bytes", "gauge", "Bytes of live blocks."}},
    {COST_LEAKED_ALLOCATIONS, {"cairn_heap_live_blocks", "gauge", "Live blocks."}},
    {COST_PEAK_BYTES, {"cairn_heap_peak_bytes", "gauge", "Highest live bytes so far."}},
    {COST_ALLOCATIONS, {"cairn_heap_allocations_total", "counter", "Allocations."}},
    {COST_ALLOCATED_BYTES,
     {"cairn_heap_allocated_bytes_total", "counter", "Requested bytes of all allocations."}},
    {COST_FREES, {"cairn_heap_frees_total", "counter", "Frees of recorded blocks."}},
    {COST_FREED_BYTES, {"cairn_heap_freed_bytes_total", "counter", "Bytes of freed blocks."}},
    {COST_TEMPORARY,
     {"cairn_heap_temporary_total", "counter",
      "Allocations that the next event of their thread freed."}},
};

static bool is_live_cost(enum cost cost)
{
    return cost == COST_LEAKED_BYTES || cost == COST_LEAKED_ALLOCATIONS;
}

// The error of the peak of all is that of its line in the report, not that of a sum. Where no block
// was recorded, some bytes may have passed unseen.
static uint64_t
heap_error(const struct export_view *view, const struct summary *summary, enum cost cost)
{
    const struct sampling sampling = sampling_of(&view->profile->recording);
    const struct costs errors = sampling_errors(&sampling, &summary->costs);
    if (costs_get(&summary->costs, cost) == 0) {
        return cost_get_info(cost)->unit == COST_UNIT_BYTES ? sampling_most_unseen(&sampling) : 0;
    }
    return cost == COST_PEAK_BYTES && view->selection.is_everything ? summary->peak_error_bytes
                                                                    : costs_get(&errors, cost);
}

static MUST_USE enum err
write_heap(const struct export_view *view, const struct selection *live, FILE *out)
{
    struct summary all;
    struct summary now;
    CLEANUP(strbuf_release) struct strbuf name = {0};
    TRY(summary_build(&view->selection, &all));
    TRY(summary_build(live, &now));
    for (size_t i = 0; i < ARRAY_LEN(heap_metrics); i++) {
        const enum cost cost = heap_metrics[i].cost;
        const struct metric *metric = &heap_metrics[i].metric;
        const struct summary *summary = is_live_cost(cost) ? &now : &all;
        if (!selection_knows(&view->selection, cost)) {
            continue;
        }
        write_number(out, metric, costs_get(&summary->costs, cost));
        if (sampling_has_errors(&view->profile->recording)) {
            begin_error_metric(out, metric, &name);
            (void)fprintf(out, "%s %" PRIu64 "\n", strbuf_text(&name),
                          heap_error(view, summary, cost));
        }
    }
    return ERR_OK;
}

// --- call sites ---------------------------------------------------------------------------------

struct site_metric {
    enum cost cost;
    struct metric metric;
};

// Each ranking by its first cost.
static const struct site_metric rankings[][2] = {
    {{COST_LEAKED_BYTES,
      {"cairn_call_site_live_bytes", "gauge", "Bytes of live blocks of the largest call sites."}},
     {COST_LEAKED_ALLOCATIONS,
      {"cairn_call_site_live_blocks", "gauge", "Live blocks of the same call sites."}}},
    {{COST_ALLOCATED_BYTES,
      {"cairn_call_site_allocated_bytes_total", "counter",
       "Requested bytes of the call sites that allocate most."}},
     {COST_ALLOCATIONS,
      {"cairn_call_site_allocations_total", "counter", "Allocations of the same call sites."}}},
};

static void site_labels(const struct profile *profile, uint32_t location, struct strbuf *out)
{
    CLEANUP(strbuf_release) struct strbuf function = {0};
    clean_append_function(&function, profile, location, (struct clean_rule){0});
    metric_label_append(out, "function", &function);
    if (location != REC_NONE) {
        const uint32_t line = profile_location_get(profile, location)->line;
        metric_label_append_text(out, "file", profile_location_file(profile, location));
        strbuf_printf(out, ",line=\"%" PRIu32 "\"", line);
        metric_label_append_text(out, "module", profile_location_module(profile, location));
    }
}

// The highest call sites, with equal labels added up.
struct top_sites {
    struct string_table labels; // owned; id 0 is the empty text
    struct costs_vec costs;     // owned; by id - 1
};

static void top_sites_release(struct top_sites *top)
{
    string_table_release(&top->labels);
    costs_vec_release(&top->costs);
}

static void
add_site(const struct profile *profile, const struct call_site *site, struct top_sites *top)
{
    CLEANUP(strbuf_release) struct strbuf labels = {0};
    site_labels(profile, site->location, &labels);
    const uint32_t id = string_table_add(&top->labels, strbuf_text(&labels));
    if (id > top->costs.len) {
        costs_vec_add(&top->costs, site->costs);
    } else if (id > 0) { // else memory has ended
        costs_add(&top->costs.items[id - 1], &site->costs);
    }
}

// Write a cost of each call site, or with `sampling` the error of that.
static void write_sites(const struct top_sites *top,
                        const char *name,
                        enum cost cost,
                        const struct sampling *sampling,
                        FILE *out)
{
    for (uint32_t i = 0; i < top->costs.len; i++) {
        const struct bytes labels = string_table_get_bytes(&top->labels, i + 1);
        struct costs costs = top->costs.items[i];
        if (sampling != NULL) {
            costs = sampling_errors(sampling, &costs);
        }
        (void)fprintf(out, "%s{%.*s} %" PRIu64 "\n", name, (int)labels.len,
                      (const char *)labels.data, costs_get(&costs, cost));
    }
}

static MUST_USE enum err
write_ranking(const struct selection *selection, const struct site_metric metrics[2], FILE *out)
{
    const struct sampling sampling = sampling_of(&selection->profile->recording);
    CLEANUP(strbuf_release) struct strbuf name = {0};
    CLEANUP(call_sites_release) struct call_sites sites = {0};
    CLEANUP(u32_vec_release) struct u32_vec ranked = {0};
    CLEANUP(top_sites_release) struct top_sites top = {0};
    TRY(call_sites_build_alone(selection, &sites));
    TRY(call_sites_ranked(&sites, metrics[0].cost, &ranked));
    for (size_t i = 0; i < min_u64(ranked.len, TOP_SITES); i++) {
        add_site(selection->profile, &sites.sites.items[ranked.items[i]], &top);
    }
    for (size_t m = 0; m < 2 && top.costs.len > 0; m++) {
        if (!selection_knows(selection, metrics[m].cost)) {
            continue;
        }
        begin_metric(out, &metrics[m].metric);
        write_sites(&top, metrics[m].metric.name, metrics[m].cost, NULL, out);
        if (sampling.bytes != 0) {
            begin_error_metric(out, &metrics[m].metric, &name);
            write_sites(&top, strbuf_text(&name), metrics[m].cost, &sampling, out);
        }
    }
    return ERR_OK;
}

enum {
    GROWTH_PARTS = 1000,
};

// Write numbers that are kept in parts as costs.
static void write_parts(const struct top_sites *top, const char *name, enum cost cost, FILE *out)
{
    for (uint32_t i = 0; i < top->costs.len; i++) {
        const struct bytes labels = string_table_get_bytes(&top->labels, i + 1);
        const uint64_t parts = costs_get(&top->costs.items[i], cost);
        (void)fprintf(out, "%s{%.*s} %" PRIu64 ".%03" PRIu64 "\n", name, (int)labels.len,
                      (const char *)labels.data, parts / GROWTH_PARTS, parts % GROWTH_PARTS);
    }
}

// Write how fast the largest call sites grow that do: the slopes of the report and their errors, in
// thousandths of a byte a second until they are written. Errors of equal labels are added up, which
// never states too small an error for their sum.
static MUST_USE enum err write_growth(const struct export_view *view, FILE *out)
{
    static const struct metric growing = {
        "cairn_call_site_growth_bytes_per_second", "gauge",
        "Growth of the largest call sites whose memory keeps growing, while there is work."};
    CLEANUP(growth_release) struct growth growth = {0};
    CLEANUP(top_sites_release) struct top_sites top = {0};
    CLEANUP(strbuf_release) struct strbuf name = {0};
    TRY(growth_build(&view->selection, ROW_GROUPS_BY_SITE_ALONE, TOP_SITES, &growth));
    for (size_t i = 0; i < min_u64(growth.entries.len, TOP_SITES); i++) {
        const struct growth_entry *entry = &growth.entries.items[i];
        struct call_site site = {.location = row_groups_location(&growth.groups, entry->group)};
        if (entry->class == GROWTH_GROWING && entry->slope_bytes_per_s > 0) {
            site.costs.values[COST_LEAKED_BYTES] =
                (uint64_t)(entry->slope_bytes_per_s * GROWTH_PARTS);
            site.costs.values[COST_LEAKED_ALLOCATIONS] =
                (uint64_t)(entry->slope_error * GROWTH_PARTS);
            add_site(view->profile, &site, &top);
        }
    }
    if (top.costs.len == 0) {
        return ERR_OK;
    }
    begin_metric(out, &growing);
    write_parts(&top, growing.name, COST_LEAKED_BYTES, out);
    if (sampling_has_errors(&view->profile->recording)) {
        begin_error_metric(out, &growing, &name);
        write_parts(&top, strbuf_text(&name), COST_LEAKED_ALLOCATIONS, out);
    }
    return ERR_OK;
}

// --- whole processes ----------------------------------------------------------------------------

static void write_about(const struct export_view *view, FILE *out)
{
    static const struct metric info = {"cairn_recording_info", "gauge", "The recording; always 1."};
    static const struct metric written = {"cairn_checkpoint_timestamp_seconds", "gauge",
                                          "Unix time of the state that this document shows."};
    static const struct metric runtime = {"cairn_recorded_seconds", "gauge",
                                          "Time since the recording began."};
    static const struct metric checkpoints = {"cairn_checkpoints_total", "counter",
                                              "Checkpoints that the recorder has written."};
    static const struct metric estimated = {"cairn_heap_is_estimate", "gauge",
                                            "1 if blocks were sampled, else 0. Figures of the heap "
                                            "and of call sites are then estimates, "
                                            "with their errors in metrics that end with _error."};
    static const struct metric interval = {
        "cairn_sampling_interval_bytes", "gauge",
        "At least one block in so many allocated bytes was recorded."};
    const struct sampling sampling = sampling_of(&view->profile->recording);
    const struct profile *profile = view->profile;
    const struct rec_meta *meta = &profile->recording.meta;
    CLEANUP(strbuf_release) struct strbuf labels = {0};
    metric_label_append_text(&labels, "program", profile_string(profile, meta->program));
    metric_label_append_text(&labels, "state", profile_state_name(profile));
    metric_label_append_text(&labels, "version", profile_string(profile, meta->tool_version));
    begin_metric(out, &info);
    (void)fprintf(out, "%s{%s} 1\n", info.name, strbuf_text(&labels));
    if (meta->start_unix_ns != 0) {
        write_seconds(out, &written, meta->start_unix_ns / NS_PER_MS + meta->runtime_ms);
    }
    write_seconds(out, &runtime, meta->runtime_ms);
    write_number(out, &checkpoints, meta->checkpoint_count);
    write_number(out, &estimated, sampling.is_sampled);
    if (sampling.bytes != 0) {
        write_number(out, &interval, sampling.bytes);
    }
}

// Write the totals that sampling leaves exact.
static void write_exact(const struct export_view *view, FILE *out)
{
    static const struct metric allocations = {
        "cairn_heap_exact_allocations_total", "counter",
        "Allocations; exact even if the other figures are estimates."};
    static const struct metric bytes = {
        "cairn_heap_exact_allocated_bytes_total", "counter",
        "Requested bytes of all allocations; exact even if the other figures are estimates."};
    const struct sampling sampling = sampling_of(&view->profile->recording);
    if (selection_knows(&view->selection, COST_ALLOCATIONS)) {
        write_number(out, &allocations, sampling.allocations);
    }
    if (selection_knows(&view->selection, COST_ALLOCATED_BYTES)) {
        write_number(out, &bytes, sampling.allocated_bytes);
    }
}

// Write the size of all processes by kind at the last memory snapshot, and the latest sample.
static MUST_USE enum err write_resident(const struct export_view *view, FILE *out)
{
    static const struct metric resident = {"cairn_resident_bytes", "gauge",
                                           "RSS of the recorded processes."};
    static const struct metric peak = {"cairn_resident_peak_bytes", "gauge", "Highest RSS so far."};
    static const struct metric parts = {"cairn_resident_part_bytes", "gauge",
                                        "RSS breakdown: RSS by kind, at the last memory snapshot."};
    static const struct metric age = {"cairn_resident_part_age_seconds", "gauge",
                                      "Time since that memory snapshot."};
    CLEANUP(rss_breakdown_release) struct rss_breakdown rss = {0};
    TRY(rss_breakdown_build(view->profile, 0, &rss));
    if (rss.samples.len > 0) {
        write_number(out, &resident, rss.samples.items[rss.samples.len - 1].rss_bytes);
        write_number(out, &peak, rss.peak_rss_bytes);
    }
    const struct rss_breakdown_split *last = rss_breakdown_last(&rss);
    if (last == NULL) {
        return ERR_OK;
    }
    begin_metric(out, &parts);
    for (uint32_t kind = 1; kind <= REC_PART_KINDS; kind++) {
        (void)fprintf(out, "%s{kind=\"%s\"} %" PRIu64 "\n", parts.name,
                      rss_breakdown_kind(kind)->key, last->bytes[kind]);
    }
    write_seconds(out, &age, rss_breakdown_split_age_ms(view->profile, last));
    return ERR_OK;
}

// Write the recording's counters of one kind: they are a fixed set.
static void write_counters(const struct export_view *view,
                           enum rec_counter_kind kind,
                           const struct metric *metric,
                           FILE *out)
{
    const struct recording *recording = &view->profile->recording;
    bool has_begun = false;
    for (size_t i = 0; i < recording->counter_count; i++) {
        const struct rec_counter *counter = &recording->counters[i];
        if (counter->kind != kind) {
            continue;
        }
        if (!has_begun) {
            begin_metric(out, metric);
            has_begun = true;
        }
        CLEANUP(strbuf_release) struct strbuf label = {0};
        metric_label_append_text(&label, "reason", profile_string(view->profile, counter->name));
        (void)fprintf(out, "%s{%s} %" PRIu64 "\n", metric->name, strbuf_text(&label),
                      counter->value);
    }
}

static MUST_USE enum err write_whole(const struct export_view *view, FILE *out)
{
    static const struct metric lost = {"cairn_lost_events_total", "counter",
                                       "Losses: events that are missing from the figures; "
                                       "some reasons count what they are missing of."};
    static const struct metric notes = {"cairn_notes_total", "counter",
                                        "Notes: weaknesses of the recording that lose no event."};
    write_about(view, out);
    write_exact(view, out);
    TRY(write_resident(view, out));
    write_counters(view, REC_COUNTER_LOSS, &lost, out);
    write_counters(view, REC_COUNTER_NOTE, &notes, out);
    return ERR_OK;
}

static enum err write_prometheus(const struct export_view *view, FILE *out)
{
    if (view->selection.is_everything) {
        TRY(write_whole(view, out));
    }
    CLEANUP(selection_release) struct selection live = {0};
    TRY(selection_at_end(&view->selection, &live));
    TRY(write_heap(view, &live, out));
    TRY(process_metrics_write(view, &live, out));
    for (size_t i = 0; i < ARRAY_LEN(rankings); i++) {
        const enum cost cost = rankings[i][0].cost;
        if (selection_knows(&view->selection, cost)) {
            TRY(write_ranking(is_live_cost(cost) ? &live : &view->selection, rankings[i], out));
        }
    }
    return view->selection.is_everything && growth_is_known(&view->profile->recording)
               ? write_growth(view, out)
               : ERR_OK;
}

const struct exporter exporter_prometheus = {
    .name = "prometheus",
    .file_suffix = ".prom",
    .is_flat = true,
    .help = "metrics: live heap, counters, resident size, losses, the largest call sites",
    .write = write_prometheus,
};
