// SPDX-License-Identifier: MIT
#include "target/unwind/walk/proof.h"

uint32_t proof_calls_between(const struct moment *then, const struct moment *now)
{
    const uint64_t ticks = now->ticks - then->ticks;
    const uint64_t calls_per_tick = arch_calls_per_tick();
    if (now->processor != then->processor || now->ticks <= then->ticks ||
        ticks >= (UINT32_MAX - PROOF_IN_FLIGHT) / calls_per_tick - 1) {
        return UINT32_MAX;
    }
    return (uint32_t)((ticks + 1) * calls_per_tick) + PROOF_IN_FLIGHT;
}

uint32_t proof_extend(struct proof *proof, const struct walk_cache *r, uint32_t known)
{
    while (known > 0 && !proof_holds(proof, known)) {
        const uint32_t end = known < proof->from ? known : proof->from;
        const uint32_t from = known > proof->evidence ? known - proof->evidence : 0;
        const uint32_t intact = walk_cache_intact_from(r, from, end);
        known = intact < end ? intact : known;
        proof->from = from;
    }
    return known;
}
