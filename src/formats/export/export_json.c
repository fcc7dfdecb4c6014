// SPDX-License-Identifier: MIT
// export_json: the whole profile as JSON, for programs: views of src/views_json in columns.
//
// docs/format/json.md describes the document. Context: H.
#include "base/compiler.h"
#include "formats/export/exporter.h"
#include "profile/time/cut_timeline.h"
#include "views_json/views/views.h"

static uint64_t known_costs(const struct selection *selection)
{
    uint64_t known = 0;
    for (int cost = 0; cost < COST_COUNT; cost++) {
        known |= (uint64_t)selection_knows(selection, (enum cost)cost) << cost;
    }
    return known;
}

static MUST_USE enum err write_timeline(struct view *view)
{
    const struct selection *selection = view->selection;
    CLEANUP(cut_timeline_release) struct cut_timeline timeline = {0};
    TRY(cut_timeline_build(selection, &timeline));
    json_key_u64(view->w, "slice_ms", timeline.slice_ms);
    view_points(view, &(struct points_options){
                          .points = &timeline.points,
                          .slice_ms = timeline.slice_ms,
                          .known = cut_timeline_is_known(selection) ? view->costs : 0,
                      });
    return ERR_OK;
}

static MUST_USE enum err write_document(struct view *view, const struct export_view *export)
{
    static const struct summary_options no_lists = {0};
    json_key_string(view->w, "format", "cairn-profile");
    json_key_u64(view->w, "version", VIEW_JSON_VERSION);
    // Its end writes `code` for what refers to it until then: nothing else may.
    VIEW_OBJECT(view, "adhoc", view_adhoc(view, 0));
    TRY(view_selection(view, NULL));
    TRY(view_summary(view, &no_lists));
    view_suppressions(view);
    TRY(write_timeline(view));
    TRY(view_processes(view));
    TRY(view_threads(view));
    TRY(view_modules(view));
    view_rows(view, &export->tree);
    return view_end(view);
}

static enum err write_json(const struct export_view *export, FILE *out)
{
    struct json_writer w;
    CLEANUP(code_union_release) struct code_union code = {0};
    CLEANUP(view_release)
    struct view view = {
        .profile = export->profile,
        .code = &code,
        .selection = &export->selection,
        .filter = export->filter,
        .costs = known_costs(&export->selection),
        .w = &w,
        .layout = VIEW_COLUMNS,
    };
    TRY(code_union_build(export->profile, NULL, &code));
    json_to_stream(&w, out, JSON_COMPACT);
    TRY(write_document(&view, export));
    return json_finish(&w);
}

const struct exporter exporter_json = {
    .name = "json",
    .file_suffix = ".json",
    .help = "the whole profile for programs",
    .write = write_json,
};
