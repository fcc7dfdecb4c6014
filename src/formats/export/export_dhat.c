// SPDX-License-Identifier: MIT
// export_dhat: DHAT's JSON, version 2, as Valgrind's dh_view.html reads it.
//
// A program point is a stack, innermost frame first. The file declares lifetimes as known (unless
// the live figures are unknown), because only then the viewer shows the live figures at t-gmax and
// at the end. Figures that a recording lacks are estimates:
//
//   tl    lifetimes of freed blocks: the middle of their histogram's bucket for each block
//   mb    the most bytes at once: the sum of the stack's own peaks on each thread; if they are
//         unknown, at least the bytes at t-gmax and at the end
//   mbk   the most blocks at once: at least the blocks at t-gmax and at the end
//
// Everything else is exact, or the command line says that the recording was sampled: the viewer
// shows no other text. Accesses are unknown: bkacc is false. Times are microseconds, so the
// viewer's "million units" is a second. Context: H.
#include "base/clock.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/minmax.h"
#include "formats/codec/clean_text.h"
#include "formats/export/estimates_note.h"
#include "formats/export/exporter.h"
#include "host/containers/vec.h"
#include "host/text/json_writer.h"
#include "profile/model/profile.h"
#include "profile/tables/adhoc.h"

enum {
    DHAT_FILE_VERSION = 2,
    SHORT_LIVED_US = 1000,
};

// The frame table "ftbl", to which program points refer while they are written; it comes after
// them.
struct dhat_frames {
    const struct profile *profile; // borrowed
    struct u32_vec ids;            // owned; by location; 0: not in the table
    struct u32_vec locations;      // owned; in the order of their ids, from 1 on
};

static MUST_USE enum err dhat_frames_init(struct dhat_frames *frames, const struct profile *profile)
{
    *frames = (struct dhat_frames){.profile = profile};
    return u32_vec_resize(&frames->ids, profile->code.locations.len);
}

static void dhat_frames_release(struct dhat_frames *frames)
{
    u32_vec_release(&frames->ids);
    u32_vec_release(&frames->locations);
}

// Find or add the id of a location, or of REC_NONE for no stack, and write it.
static void dhat_frames_refer(struct dhat_frames *frames, uint32_t location, struct json_writer *w)
{
    uint32_t none = 0; // requested once
    uint32_t *id = location != REC_NONE ? &frames->ids.items[location] : &none;
    if (*id == 0) {
        u32_vec_add(&frames->locations, location);
        *id = (uint32_t)frames->locations.len;
    }
    json_value_u64(w, *id);
}

static void write_frame(const struct profile *profile, uint32_t location, struct json_writer *w)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    if (location == REC_NONE) {
        clean_append_function(&text, profile, location, (struct clean_rule){0});
    } else {
        clean_append_place(&text, profile, location, (struct clean_rule){0});
    }
    json_value_string(w, strbuf_text(&text));
}

// Write the key "ftbl" and its array.
static void dhat_frames_write(const struct dhat_frames *frames, struct json_writer *w)
{
    json_key_array(w, "ftbl");
    json_value_string(w, "[root]");
    for (size_t i = 0; i < frames->locations.len; i++) {
        write_frame(frames->profile, frames->locations.items[i], w);
    }
    json_end_array(w);
}

struct dhat {
    const struct export_view *view; // borrowed
    struct json_writer *w;          // borrowed
    struct u64_vec lifetimes_us;    // owned; by node of the tree
    struct dhat_frames frames;      // owned
    bool has_lives;                 // live figures at the peak and at the end are known
};

static void dhat_release(struct dhat *d)
{
    u64_vec_release(&d->lifetimes_us);
    dhat_frames_release(&d->frames);
}

static uint64_t bucket_middle(uint32_t bucket)
{
    uint64_t low = rec_bucket_low(bucket);
    return low + (rec_bucket_low(bucket + 1) - low) / 2;
}

static MUST_USE enum err sum_lifetimes(struct dhat *d)
{
    const struct export_view *view = d->view;
    const struct recording *recording = &view->profile->recording;
    TRY(u64_vec_resize(&d->lifetimes_us, view->tree.nodes.len));
    size_t selected = 0;
    for (size_t i = 0; i < recording->lifetime_bucket_count; i++) {
        const struct rec_bucket *bucket = &recording->lifetime_buckets[i];
        while (selected < view->selection.rows.len &&
               view->selection.rows.items[selected] < bucket->row) {
            selected++; // both are sorted by row
        }
        if (selected < view->selection.rows.len &&
            view->selection.rows.items[selected] == bucket->row) {
            uint32_t node = view->tree.row_nodes.items[selected];
            d->lifetimes_us.items[node] +=
                bucket_middle(bucket->bucket) * bucket->count * US_PER_MS;
        }
    }
    return ERR_OK;
}

static bool knows_lives(const struct selection *selection)
{
    static const enum cost costs[] = {COST_PEAK_BYTES, COST_PEAK_BLOCKS, COST_LEAKED_BYTES,
                                      COST_LEAKED_ALLOCATIONS};
    for (size_t i = 0; i < ARRAY_LEN(costs); i++) {
        if (!selection_knows(selection, costs[i])) {
            return false;
        }
    }
    return true;
}

static void write_point(struct dhat *d, uint32_t node)
{
    const struct call_tree *tree = &d->view->tree;
    const uint64_t *costs = tree_costs_self(&tree->costs, node)->values;
    json_begin_object(d->w);
    json_key_u64(d->w, "tb", costs[COST_ALLOCATED_BYTES]);
    json_key_u64(d->w, "tbk", costs[COST_ALLOCATIONS]);
    if (d->has_lives) {
        uint64_t held_bytes = max_u64(costs[COST_PEAK_BYTES], costs[COST_LEAKED_BYTES]);
        json_key_u64(d->w, "tl", d->lifetimes_us.items[node]);
        json_key_u64(d->w, "mb", max_u64(costs[COST_OWN_PEAK_BYTES], held_bytes));
        json_key_u64(d->w, "mbk", max_u64(costs[COST_PEAK_BLOCKS], costs[COST_LEAKED_ALLOCATIONS]));
        json_key_u64(d->w, "gb", costs[COST_PEAK_BYTES]);
        json_key_u64(d->w, "gbk", costs[COST_PEAK_BLOCKS]);
        json_key_u64(d->w, "eb", costs[COST_LEAKED_BYTES]);
        json_key_u64(d->w, "ebk", costs[COST_LEAKED_ALLOCATIONS]);
    }
    json_key_array(d->w, "fs");
    for (uint32_t at = node; at != 0; at = tree->nodes.items[at].parent) {
        dhat_frames_refer(&d->frames, tree->nodes.items[at].location, d->w);
    }
    if (node == 0) { // the viewer requires a frame
        dhat_frames_refer(&d->frames, REC_NONE, d->w);
    }
    json_end_array(d->w);
    json_end_object(d->w);
}

static void write_points(struct dhat *d)
{
    const struct call_tree *tree = &d->view->tree;
    json_key_array(d->w, "pps");
    for (uint32_t node = 0; node < tree->nodes.len; node++) {
        if (costs_any(tree_costs_self(&tree->costs, node))) {
            write_point(d, node);
        }
    }
    json_end_array(d->w);
}

static void write_command(struct json_writer *w, const struct export_view *view)
{
    static const struct estimated_total totals[] = {{"total", COST_ALLOCATED_BYTES},
                                                    {"at t-gmax", COST_PEAK_BYTES},
                                                    {"at t-end", COST_LEAKED_BYTES}};
    const struct rec_meta *meta = &view->profile->recording.meta;
    CLEANUP(strbuf_release) struct strbuf command = {0};
    strbuf_append_text(&command, profile_string(view->profile, meta->command_line));
    estimates_note_append(view, tree_costs_total(&view->tree.costs, 0), totals, ARRAY_LEN(totals),
                          " [", "]", &command);
    json_key_string(w, "cmd", strbuf_text(&command));
}

static enum err write_dhat(const struct export_view *view, FILE *out)
{
    const struct recording *recording = &view->profile->recording;
    struct json_writer w;
    json_to_stream(&w, out, JSON_COMPACT);
    CLEANUP(dhat_release) struct dhat d = {.view = view, .w = &w};
    d.has_lives = knows_lives(&view->selection);
    TRY(dhat_frames_init(&d.frames, view->profile));
    TRY(sum_lifetimes(&d));
    uint64_t end_ms = max_u64(recording->meta.runtime_ms, recording->totals.peak_time_ms);
    json_key_u64(&w, "dhatFileVersion", DHAT_FILE_VERSION);
    json_key_string(&w, "mode", "heap");
    json_key_string(&w, "verb", "Allocated");
    json_key_bool(&w, "bklt", d.has_lives);
    json_key_bool(&w, "bkacc", false);
    json_key_string(&w, "tu", "\xc2\xb5s");
    json_key_string(&w, "Mtu", "s");
    json_key_u64(&w, "tuth", SHORT_LIVED_US);
    write_command(&w, view);
    json_key_u64(&w, "pid", recording->meta.pid);
    json_key_u64(&w, "te", end_ms * US_PER_MS);
    json_key_u64(&w, "tg", recording->totals.peak_time_ms * US_PER_MS);
    write_points(&d);
    dhat_frames_write(&d.frames, &w);
    return json_finish(&w);
}

const struct exporter exporter_dhat = {
    .name = "dhat",
    .file_suffix = ".dhat.json",
    .help = "JSON for Valgrind's dh_view.html: totals, lifetimes, live at peak and end",
    .needs = 1U << COST_ALLOCATIONS | 1U << COST_ALLOCATED_BYTES,
    .write = write_dhat,
};

// The program's own events (cairn_event), in DHAT's ad-hoc mode.
//
// A program point is a name and a stack. "units" are the weights, "events" are counted, and there
// are no lifetimes. The name is the innermost frame. The file covers the whole run, because filters
// concern the heap only.

static void
write_events(struct json_writer *w, const struct adhoc_list *list, struct dhat_frames *frames)
{
    json_key_array(w, "pps");
    for (size_t i = 0; i < list->events.len; i++) {
        const struct adhoc_event *event = &list->events.items[i];
        json_begin_object(w);
        json_key_u64(w, "tb", event->weight);
        json_key_u64(w, "tbk", event->events);
        json_key_array(w, "fs");
        for (size_t at = event->first; at < event->first + event->count; at++) {
            dhat_frames_refer(frames, list->locations.items[at], w);
        }
        json_end_array(w);
        json_end_object(w);
    }
    json_end_array(w);
}

static enum err write_dhat_adhoc(const struct export_view *view, FILE *out)
{
    const struct profile *profile = view->profile;
    const struct rec_meta *meta = &profile->recording.meta;
    CLEANUP(adhoc_release) struct adhoc_list list = {0};
    CLEANUP(dhat_frames_release) struct dhat_frames frames = {0};
    TRY(adhoc_collect(profile, ADHOC_BY_STACK, &list));
    TRY(dhat_frames_init(&frames, profile));
    struct json_writer w;
    json_to_stream(&w, out, JSON_COMPACT);
    json_key_u64(&w, "dhatFileVersion", DHAT_FILE_VERSION);
    json_key_string(&w, "mode", "ad-hoc");
    json_key_string(&w, "verb", "Occurred");
    json_key_bool(&w, "bklt", false);
    json_key_bool(&w, "bkacc", false);
    json_key_string(&w, "bu", "unit");
    json_key_string(&w, "bsu", "units");
    json_key_string(&w, "bksu", "events");
    json_key_string(&w, "tu", "\xc2\xb5s");
    json_key_string(&w, "Mtu", "s");
    json_key_string(&w, "cmd", profile_string(profile, meta->command_line));
    json_key_u64(&w, "pid", meta->pid);
    json_key_u64(&w, "te", meta->runtime_ms * US_PER_MS);
    write_events(&w, &list, &frames);
    dhat_frames_write(&frames, &w);
    return json_finish(&w);
}

const struct exporter exporter_dhat_adhoc = {
    .name = "dhat-adhoc",
    .file_suffix = ".dhat-adhoc.json",
    .help = "JSON for dh_view.html: the program's own events (cairn_event)",
    .uses = EXPORT_USES_EVENTS,
    .write = write_dhat_adhoc,
};
