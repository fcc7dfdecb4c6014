// SPDX-License-Identifier: MIT
// view_finding_changes: what became of each finding since the old recording.
#include "base/compiler.h"
#include "profile/compare/diff_verdict.h"
#include "profile/findings/finding_changes.h"
#include "views_json/views/views.h"

struct finding_change_row {
    const char *kind;
    const char *class;
    const char *sentence;
    const char *confidence;
    const char *look;
    uint32_t pid;
    uint32_t thread_id;
    struct place place;
    struct diff_change change;
};

DEFINE_VEC(finding_change_row_vec, struct finding_change_row);

static const struct column change_columns[] = {
    COLUMN(CELL_TEXT, finding_change_row, kind),
    COLUMN(CELL_TEXT, finding_change_row, class),
    COLUMN_AS("old", CELL_DOUBLE, finding_change_row, change.old),
    COLUMN_AS("new", CELL_DOUBLE, finding_change_row, change.new),
    COLUMN_AS("change", CELL_DOUBLE, finding_change_row, change.change),
    COLUMN_AS("change_error", CELL_DOUBLE, finding_change_row, change.change_error),
    COLUMN(CELL_LOCATION, finding_change_row, place),
    COLUMN(CELL_TEXT, finding_change_row, sentence),
    COLUMN(CELL_TEXT, finding_change_row, confidence),
    COLUMN(CELL_TEXT, finding_change_row, look),
    COLUMN(CELL_U32, finding_change_row, pid),
    COLUMN(CELL_U32, finding_change_row, thread_id),
};

void view_finding_changes(struct view *view, const char *key, const struct finding_changes *changes)
{
    CLEANUP(finding_change_row_vec_release) struct finding_change_row_vec rows = {0};
    for (size_t i = 0; i < changes->items.len; i++) {
        const struct finding_change *change = &changes->items.items[i];
        const enum side side = finding_change_side(change);
        const struct finding *finding = change->of[side];
        const struct finding_change_row row = {
            .kind = finding_kind_name(finding->kind),
            .class = diff_class_name(change->class),
            .sentence = findings_sentence(&changes->findings[side], finding),
            .confidence = growth_confidence_name(finding->confidence),
            .look = finding->look,
            .pid = finding->pid,
            .thread_id = finding->thread_id,
            .place = {side, finding->location},
            .change = change->change,
        };
        finding_change_row_vec_add(&rows, row);
    }
    view_table(view, &TABLE(key, change_columns, rows.items, rows.len));
}

enum err view_findings_compared(struct view *view, const char *key)
{
    static const struct diff_units plain = {.sides = {1, 1}};
    CLEANUP(diff_release) struct diff diff = {0};
    CLEANUP(finding_changes_release) struct finding_changes changes = {0};
    if (view->old_selection == NULL) {
        json_key_null(view->w, key);
        return ERR_OK;
    }
    TRY(diff_build(view->code, view->selection, view->old_selection, plain, &diff));
    TRY(finding_changes_build(&diff, view->selection, view->old_selection,
                              (double)DIFF_THRESHOLD_USUAL / DIFF_THRESHOLD_UNIT, &changes));
    view_finding_changes(view, key, &changes);
    return ERR_OK;
}
