// SPDX-License-Identifier: MIT
// sampler: see sampler.h.
#include "target/producer/sampler.h"

#include "base/hash.h"

enum {
    LOOK_EVERY = 64, // blocks that are left out, between two looks at the recorder; a power of two
};

_Static_assert(LANE_LEVEL_MAX <= WIRE_SHIFT_MAX, "the wire has room for every weight");
_Static_assert(LANE_LEVEL_MAX + 7 <= WIRE_SAMPLED_SIZE_BITS, "and for the size of what has one");
_Static_assert(LANE_LEVEL_MAX * 3 <= LANE_LEVEL_STEPS / 2, "the last third is kept for frees");

void sampler_init(struct sampler *s, struct lane_producer *producer, uint64_t seed)
{
    *s = (struct sampler){.producer = producer, .random = hash_mix(seed)};
}

// SplitMix64: each of its bits is a fair coin.
static uint64_t next_random(struct sampler *s)
{
    s->random += 0x9e3779b97f4a7c15ULL;
    return hash_mix(s->random);
}

// Only we write it; the recorder reads it.
static void add(_Atomic uint64_t *counter, uint64_t amount)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + amount,
                          memory_order_relaxed);
}

bool sampler_takes(struct sampler *s,
                   struct left_out *table,
                   uint64_t address,
                   uint64_t size_bytes,
                   uint32_t *shift)
{
    struct lane_producer *p = s->producer;
    *shift = sampler_shift(p->level, size_bytes);
    const uint64_t random = *shift != 0 ? next_random(s) : 0;
    if ((random & (((uint64_t)1 << *shift) - 1)) == 0) {
        if (table != NULL) {
            (void)left_out_take(table, address); // whoever freed it there may have done so unseen
        }
        return true;
    }
    if (table == NULL || !left_out_add(table, address, random >> 32)) {
        add(&p->lane->left_out_forgotten, 1);
    }
    add(&p->lane->left_out_allocations, 1);
    add(&p->lane->left_out_bytes, size_bytes);
    const uint64_t count =
        atomic_load_explicit(&p->lane->left_out_allocations, memory_order_relaxed);
    if (count % LOOK_EVERY == 0) {
        lane_producer_relax(p);
    }
    return false;
}

bool sampler_forgets(struct sampler *s, struct left_out *table, uint64_t address)
{
    if (table == NULL || !left_out_take(table, address)) {
        return false;
    }
    add(&s->producer->lane->left_out_frees, 1);
    return true;
}
