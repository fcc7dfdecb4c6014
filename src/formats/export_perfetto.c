// SPDX-License-Identifier: MIT
// export_perfetto: counters over time as Chrome's trace event JSON, which ui.perfetto.dev,
// chrome://tracing and others show beside traces of other kinds.
//
//   {"ph": "C", "pid": 4242, "ts": 150000, "name": "heap", "args": {"bytes": 4096}}
//
// Each process has three counters: the heap's live bytes at the end of each time slice in which
// they changed, the rate of allocations within it, and the resident size where it was sampled.
// Marks are instants. Times are microseconds since the recording began. A counter keeps its value
// until the next one, so what changes nothing is not written. Context: H.
#include <stdlib.h>

#include "base/compiler.h"
#include "formats/export_formats.h"
#include "host/json_writer.h"
#include "host/map_u64.h"
#include "profile/code_union.h"
#include "profile/marks.h"
#include "profile/timeline.h"

enum {
    US_PER_MS = 1000,
    MS_PER_SECOND = 1000,
};

// What one process did in one slice.
struct step {
    uint64_t key; // process << 32 | slice
    struct timeline_point point;
};

DEFINE_VEC(step_vec, struct step);

struct perfetto {
    const struct export_view *view;    // borrowed
    const struct recording *recording; // borrowed
    struct json_writer w;
    struct step_vec steps; // owned
};

static void perfetto_release(struct perfetto *p)
{
    step_vec_release(&p->steps);
}

static void begin_event(struct perfetto *p, const char *phase, uint32_t process, uint64_t time_ms)
{
    json_begin_object(&p->w);
    json_key_string(&p->w, "ph", phase);
    json_key_u64(&p->w, "pid", p->recording->processes[process].pid);
    json_key_u64(&p->w, "ts", time_ms * US_PER_MS);
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
    json_key(&p->w, "args");
    json_begin_object(&p->w);
    json_key_double(&p->w, unit, value);
    json_end_object(&p->w);
    json_end_object(&p->w);
}

static int compare_steps(const void *left, const void *right)
{
    const struct step *a = left;
    const struct step *b = right;
    return (a->key > b->key) - (a->key < b->key);
}

// The cells of the selected rows, added up by process and slice, in this order.
static MUST_USE enum err collect_steps(struct perfetto *p)
{
    CLEANUP(map_u64_release) struct map_u64 index = {0};
    const struct u32_vec *rows = &p->view->selection.rows;
    size_t at = 0; // rows and cells are both sorted by row
    for (size_t i = 0; i < p->recording->cell_count; i++) {
        const struct rec_cell *cell = &p->recording->cells[i];
        while (at < rows->len && rows->items[at] < cell->row) {
            at++;
        }
        if (at == rows->len || rows->items[at] != cell->row) {
            continue;
        }
        uint32_t thread = p->recording->rows[cell->row].thread;
        struct step step = {.key = (uint64_t)p->recording->threads[thread].process << 32 |
                                   cell->slice};
        uint32_t *known = map_u64_find(&index, step.key);
        uint32_t place = known != NULL ? *known : (uint32_t)p->steps.len;
        if (known == NULL) {
            TRY(map_u64_put(&index, step.key, place));
            TRY(step_vec_push(&p->steps, step));
        }
        timeline_point_add(&p->steps.items[place].point, cell);
    }
    if (p->steps.len > 0) {
        qsort(p->steps.items, p->steps.len, sizeof(struct step), compare_steps);
    }
    return ERR_OK;
}

static void write_step(struct perfetto *p, const struct step *step, bool is_alone)
{
    uint32_t process = (uint32_t)(step->key >> 32);
    uint64_t slice_ms = p->recording->slice_ms;
    uint64_t start_ms = (uint32_t)step->key * slice_ms;
    if (selection_knows(&p->view->selection, COST_ALLOCATIONS)) {
        double rate = (double)step->point.allocations * MS_PER_SECOND / (double)slice_ms;
        write_counter(p, process, start_ms, "allocations", "per second", rate);
        if (is_alone) {
            write_counter(p, process, start_ms + slice_ms, "allocations", "per second", 0);
        }
    }
    write_counter(p, process, start_ms + slice_ms, "heap", "bytes", (double)step->point.live_bytes);
}

static void write_steps(struct perfetto *p)
{
    struct step *steps = p->steps.items;
    uint64_t live_bytes = 0;
    for (size_t i = 0; i < p->steps.len; i++) {
        struct timeline_point *point = &steps[i].point;
        bool is_first = i == 0 || steps[i - 1].key >> 32 != steps[i].key >> 32;
        bool is_alone = i + 1 == p->steps.len || steps[i + 1].key != steps[i].key + 1;
        live_bytes = (is_first ? 0 : live_bytes) + point->allocated_bytes;
        live_bytes -= point->freed_bytes < live_bytes ? point->freed_bytes : live_bytes;
        point->live_bytes = live_bytes;
        write_step(p, &steps[i], is_alone);
    }
}

static void write_names(struct perfetto *p)
{
    for (uint32_t i = 0; i < p->recording->process_count; i++) {
        const struct rec_process *process = &p->recording->processes[i];
        const char *path = profile_string(p->view->profile, process->executable);
        begin_event(p, "M", i, 0);
        json_key_string(&p->w, "name", "process_name");
        json_key(&p->w, "args");
        json_begin_object(&p->w);
        json_key_string(&p->w, "name", path_file_name(path));
        json_end_object(&p->w);
        json_end_object(&p->w);
    }
}

// A process that ended before the run's last slice holds nothing from the end of its own last one
// on.
static void write_ends(struct perfetto *p)
{
    for (uint32_t i = 0; i < p->recording->process_count; i++) {
        uint64_t end_ms = p->recording->processes[i].end_ms; // 0: not known
        uint64_t slice = end_ms / p->recording->slice_ms;
        if (end_ms > 0 && slice + 1 < p->recording->slice_count) {
            write_counter(p, i, (slice + 1) * p->recording->slice_ms, "heap", "bytes", 0);
        }
    }
}

static void write_resident(struct perfetto *p)
{
    for (size_t i = 0; i < p->recording->rss_sample_count; i++) {
        const struct rec_rss_sample *sample = &p->recording->rss_samples[i];
        write_counter(p, sample->process, sample->time_ms, "resident", "bytes",
                      (double)sample->rss_bytes);
    }
}

static void write_marks(struct perfetto *p)
{
    for (size_t i = 0; i < p->recording->mark_count; i++) {
        const struct rec_mark *mark = &p->recording->marks[i];
        const char *text = profile_string(p->view->profile, mark->text);
        json_begin_object(&p->w);
        json_key_string(&p->w, "ph", "i");
        json_key_string(&p->w, "s", "g"); // across all processes
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
    TRY(collect_steps(&p));
    json_to_stream(&p.w, out, JSON_COMPACT);
    json_begin_object(&p.w);
    json_key_string(&p.w, "displayTimeUnit", "ms");
    json_key(&p.w, "traceEvents");
    json_begin_array(&p.w);
    write_names(&p);
    write_steps(&p);
    write_ends(&p);
    write_resident(&p);
    write_marks(&p);
    json_end_array(&p.w);
    json_end_object(&p.w);
    return json_finish(&p.w);
}

const struct exporter exporter_perfetto = {
    .name = "perfetto",
    .file_suffix = ".trace.json",
    .help = "counters for ui.perfetto.dev: heap, allocations and resident size over time",
    .uses = EXPORT_USES_SERIES | EXPORT_USES_SLICES,
    .write = write_perfetto,
};
