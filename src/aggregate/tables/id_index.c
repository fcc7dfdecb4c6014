// SPDX-License-Identifier: MIT
// id_index: see the header.
#include "aggregate/tables/id_index.h"

#include <stdlib.h>
#include <string.h>

enum {
    SLOTS_MIN = 64,
};

void id_index_release(struct id_index *index)
{
    free(index->slots);
    *index = (struct id_index){0};
}

void id_index_clear(struct id_index *index)
{
    index->used_count = 0;
    if (index->slot_count > 0) {
        memset(index->slots, 0xff, index->slot_count * sizeof(*index->slots)); // ID_NONE everywhere
    }
}

static void put(struct id_index *index, uint64_t hash, uint32_t id)
{
    size_t at = id_index_start(index, hash);
    while (index->slots[at] != ID_NONE) {
        at = id_index_next(index, at);
    }
    index->slots[at] = id;
    index->used_count++;
}

static enum err
grow(struct id_index *index, uint64_t (*hash_of)(const void *, uint32_t), const void *things)
{
    struct id_index grown = {.slot_count =
                                 index->slot_count == 0 ? SLOTS_MIN : index->slot_count * 2};
    grown.slots = malloc(grown.slot_count * sizeof(*grown.slots));
    if (grown.slots == NULL) {
        return ERR_NO_MEMORY;
    }
    memset(grown.slots, 0xff, grown.slot_count * sizeof(*grown.slots)); // ID_NONE everywhere
    for (size_t i = 0; i < index->slot_count; i++) {
        if (index->slots[i] != ID_NONE) {
            put(&grown, hash_of(things, index->slots[i]), index->slots[i]);
        }
    }
    free(index->slots);
    *index = grown;
    return ERR_OK;
}

enum err id_index_add(struct id_index *index,
                      uint64_t hash,
                      uint32_t id,
                      uint64_t (*hash_of)(const void *things, uint32_t id),
                      const void *things)
{
    if (index->used_count * 4 >= index->slot_count * 3) {
        TRY(grow(index, hash_of, things));
    }
    put(index, hash, id);
    return ERR_OK;
}
