// SPDX-License-Identifier: MIT
#include "aggregate/tables/mark_list.h"

#include "base/compiler.h"
#include "base/minmax.h"

void mark_list_release(struct mark_list *list)
{
    rec_mark_vec_release(&list->marks);
}

enum err mark_list_add(struct mark_list *list,
                       struct string_table *strings,
                       uint64_t time_ms,
                       enum rec_mark_kind kind,
                       struct bytes text)
{
    struct rec_mark mark = {.time_ms = time_ms, .kind = kind};
    if (list->marks.len >= MARKS_MAX) {
        return ERR_LIMIT;
    }
    if (text.len > 0) {
        text.len = min_u64(text.len, MARK_TEXT_BYTES_MAX);
        TRY(string_table_intern_prefix(strings, text, &mark.text));
    }
    TRY(rec_mark_vec_push(&list->marks, mark));
    size_t at = list->marks.len - 1;
    for (; at > 0 && list->marks.items[at - 1].time_ms > time_ms; at--) {
        list->marks.items[at] = list->marks.items[at - 1];
    }
    list->marks.items[at] = mark;
    return ERR_OK;
}

enum err mark_list_add_of_program(struct mark_list *list,
                                  struct string_table *strings,
                                  uint64_t time_ms,
                                  enum rec_mark_kind kind,
                                  struct bytes text)
{
    enum err problem = mark_list_add(list, strings, time_ms, kind, text);
    if (problem == ERR_LIMIT) {
        list->refused++;
        return ERR_OK;
    }
    return problem;
}
