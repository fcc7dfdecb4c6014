// SPDX-License-Identifier: MIT
#include "aggregate/block_births.h"

#include "base/minmax.h"

void block_births_release(struct block_births *births)
{
    block_birth_vec_release(&births->items);
    equal_births_vec_release(&births->sums);
    map_u64_release(&births->index);
}

enum err block_births_add(struct block_births *births, uint64_t hash, uint64_t peak_number)
{
    if (births->items.len >= BIRTHS_MAX) {
        births->lost++;
        return ERR_OK;
    }
    uint32_t at;
    TRY(map_u64_number(&births->index, hash, births->sums.len, &at));
    if (at == births->sums.len) {
        TRY(equal_births_vec_push(&births->sums,
                                  (struct equal_births){.first_death_ms = DEATH_NEVER}));
    }
    births->sums.items[at].left++;
    return block_birth_vec_push(&births->items,
                                (struct block_birth){.hash = hash, .peak_number = peak_number});
}

bool block_births_take(struct block_births *births, uint64_t hash, uint64_t *death_ms)
{
    const uint32_t *at =
        births->items.len != 0 ? map_u64_find(&births->index, hash) : NULL; // most have none
    struct equal_births *equal = at != NULL ? births->sums.items + *at : NULL;
    if (equal == NULL) {
        return false;
    }
    if (equal->left > 0) {
        equal->left--;
        equal->first_death_ms = min_u64(equal->first_death_ms, *death_ms);
        return true;
    }
    *death_ms = min_u64(*death_ms, equal->first_death_ms);
    return false;
}

enum err block_births_follow(struct block_births *births, uint64_t peak_number)
{
    const size_t count = births->items.len;
    births->lost = 0;
    if (count == 0) {
        return ERR_OK;
    }
    births->items.len = 0;
    equal_births_vec_clear(&births->sums);
    map_u64_clear(&births->index);
    for (size_t i = 0; i < count; i++) {
        const struct block_birth birth = births->items.items[i];
        if (birth.peak_number >= peak_number) {
            TRY(block_births_add(births, birth.hash, birth.peak_number));
        }
    }
    return ERR_OK;
}
