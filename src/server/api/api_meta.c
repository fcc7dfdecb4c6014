// SPDX-License-Identifier: MIT
// api_meta: /api/v1/meta: the recordings that are served, and their capabilities.
#include "base/compiler.h"
#include "host/os/file.h"
#include "server/api/api.h"
#include "views_json/views/view_parts.h"
#include "views_json/views/views.h"

static void write_file(const struct opened *opened, struct json_writer *w)
{
    json_key_object(w, "file");
    json_key_string(w, "name", path_file_name(opened->path));
    json_key_string(w, "path", opened->path);
    json_key_u64(w, "bytes", opened->bytes);
    json_end_object(w);
}

static MUST_USE enum err write_baseline(const struct query *q, struct json_writer *w)
{
    const struct opened *baseline = q->snapshot->sides[SIDE_OLD];
    if (baseline == NULL) {
        json_key_null(w, "baseline");
        return ERR_OK;
    }
    json_key_object(w, "baseline");
    write_file(baseline, w);
    struct view view = {.profile = baseline->profile, .w = w, .layout = VIEW_COLUMNS};
    TRY(view_run(&view));
    json_key_u64(w, "runtime_ms", baseline->whole.runtime_ms);
    view_damage(&view);
    json_end_object(w);
    return ERR_OK;
}

static void write_capabilities(const struct query *q, struct json_writer *w)
{
    json_key_object(w, "capabilities");
    for (int i = 0; i < CAPABILITY_COUNT; i++) {
        enum capability capability = (enum capability)i;
        json_key_bool(w, capability_name(capability), query_can(q, capability));
    }
    json_end_object(w);
}

struct cost_row {
    const char *key;
    const char *unit;
    const char *phrase;
};

static const struct column cost_columns[] = {
    COLUMN(CELL_TEXT, cost_row, key),
    COLUMN(CELL_TEXT, cost_row, unit),
    COLUMN(CELL_TEXT, cost_row, phrase),
};

static void write_cost_table(struct view *view)
{
    struct cost_row rows[COST_COUNT];
    for (int cost = 0; cost < COST_COUNT; cost++) {
        const struct cost_info *info = cost_get_info((enum cost)cost);
        rows[cost] = (struct cost_row){
            .key = info->key,
            .unit = info->unit == COST_UNIT_BYTES ? "bytes" : "calls",
            .phrase = info->phrase,
        };
    }
    view_table(view, &TABLE("costs", cost_columns, rows, ARRAY_LEN(rows)));
}

enum err api_meta(struct query *q)
{
    const struct recording *recording = &q->profile->recording;
    struct json_writer *w = q->view.w;
    json_key_string(w, "tool_version", q->settings->tool_version);
    write_file(q->opened, w);
    json_key_string(w, "state", profile_state_name(q->profile));
    view_damage(&q->view);
    TRY(view_run(&q->view));
    json_key_u64(w, "runtime_ms", q->opened->whole.runtime_ms);
    json_key_u64(w, "slice_ms", recording->slice_ms);
    json_key_u64(w, "slice_count", recording->slice_count);
    view_marks(&q->view);
    json_key_u64(w, "processes", q->opened->whole.processes);
    json_key_u64(w, "threads", q->opened->whole.threads);
    TRY(write_baseline(q, w));
    write_capabilities(q, w);
    write_cost_table(&q->view);
    json_key_string(w, "editor", q->settings->editor);
    return ERR_OK;
}
