// SPDX-License-Identifier: MIT
// export_speedscope: JSON for https://www.speedscope.app.
//
// Locations are its frames. Each cost is a separate profile with one weighted sample a stack,
// outermost frame first. Without --cost the file has all known default costs, and the viewer
// switches between them. The names of the profiles have the errors of their totals, and the name of
// the document says what was recorded, if the recording was sampled.
#include "base/compiler.h"
#include "formats/codec/clean_text.h"
#include "formats/export/estimates_note.h"
#include "formats/export/exporter.h"
#include "host/text/json_writer.h"
#include "profile/accuracy/sampling.h"

static const enum cost usual_costs[] = {COST_PEAK_BYTES, COST_ALLOCATED_BYTES, COST_ALLOCATIONS,
                                        COST_TEMPORARY, COST_LEAKED_BYTES};

// The frames that stacks refer to: by location, in order of first use.
struct frame_ids {
    struct u32_vec by_location; // owned; REC_NONE: not used yet
    struct u32_vec locations;   // owned; by id
};

static void frame_ids_release(struct frame_ids *ids)
{
    u32_vec_release(&ids->by_location);
    u32_vec_release(&ids->locations);
}

static MUST_USE enum err collect_frames(const struct export_view *view, struct frame_ids *ids)
{
    const struct call_tree_node_vec *nodes = &view->tree.nodes;
    TRY(u32_vec_resize(&ids->by_location, view->profile->code.locations.len));
    for (size_t i = 0; i < ids->by_location.len; i++) {
        ids->by_location.items[i] = REC_NONE;
    }
    for (size_t i = 1; i < nodes->len; i++) {
        uint32_t location = nodes->items[i].location;
        if (ids->by_location.items[location] == REC_NONE) {
            ids->by_location.items[location] = (uint32_t)ids->locations.len;
            TRY(u32_vec_push(&ids->locations, location));
        }
    }
    return u32_vec_push(&ids->locations, REC_NONE); // for allocations without a stack
}

static void
write_frames(struct json_writer *w, const struct profile *profile, const struct frame_ids *ids)
{
    CLEANUP(strbuf_release) struct strbuf name = {0};
    json_key_array(w, "frames");
    for (size_t i = 0; i < ids->locations.len; i++) {
        uint32_t location = ids->locations.items[i];
        strbuf_clear(&name);
        clean_append_function(&name, profile, location, (struct clean_rule){0});
        json_begin_object(w);
        json_key_string(w, "name", strbuf_text(&name));
        const char *file = location != REC_NONE ? profile_location_file(profile, location) : "";
        if (file[0] != '\0') {
            json_key_string(w, "file", file);
            json_key_u64(w, "line", profile_location_get(profile, location)->line);
        }
        json_end_object(w);
    }
    json_end_array(w);
}

// Write the frames of a stack, outermost first.
static void write_sample(struct json_writer *w,
                         const struct call_tree *tree,
                         const struct frame_ids *ids,
                         uint32_t node,
                         struct u32_vec *path)
{
    u32_vec_clear(path);
    for (uint32_t at = node; at != 0; at = tree->nodes.items[at].parent) {
        u32_vec_add(path, ids->by_location.items[tree->nodes.items[at].location]);
    }
    json_begin_array(w);
    if (path->len == 0) {
        json_value_u64(w, ids->locations.len - 1);
    }
    for (size_t i = path->len; i-- > 0;) {
        json_value_u64(w, path->items[i]);
    }
    json_end_array(w);
}

static void
write_profile_name(struct json_writer *w, const struct export_view *view, enum cost cost)
{
    const struct sampling sampling = sampling_of(&view->profile->recording);
    const struct costs *total = tree_costs_total(&view->tree.costs, 0);
    const struct costs errors = sampling_errors(&sampling, total);
    CLEANUP(strbuf_release) struct strbuf name = {0};
    strbuf_append_text(&name, profile_cost_info(view->profile, cost).phrase);
    strbuf_append_text(
        &name, sampling_format_error(costs_get(total, cost), costs_get(&errors, cost)).text);
    json_key_string(w, "name", strbuf_text(&name));
}

static void write_file_name(struct json_writer *w, const struct export_view *view)
{
    const struct rec_meta *meta = &view->profile->recording.meta;
    CLEANUP(strbuf_release) struct strbuf name = {0};
    strbuf_append_text(&name, profile_string(view->profile, meta->command_line));
    estimates_note_append(view, tree_costs_total(&view->tree.costs, 0), NULL, 0, " [", "]", &name);
    json_key_string(w, "name", strbuf_text(&name));
}

static void write_profile(struct json_writer *w,
                          const struct export_view *view,
                          const struct frame_ids *ids,
                          enum cost cost)
{
    const struct call_tree *tree = &view->tree;
    const struct cost_info *info = cost_get_info(cost);
    CLEANUP(u32_vec_release) struct u32_vec path = {0};
    json_begin_object(w);
    json_key_string(w, "type", "sampled");
    write_profile_name(w, view, cost);
    json_key_string(w, "unit", info->unit == COST_UNIT_BYTES ? "bytes" : "none");
    json_key_u64(w, "startValue", 0);
    json_key_u64(w, "endValue", costs_get(tree_costs_total(&tree->costs, 0), cost));
    json_key_array(w, "samples");
    for (uint32_t node = 0; node < tree->nodes.len; node++) {
        if (costs_get(tree_costs_self(&tree->costs, node), cost) > 0) {
            write_sample(w, tree, ids, node, &path);
        }
    }
    json_end_array(w);
    json_key_array(w, "weights");
    for (uint32_t node = 0; node < tree->nodes.len; node++) {
        uint64_t weight = costs_get(tree_costs_self(&tree->costs, node), cost);
        if (weight > 0) {
            json_value_u64(w, weight);
        }
    }
    json_end_array(w);
    json_end_object(w);
}

static enum err write_speedscope(const struct export_view *view, FILE *out)
{
    const struct profile *profile = view->profile;
    CLEANUP(frame_ids_release) struct frame_ids ids = {0};
    TRY(collect_frames(view, &ids));
    struct json_writer w;
    json_to_stream(&w, out, JSON_COMPACT);
    json_key_string(&w, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_key_string(&w, "exporter", "cairn");
    write_file_name(&w, view);
    json_key_u64(&w, "activeProfileIndex", 0);
    json_key_object(&w, "shared");
    write_frames(&w, profile, &ids);
    json_end_object(&w);
    json_key_array(&w, "profiles");
    if (view->cost != COST_COUNT) {
        write_profile(&w, view, &ids, view->cost);
    } else {
        for (size_t i = 0; i < ARRAY_LEN(usual_costs); i++) {
            if (selection_knows(&view->selection, usual_costs[i])) {
                write_profile(&w, view, &ids, usual_costs[i]);
            }
        }
    }
    json_end_array(&w);
    return json_finish(&w);
}

const struct exporter exporter_speedscope = {
    .name = "speedscope",
    .file_suffix = ".speedscope.json",
    .help = "JSON for speedscope.app: a profile for each cost",
    .uses = EXPORT_USES_COST | EXPORT_FOLDS,
    .write = write_speedscope,
};
