// SPDX-License-Identifier: MIT
#include "host/containers/map_u64.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "host/containers/memory_end.h"

enum {
    FIRST_SLOT_COUNT = 16
};

void map_u64_release(struct map_u64 *map)
{
    free(map->keys);
    free(map->values);
    *map = (struct map_u64){0};
}

void map_u64_clear(struct map_u64 *map)
{
    if (map->used_count != 0) {
        memset(map->keys, 0, map->slot_count * sizeof(*map->keys));
    }
    map->used_count = 0;
    map->has_zero = false;
}

size_t map_u64_count(const struct map_u64 *map)
{
    return map->used_count + (map->has_zero ? 1 : 0);
}

// Return the slot at which the search for `key` begins.
static size_t first_slot(size_t slot_count, uint64_t key)
{
    return hash_mix(key) & (slot_count - 1);
}

// Return the slot that holds `key`, or the free one for it. A free slot always exists.
static size_t slot_of(const uint64_t *keys, size_t slot_count, uint64_t key)
{
    size_t slot = first_slot(slot_count, key);
    while (keys[slot] != 0 && keys[slot] != key) {
        slot = (slot + 1) & (slot_count - 1);
    }
    return slot;
}

uint32_t *map_u64_find(struct map_u64 *map, uint64_t key)
{
    if (key == 0) {
        return map->has_zero ? &map->zero_value : NULL;
    }
    if (map->slot_count == 0) {
        return NULL;
    }
    size_t slot = slot_of(map->keys, map->slot_count, key);
    return map->keys[slot] == key ? &map->values[slot] : NULL;
}

bool map_u64_get(struct map_u64 *map, uint64_t key, uint32_t *out)
{
    const uint32_t *value = map_u64_find(map, key);
    if (value != NULL) {
        *out = *value;
    }
    return value != NULL;
}

void map_u64_prefetch(const struct map_u64 *map, uint64_t key)
{
    if (map->slot_count != 0) {
        const size_t slot = first_slot(map->slot_count, key);
        __builtin_prefetch(map->keys + slot);
        __builtin_prefetch(map->values + slot);
    }
}

static enum err grow_table(struct map_u64 *map)
{
    size_t count = map->slot_count != 0 ? map->slot_count * 2 : FIRST_SLOT_COUNT;
    uint64_t *keys = calloc(count, sizeof(*keys));
    uint32_t *values = calloc(count, sizeof(*values));
    if (keys == NULL || values == NULL) {
        free(keys);
        free(values);
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < map->slot_count; i++) {
        if (map->keys[i] != 0) {
            size_t slot = slot_of(keys, count, map->keys[i]);
            keys[slot] = map->keys[i];
            values[slot] = map->values[i];
        }
    }
    free(map->keys);
    free(map->values);
    map->keys = keys;
    map->values = values;
    map->slot_count = count;
    return ERR_OK;
}

enum err map_u64_put(struct map_u64 *map, uint64_t key, uint32_t value)
{
    if (key == 0) {
        map->has_zero = true;
        map->zero_value = value;
        return ERR_OK;
    }
    if (map->used_count >= map->slot_count / 3 * 2) {
        TRY(grow_table(map));
    }
    size_t slot = slot_of(map->keys, map->slot_count, key);
    if (map->keys[slot] == 0) {
        map->keys[slot] = key;
        map->used_count++;
    }
    map->values[slot] = value;
    return ERR_OK;
}

enum err map_u64_number(struct map_u64 *map, uint64_t key, size_t next, uint32_t *out)
{
    const uint32_t *known = map_u64_find(map, key);
    if (known != NULL) {
        *out = *known;
        return ERR_OK;
    }
    if (next >= UINT32_MAX) {
        return ERR_LIMIT;
    }
    TRY(map_u64_put(map, key, (uint32_t)next));
    *out = (uint32_t)next;
    return ERR_OK;
}

uint32_t map_u64_add(struct map_u64 *map, uint64_t key, size_t next)
{
    uint32_t value = (uint32_t)next;
    const enum err err = map_u64_number(map, key, next, &value);
    if (err != ERR_OK) {
        memory_end_note(err);
    }
    return value;
}

// Close the gap at `slot`: a later entry moves into it unless its home slot is after the gap.
static void shift_back(struct map_u64 *map, size_t slot)
{
    size_t mask = map->slot_count - 1;
    for (size_t next = (slot + 1) & mask; map->keys[next] != 0; next = (next + 1) & mask) {
        size_t home = first_slot(map->slot_count, map->keys[next]);
        if (((next - home) & mask) >= ((next - slot) & mask)) {
            map->keys[slot] = map->keys[next];
            map->values[slot] = map->values[next];
            slot = next;
        }
    }
    map->keys[slot] = 0;
}

bool map_u64_remove(struct map_u64 *map, uint64_t key)
{
    if (key == 0) {
        bool was_there = map->has_zero;
        map->has_zero = false;
        return was_there;
    }
    if (map->slot_count == 0) {
        return false;
    }
    size_t slot = slot_of(map->keys, map->slot_count, key);
    if (map->keys[slot] == 0) {
        return false;
    }
    shift_back(map, slot);
    map->used_count--;
    return true;
}

bool map_u64_next(const struct map_u64 *map, size_t *position, uint64_t *key, uint32_t *value)
{
    for (size_t at = *position; at < map->slot_count; at++) {
        if (map->keys[at] != 0) {
            *key = map->keys[at];
            *value = map->values[at];
            *position = at + 1;
            return true;
        }
    }
    bool zero_is_left = map->has_zero && *position <= map->slot_count;
    *position = map->slot_count + 1;
    if (zero_is_left) {
        *key = 0;
        *value = map->zero_value;
    }
    return zero_is_left;
}
