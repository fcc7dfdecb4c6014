// SPDX-License-Identifier: MIT
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

static void put_id(struct id_index *index, uint64_t hash, uint32_t id)
{
    size_t at = hash & (index->slot_count - 1);
    while (index->slots[at] != ID_NONE) {
        at = (at + 1) & (index->slot_count - 1);
    }
    index->slots[at] = id;
    index->used_count++;
}

static enum err grow_table(struct id_index *index, const struct id_kind *kind, const char *things)
{
    struct id_index grown = {.slot_count =
                                 index->slot_count == 0 ? SLOTS_MIN : index->slot_count * 2};
    grown.slots = malloc(grown.slot_count * sizeof(*grown.slots));
    if (grown.slots == NULL) {
        return ERR_NO_MEMORY;
    }
    memset(grown.slots, 0xff, grown.slot_count * sizeof(*grown.slots)); // ID_NONE everywhere
    for (size_t i = 0; i < index->slot_count; i++) {
        const uint32_t id = index->slots[i];
        if (id != ID_NONE) {
            put_id(&grown, kind->hash(things + id * kind->thing_bytes), id);
        }
    }
    free(index->slots);
    *index = grown;
    return ERR_OK;
}

enum err id_index_add(struct id_index *index,
                      const struct id_kind *kind,
                      const void *things,
                      const void *thing,
                      uint32_t id)
{
    if (index->used_count * 4 >= index->slot_count * 3) {
        TRY(grow_table(index, kind, things));
    }
    put_id(index, kind->hash(thing), id);
    return ERR_OK;
}
