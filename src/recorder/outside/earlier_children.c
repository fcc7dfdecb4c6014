// SPDX-License-Identifier: MIT
#include "recorder/outside/earlier_children.h"

#include <inttypes.h>

#include "host/os/process_search.h"

enum {
    NAMED_MAX = 8
};

enum err earlier_children_note(pid_t pid, struct u32_vec *out)
{
    const enum err err = process_search_children(pid, out);
    return err == ERR_NO_MEMORY ? err : ERR_OK; // else it has ended, or cannot be seen now
}

static bool is_among(uint32_t pid, const uint32_t *pids, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (pids[i] == pid) {
            return true;
        }
    }
    return false;
}

enum err earlier_children_describe(const struct u32_vec *noted,
                                   pid_t pid,
                                   const uint32_t *chosen,
                                   size_t chosen_count,
                                   struct strbuf *out,
                                   size_t *out_count)
{
    CLEANUP(u32_vec_release) struct u32_vec children = {0};
    CLEANUP(strbuf_release) struct strbuf pids = {0};
    size_t count = 0;
    TRY(earlier_children_note(pid, &children));
    for (size_t i = 0; i < children.len; i++) {
        const uint32_t child = children.items[i];
        if (is_among(child, noted->items, noted->len) && !is_among(child, chosen, chosen_count) &&
            count++ < NAMED_MAX) {
            strbuf_printf(&pids, ",%" PRIu32, child);
        }
    }
    *out_count = count;
    if (count > 0) {
        strbuf_printf(out, "%zu %s of process %d, which ran before; -p %d%s%s records %s, too",
                      count, count == 1 ? "child" : "children", (int)pid, (int)pid,
                      strbuf_text(&pids), count > NAMED_MAX ? ",..." : "",
                      count == 1 ? "it" : "them");
    }
    return strbuf_result(out);
}
