// SPDX-License-Identifier: MIT
// exporter: the view that all formats write. See exporter.h.
#include "formats/export/exporter.h"

#include <string.h>

#include "base/compiler.h"
#include "host/containers/memory_end.h"

// Check that the requested figures are known, and choose the unspecified ones.
static MUST_USE enum err choose_figures(struct export_view *view,
                                        const struct export_request *request,
                                        struct err_info *info)
{
    static const enum cost usual[] = {COST_PEAK_BYTES, COST_LEAKED_BYTES, COST_ALLOCATED_BYTES};
    const struct selection *selection = &view->selection;
    const struct exporter *exporter = request->exporter;
    for (int cost = 0; cost < COST_COUNT; cost++) {
        if ((exporter->needs >> cost & 1) != 0) {
            TRY(selection_need(selection, exporter->name, (enum cost)cost, info));
        }
    }
    if ((exporter->uses & EXPORT_USES_SLICES) != 0 && view->profile->recording.slice_ms == 0) {
        return err_set(info, ERR_UNSUPPORTED, "%s: the recording has no time line", exporter->name);
    }
    if ((exporter->uses & EXPORT_USES_EVENTS) != 0 && view->profile->recording.adhoc_count == 0) {
        return err_set(info, ERR_UNSUPPORTED, "%s: the program reported no events (cairn_event)",
                       exporter->name);
    }
    view->usual_cost = view->cost;
    for (size_t i = 0; i < ARRAY_LEN(usual) && view->usual_cost == COST_COUNT; i++) {
        view->usual_cost = selection_knows(selection, usual[i]) ? usual[i] : COST_COUNT;
    }
    if ((exporter->uses & EXPORT_USES_COST) != 0) {
        bool has_cost = view->usual_cost != COST_COUNT;
        TRY(selection_need(selection, exporter->name, has_cost ? view->usual_cost : COST_PEAK_BYTES,
                           info));
    }
    if (request->moment == EXPORT_AT_ANY) {
        bool has_peak = selection_knows(selection, COST_PEAK_BYTES);
        view->moment = has_peak ? EXPORT_AT_PEAK : EXPORT_AT_END;
    } else if ((exporter->uses & EXPORT_USES_MOMENT) != 0) {
        bool is_peak = request->moment == EXPORT_AT_PEAK;
        TRY(selection_need(selection, is_peak ? "--at peak" : "--at",
                           is_peak ? COST_PEAK_BYTES : COST_LEAKED_BYTES, info));
    }
    return ERR_OK;
}

enum err export_view_build(const struct profile *profile,
                           const struct filter *filter,
                           const struct export_request *request,
                           struct export_view *out,
                           struct err_info *info)
{
    const bool folds = (request->exporter->uses & EXPORT_FOLDS) != 0 && !request->shows_wrappers;
    CLEANUP(export_view_release)
    struct export_view view = {.profile = profile,
                               .filter = filter,
                               .frames = folds ? CALL_TREE_SITES : CALL_TREE_ALL,
                               .cost = request->cost,
                               .moment = request->moment,
                               .packing = request->packing,
                               .changes = request->changes,
                               .size = request->size,
                               .append_labels = request->append_labels,
                               .is_now = request->is_now};
    TRY(profile_select(profile, filter, &view.selection, info));
    TRY(choose_figures(&view, request, info));
    if (!request->exporter->is_flat) {
        TRY(call_tree_build_frames(&view.selection, view.frames, &view.tree));
    }
    *out = TAKE(view);
    return ERR_OK;
}

enum err export_write(const struct exporter *exporter, const struct export_view *view, FILE *out)
{
    TRY(exporter->write(view, out));
    return memory_end_result();
}

void export_view_release(struct export_view *view)
{
    selection_release(&view->selection);
    call_tree_release(&view->tree);
}

const struct exporter *const exporters[] = {
    &exporter_folded,   &exporter_pprof,      &exporter_speedscope, &exporter_massif,
    &exporter_dhat,     &exporter_dhat_adhoc, &exporter_heaptrack,  &exporter_callgrind,
    &exporter_csv,      &exporter_json,       &exporter_svg,        &exporter_sqlite,
    &exporter_perfetto, &exporter_prometheus, &exporter_sarif,      NULL,
};

const struct exporter *exporter_find(const char *name)
{
    for (const struct exporter *const *at = exporters; *at != NULL; at++) {
        if (strcmp((*at)->name, name) == 0) {
            return *at;
        }
    }
    return NULL;
}
