// SPDX-License-Identifier: MIT
#include "host/threads/kept_results.h"

#include <stdlib.h>

#include "base/compiler.h"
#include "host/os/mutex.h"

void kept_results_init(struct kept_results *kept)
{
    (void)pthread_mutex_init(&kept->mutex, NULL); // cannot fail with default attributes
    for (size_t i = 0; i < KEPT_KINDS_MAX; i++) {
        (void)pthread_mutex_init(&kept->entries[i].mutex, NULL);
    }
}

void kept_results_release(struct kept_results *kept)
{
    for (size_t i = 0; i < KEPT_KINDS_MAX; i++) {
        struct kept_entry *entry = &kept->entries[i];
        if (entry->value != NULL) {
            entry->kind->release(entry->value);
            free(entry->value);
        }
        *entry = (struct kept_entry){0};
    }
}

// Find the entry of a kind, or assign a free one to it. NULL: there are too many kinds.
static struct kept_entry *entry_of(struct kept_results *kept, const struct kept_kind *kind)
{
    struct kept_entry *found = NULL;
    mutex_lock(&kept->mutex);
    for (size_t i = 0; found == NULL && i < KEPT_KINDS_MAX; i++) {
        struct kept_entry *entry = &kept->entries[i];
        if (entry->kind == NULL || entry->kind == kind) {
            entry->kind = kind;
            found = entry;
        }
    }
    mutex_unlock(&kept->mutex);
    return found;
}

static MUST_USE enum err build(const void *source, struct kept_entry *entry)
{
    void *value = calloc(1, entry->kind->bytes);
    if (value == NULL) {
        return ERR_NO_MEMORY;
    }
    const enum err outcome = entry->kind->build(source, value);
    if (outcome != ERR_OK) {
        free(value);
        return outcome;
    }
    entry->value = value;
    return ERR_OK;
}

enum err kept_results_get(struct kept_results *kept,
                          const struct kept_kind *kind,
                          const void *source,
                          const void **out)
{
    struct kept_entry *entry = entry_of(kept, kind);
    if (entry == NULL) {
        return ERR_LIMIT;
    }
    mutex_lock(&entry->mutex);
    const enum err outcome = entry->value != NULL ? ERR_OK : build(source, entry);
    if (outcome == ERR_OK) {
        *out = entry->value;
    }
    mutex_unlock(&entry->mutex);
    return outcome;
}
