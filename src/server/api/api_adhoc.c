// SPDX-License-Identifier: MIT
// api_adhoc: /api/v1/adhoc: what the program reported that is no allocation (cairn_event).
#include "base/compiler.h"
#include "profile/tables/adhoc.h"
#include "server/api/api.h"
#include "server/columns/code_tables.h"
#include "server/columns/columns.h"
#include "server/columns/told_stacks.h"

enum {
    LIMIT_BY_DEFAULT = 100
};

struct event_column {
    const char *key;
    size_t offset; // in struct adhoc_event
};

static const struct event_column event_columns[] = {
    {"events", offsetof(struct adhoc_event, events)},
    {"weight", offsetof(struct adhoc_event, weight)},
};

static void write_numbers(const struct adhoc_list *list, size_t count, struct json_writer *w)
{
    for (size_t c = 0; c < ARRAY_LEN(event_columns); c++) {
        column_begin(w, event_columns[c].key);
        for (size_t i = 0; i < count; i++) {
            const char *field = (const char *)&list->events.items[i] + event_columns[c].offset;
            json_u64(w, *(const uint64_t *)(const void *)field);
        }
        column_end(w);
    }
}

// Who reported them, without the name's own frame.
static MUST_USE enum err tell_stacks(const struct adhoc_list *list,
                                     size_t count,
                                     struct code_tables *tables,
                                     struct told_stacks *told)
{
    for (size_t i = 0; i < count; i++) {
        const struct adhoc_event *event = &list->events.items[i];
        const size_t named = event->count > 0;
        const struct u32_vec locations = {.items = list->locations.items + event->first + named,
                                          .len = event->count - named};
        const struct u32_vec inlined = {.items = list->inlined.items + event->first + named,
                                        .len = event->count - named};
        TRY(told_stacks_add_frames(told, &locations, &inlined, tables));
    }
    return ERR_OK;
}

enum err api_adhoc(struct question *q, struct json_writer *w)
{
    CLEANUP(adhoc_release) struct adhoc_list list = {0};
    CLEANUP(code_tables_release) struct code_tables tables = {.code = q->code};
    CLEANUP(told_stacks_release) struct told_stacks told = {0};
    TRY(adhoc_collect(q->profile, ADHOC_BY_PROCESS, &list));
    const uint64_t limit = request_number(q->request, PARAM_LIMIT, LIMIT_BY_DEFAULT);
    const size_t count = limit != 0 && limit < list.events.len ? limit : list.events.len;
    json_key_u64(w, "total_count", list.events.len);
    table_begin(w, "entries", count);
    column_begin(w, "name");
    for (size_t i = 0; i < count; i++) {
        json_string(w, list.events.items[i].name);
    }
    column_end(w);
    column_begin(w, "pid");
    for (size_t i = 0; i < count; i++) {
        json_u64(w, q->profile->recording.processes[list.events.items[i].process].pid);
    }
    column_end(w);
    write_numbers(&list, count, w);
    TRY(tell_stacks(&list, count, &tables, &told));
    told_stacks_write_columns(&told, 0, count, w);
    table_end(w);
    told_stacks_write_frames(&told, w);
    return code_tables_write(&tables, w);
}
