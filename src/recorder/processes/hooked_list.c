// SPDX-License-Identifier: MIT
#include "recorder/processes/hooked_list.h"

#include <stdbool.h>

static struct rec_hook *find_entry(struct rec_hook_vec *list, const struct rec_hook *wanted)
{
    for (size_t i = 0; i < list->len; i++) {
        struct rec_hook *entry = list->items + i;
        if (entry->function == wanted->function && entry->module == wanted->module &&
            entry->allocator == wanted->allocator && entry->reason == wanted->reason) {
            return entry;
        }
    }
    return NULL;
}

static enum err add_one(struct rec_hook_vec *list, const struct rec_hook *hook)
{
    const struct rec_hook rest = {0};
    struct rec_hook *entry = find_entry(list, hook);
    const bool is_full = entry == NULL && list->len >= HOOKED_FUNCTIONS_MAX;
    entry = is_full ? find_entry(list, &rest) : entry;
    if (entry == NULL) {
        TRY(rec_hook_vec_push(list, is_full ? rest : *hook));
        entry = list->items + list->len - 1;
    }
    entry->processes++;
    return ERR_OK;
}

enum err hooked_list_add(struct rec_hook_vec *list,
                         struct aggregator *aggregator,
                         const struct attach_hook_vec *hooks,
                         const struct strbuf *texts)
{
    struct string_table *strings = &aggregator->strings;
    for (size_t i = 0; i < hooks->len; i++) {
        const struct attach_hook *from = hooks->items + i;
        struct rec_hook hook = {0};
        TRY(string_table_intern_text(strings, strbuf_text(texts) + from->module, &hook.module));
        TRY(string_table_intern_text(strings, strbuf_text(texts) + from->name, &hook.function));
        TRY(string_table_intern_text(strings, from->allocator, &hook.allocator));
        TRY(string_table_intern_text(strings, from->reason, &hook.reason));
        TRY(add_one(list, &hook));
    }
    return ERR_OK;
}

// Append the functions of the module at `first` that are hooked. Return the first hook behind it.
static size_t describe_module(const struct attach_hook_vec *hooks,
                              const struct strbuf *texts,
                              size_t first,
                              struct strbuf *out)
{
    const size_t module = hooks->items[first].module;
    const char *allocator = "";
    size_t shown = 0;
    size_t i = first;
    for (; i < hooks->len && hooks->items[i].module == module; i++) {
        const struct attach_hook *hook = hooks->items + i;
        allocator = hook->allocator[0] != '\0' ? hook->allocator : allocator;
        if (hook->reason[0] == '\0') {
            strbuf_printf(out, "%s%s", shown++ > 0 ? ", " : "", strbuf_text(texts) + hook->name);
        }
    }
    if (shown > 0) {
        strbuf_printf(out, " of '%s'", strbuf_text(texts) + module);
    }
    if (shown > 0 && allocator[0] != '\0') {
        strbuf_printf(out, " (%s)", allocator);
    }
    strbuf_append_text(out, shown > 0 ? "\n" : "");
    return i;
}

void hooked_list_describe(const struct attach_hook_vec *hooks,
                          const struct strbuf *texts,
                          struct strbuf *out)
{
    for (size_t i = 0; i < hooks->len;) {
        i = describe_module(hooks, texts, i, out);
    }
}
