// SPDX-License-Identifier: MIT
// view_adhoc: events that the program reported with cairn_event. They are not allocations.
#include "base/compiler.h"
#include "profile/tables/adhoc.h"
#include "views_json/views/views.h"

struct event_row {
    const char *name;
    uint32_t pid;
    uint64_t events;
    uint64_t weight;
    struct frame_list frames; // without the frame that is the name
};

DEFINE_VEC(event_row_vec, struct event_row);

static const struct column event_columns[] = {
    COLUMN(CELL_TEXT, event_row, name),     COLUMN(CELL_U32, event_row, pid),
    COLUMN(CELL_U64, event_row, events),    COLUMN(CELL_U64, event_row, weight),
    COLUMN(CELL_FRAMES, event_row, frames),
};

enum err view_adhoc(struct view *view, size_t limit)
{
    CLEANUP(adhoc_release) struct adhoc_list list = {0};
    CLEANUP(event_row_vec_release) struct event_row_vec rows = {0};
    TRY(adhoc_collect(view->profile, ADHOC_BY_PROCESS, &list));
    for (size_t i = 0; i < list.events.len && (limit == 0 || i < limit); i++) {
        const struct adhoc_event *event = &list.events.items[i];
        const size_t named = event->count > 0;
        const struct event_row row = {
            .name = event->name,
            .pid = view->profile->recording.processes[event->process].pid,
            .events = event->events,
            .weight = event->weight,
            .frames = {.locations = list.locations.items + event->first + named,
                       .inlined = list.inlined.items + event->first + named,
                       .count = event->count - named},
        };
        TRY(event_row_vec_push(&rows, row));
    }
    json_key_u64(view->w, "total_count", list.events.len);
    view_table(view, &TABLE("entries", event_columns, rows.items, rows.len));
    return ERR_OK;
}
