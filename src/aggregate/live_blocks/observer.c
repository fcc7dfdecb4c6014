// SPDX-License-Identifier: MIT
#include "aggregate/live_blocks/observer.h"

static uint32_t find_observer(const struct observer_list *list, const void *context)
{
    uint32_t at = 0;
    while (at < list->count && list->items[at].context != context) {
        at++;
    }
    return at;
}

void observer_add(struct observer_list *list, struct observer observer)
{
    const uint32_t at = find_observer(list, observer.context);
    if (at == list->count && at < OBSERVERS_MAX) {
        list->items[list->count++] = observer;
    }
}

void observer_remove(struct observer_list *list, const void *context)
{
    const uint32_t at = find_observer(list, context);
    if (at == list->count) {
        return;
    }
    list->count--;
    for (uint32_t i = at; i < list->count; i++) {
        list->items[i] = list->items[i + 1];
    }
}

enum err observers_tell(const struct observer_list *list, const struct observed_event *what)
{
    for (uint32_t i = 0; i < list->count; i++) {
        TRY(list->items[i].observe(list->items[i].context, what));
    }
    return ERR_OK;
}
