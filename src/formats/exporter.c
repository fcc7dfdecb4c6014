// SPDX-License-Identifier: MIT
// exporter: the table of formats, and the view that all of them write. See exporter.h.
#include "formats/exporter.h"

#include <string.h>

#include "formats/export_formats.h"

const struct exporter *const exporters[] = {
    &exporter_folded, &exporter_pprof,     &exporter_speedscope, &exporter_massif,
    &exporter_dhat,   &exporter_heaptrack, &exporter_callgrind,  &exporter_csv,
    &exporter_json,   &exporter_svg,       &exporter_sqlite,     NULL,
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

enum err export_view_build(const struct profile *profile,
                           const struct filter *filter,
                           enum cost cost,
                           enum export_moment moment,
                           struct export_view *out,
                           struct err_info *info)
{
    CLEANUP(export_view_release)
    struct export_view view = {
        .profile = profile, .filter = filter, .cost = cost, .moment = moment};
    TRY(profile_select(profile, filter, &view.selection, info));
    enum err problem =
        call_tree_build(&view.selection, CALL_TREE_TOP_DOWN, CALL_TREE_BY_LOCATION, &view.tree);
    if (problem == ERR_OK) {
        problem = call_tree_add_up(&view.tree);
    }
    if (problem != ERR_OK) {
        return err_set(info, problem, "not enough memory for the export");
    }
    *out = view;
    view = (struct export_view){0};
    return ERR_OK;
}

void export_view_release(struct export_view *view)
{
    selection_release(&view->selection);
    call_tree_release(&view->tree);
}
