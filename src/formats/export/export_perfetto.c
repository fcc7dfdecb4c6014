// SPDX-License-Identifier: MIT
// export_perfetto: counters over time as Chrome's trace event JSON, for ui.perfetto.dev,
// chrome://tracing and others, which show them with other traces.
//
//   {"ph": "C", "pid": 4242, "ts": 150000, "name": "heap", "args": {"bytes": 4096}}
//
// Each process has three counters: the heap's live bytes at the end of each time slice that changed
// them, the rate of allocations within it, and the RSS samples. Marks are instants. Times are
// microseconds since the recording began. A counter keeps its value until its next event, so
// unchanged values are not written. Of a sampled recording `otherData` has the errors of the peak
// and of the end, and each process has a label that its figures are estimates. Context: H.
#include "base/clock.h"
#include "base/compiler.h"
#include "base/order.h"
#include "formats/export/estimates_note.h"
#include "formats/export/exporter.h"
#include "host/os/file.h"
#include "host/text/json_writer.h"
#include "profile/time/cut_timeline.h"
#include "profile/time/marks.h"

struct perfetto {
    const struct export_view *view;    // borrowed
    const struct recording *recording; // borrowed
    struct json_writer w;
    struct u32_vec rows; // owned; selected rows, by process
};

static void perfetto_release(struct perfetto *p)
{
    u32_vec_release(&p->rows);
}

static void begin_event(struct perfetto *p, const char *phase, uint32_t process, uint64_t time_ms)
{
    json_begin_object(&p->w);
    json_key_string(&p->w, "ph", phase);
    json_key_u64(&p->w, "pid", p->recording->processes[process].pid);
    json_key_u64(&p->w, "ts", time_ms * US_PER_MS);
}

static void append_note(const struct perfetto *p,
                        const struct estimated_total *totals,
                        size_t count,
                        struct strbuf *out)
{
    estimates_note_append(p->view, tree_costs_total(&p->view->tree.costs, 0), totals, count, "", "",
                          out);
}

static void write_counter(struct perfetto *p,
                          uint32_t process,
                          uint64_t time_ms,
                          const char *name,
                          const char *unit,
                          double value)
{
    begin_event(p, "C", process, time_ms);
    json_key_string(&p->w, "name", name);
    json_key_object(&p->w, "args");
    json_key_double(&p->w, unit, value);
    json_end_object(&p->w);
    json_end_object(&p->w);
}

static uint32_t process_of(const struct recording *recording, uint32_t row)
{
    return recording->threads[recording->rows[row].thread].process;
}

static int by_process(const void *left, const void *right, void *context)
{
    const struct recording *recording = ((const struct perfetto *)context)->recording;
    uint32_t one = *(const uint32_t *)left;
    uint32_t other = *(const uint32_t *)right;
    return order_u64(process_of(recording, one), process_of(recording, other))
               ?: order_u64(one, other);
}

static MUST_USE enum err sort_rows(struct perfetto *p)
{
    const struct u32_vec *rows = &p->view->selection.rows;
    TRY(u32_vec_reserve(&p->rows, rows->len));
    for (size_t i = 0; i < rows->len; i++) {
        TRY(u32_vec_push(&p->rows, rows->items[i]));
    }
    u32_vec_sort_by(&p->rows, by_process, p);
    return ERR_OK;
}

static bool is_empty(const struct timeline_point *point)
{
    return point->allocations == 0 && point->allocated_bytes == 0 && point->frees == 0 &&
           point->freed_bytes == 0 && point->left_bytes == 0;
}

// Write the counters of a process in a slice. A rate of 0 is written once, after a rate above 0.
static void write_slice(struct perfetto *p,
                        uint32_t process,
                        const struct cut_timeline *timeline,
                        uint32_t slice)
{
    const struct timeline_point *point = &timeline->points.items[slice];
    uint64_t slice_ms = timeline->slice_ms;
    uint64_t end_ms = (slice + UINT64_C(1)) * slice_ms;
    if (is_empty(point)) {
        return;
    }
    if (selection_knows(&p->view->selection, COST_ALLOCATIONS)) {
        double rate = (double)point->allocations * MS_PER_S / (double)slice_ms;
        write_counter(p, process, slice * slice_ms, "allocations", "per second", rate);
        if (slice + 1 == timeline->end || is_empty(point + 1)) {
            write_counter(p, process, end_ms, "allocations", "per second", 0);
        }
    }
    write_counter(p, process, end_ms, "heap", "bytes", (double)point->live_bytes);
}

static MUST_USE enum err
write_process(struct perfetto *p, uint32_t process, const uint32_t *rows, size_t count)
{
    CLEANUP(cut_timeline_release) struct cut_timeline timeline = {0};
    TRY(cut_timeline_of_rows(&p->view->selection, rows, count, &timeline));
    if (timeline.before_bytes > 0) {
        write_counter(p, process, timeline.first * timeline.slice_ms, "heap", "bytes",
                      (double)timeline.before_bytes);
    }
    for (uint32_t slice = timeline.first; slice < timeline.end; slice++) {
        write_slice(p, process, &timeline, slice);
    }
    return ERR_OK;
}

static MUST_USE enum err write_processes(struct perfetto *p)
{
    const uint32_t *rows = p->rows.items;
    size_t first = 0;
    for (size_t i = 1; i <= p->rows.len; i++) {
        uint32_t process = process_of(p->recording, rows[first]);
        if (i == p->rows.len || process_of(p->recording, rows[i]) != process) {
            TRY(write_process(p, process, rows + first, i - first));
            first = i;
        }
    }
    return ERR_OK;
}

// Write an event that describes a process.
static void write_description(
    struct perfetto *p, uint32_t process, const char *event, const char *key, const char *value)
{
    begin_event(p, "M", process, 0);
    json_key_string(&p->w, "name", event);
    json_key_object(&p->w, "args");
    json_key_string(&p->w, key, value);
    json_end_object(&p->w);
    json_end_object(&p->w);
}

static void write_names(struct perfetto *p)
{
    CLEANUP(strbuf_release) struct strbuf note = {0};
    append_note(p, NULL, 0, &note);
    for (uint32_t i = 0; i < p->recording->process_count; i++) {
        const struct rec_process *process = &p->recording->processes[i];
        const char *path = profile_string(p->view->profile, process->executable);
        write_description(p, i, "process_name", "name", path_file_name(path));
        if (note.len > 0) {
            write_description(p, i, "process_labels", "labels", strbuf_text(&note));
        }
    }
}

static void write_estimates(struct perfetto *p)
{
    static const struct estimated_total totals[] = {
        {"peak", COST_PEAK_BYTES}, {"end", COST_LEAKED_BYTES}, {"allocations", COST_ALLOCATIONS}};
    CLEANUP(strbuf_release) struct strbuf note = {0};
    append_note(p, totals, ARRAY_LEN(totals), &note);
    if (note.len > 0) {
        json_key_object(&p->w, "otherData");
        json_key_string(&p->w, "cairn", strbuf_text(&note));
        json_end_object(&p->w);
    }
}

// Return whether a moment is within the selected range. The run may be longer than its slices.
static bool is_shown(const struct perfetto *p, uint64_t time_ms)
{
    struct time_range range = p->view->selection.range;
    uint64_t slice = time_ms / p->recording->slice_ms;
    return slice >= range.first && (slice < range.end || range.end == p->recording->slice_count);
}

static void write_resident(struct perfetto *p)
{
    for (size_t i = 0; i < p->recording->rss_sample_count; i++) {
        const struct rec_rss_sample *sample = &p->recording->rss_samples[i];
        if (is_shown(p, sample->time_ms)) {
            write_counter(p, sample->process, sample->time_ms, "resident", "bytes",
                          (double)sample->rss_bytes);
        }
    }
}

static void write_marks(struct perfetto *p)
{
    for (size_t i = 0; i < p->recording->mark_count; i++) {
        const struct rec_mark *mark = &p->recording->marks[i];
        const char *text = profile_string(p->view->profile, mark->text);
        if (!is_shown(p, mark->time_ms)) {
            continue;
        }
        json_begin_object(&p->w);
        json_key_string(&p->w, "ph", "i");
        json_key_string(&p->w, "s", "g"); // for all processes
        json_key_u64(&p->w, "pid", p->recording->meta.pid);
        json_key_u64(&p->w, "tid", p->recording->meta.pid);
        json_key_u64(&p->w, "ts", mark->time_ms * US_PER_MS);
        json_key_string(&p->w, "name", text[0] != '\0' ? text : mark_kind_name(mark->kind));
        json_end_object(&p->w);
    }
}

static enum err write_perfetto(const struct export_view *view, FILE *out)
{
    CLEANUP(perfetto_release)
    struct perfetto p = {.view = view, .recording = &view->profile->recording};
    TRY(sort_rows(&p));
    json_to_stream(&p.w, out, JSON_COMPACT);
    json_key_string(&p.w, "displayTimeUnit", "ms");
    write_estimates(&p);
    json_key_array(&p.w, "traceEvents");
    write_names(&p);
    TRY(write_processes(&p));
    write_resident(&p);
    write_marks(&p);
    json_end_array(&p.w);
    return json_finish(&p.w);
}

const struct exporter exporter_perfetto = {
    .name = "perfetto",
    .file_suffix = ".trace.json",
    .help = "counters for ui.perfetto.dev: heap, allocations and resident size over time",
    .uses = EXPORT_USES_SERIES | EXPORT_USES_SLICES,
    .write = write_perfetto,
};
