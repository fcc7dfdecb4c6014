// SPDX-License-Identifier: MIT
#include "host/threads/kept_results.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "host/os/mutex.h"

void kept_results_init(struct kept_results *kept, size_t most_bytes)
{
    kept->most_bytes = most_bytes;
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
    kept->bytes = 0;
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

// Whether there was room for so many bytes, which are then counted.
static bool take_room(struct kept_results *kept, size_t bytes)
{
    mutex_lock(&kept->mutex);
    const bool has_room = bytes <= kept->most_bytes - kept->bytes;
    kept->bytes += has_room ? bytes : 0;
    mutex_unlock(&kept->mutex);
    return has_room;
}

// Build the result into `out`, and keep it if there is room. The caller holds the entry's mutex.
static MUST_USE enum err
build(struct kept_results *kept, struct kept_entry *entry, const void *source, void *out)
{
    const struct kept_kind *kind = entry->kind;
    void *value = malloc(kind->bytes);
    if (value == NULL) {
        return ERR_NO_MEMORY;
    }
    const enum err outcome = kind->build(source, out);
    if (outcome == ERR_OK) {
        const size_t owned_bytes = kind->weigh != NULL ? kind->weigh(out) : 0;
        entry->is_too_large = !take_room(kept, kind->bytes + owned_bytes);
    }
    if (outcome != ERR_OK || entry->is_too_large) {
        free(value);
        return outcome;
    }
    memcpy(value, out, kind->bytes);
    entry->value = value;
    return ERR_OK;
}

enum err kept_results_get(struct kept_results *kept,
                          const struct kept_kind *kind,
                          const void *source,
                          void *out,
                          bool *is_lent)
{
    if (kept == NULL) {
        *is_lent = false;
        return kind->build(source, out);
    }
    struct kept_entry *entry = entry_of(kept, kind);
    if (entry == NULL) {
        return ERR_LIMIT;
    }
    enum err outcome = ERR_OK;
    mutex_lock(&entry->mutex);
    const bool was_too_large = entry->is_too_large;
    if (entry->value != NULL) {
        memcpy(out, entry->value, kind->bytes);
    } else if (!was_too_large) {
        outcome = build(kept, entry, source, out);
    }
    *is_lent = entry->value != NULL;
    mutex_unlock(&entry->mutex);
    return was_too_large ? kind->build(source, out) : outcome;
}
