// SPDX-License-Identifier: MIT
#include "target/producer/book/block_choice.h"

#include "base/minmax.h"
#include "target/producer/book/book.h"

void block_choice_init(struct block_choice *choice, const struct lane_producer *p, uint64_t seed)
{
    choice->level = 0;
    byte_sampler_init(&choice->sampler, p->lane, book_interval(p->session, 0), seed);
}

// Set the level of the next block.
static void follow_level(struct block_choice *choice, const struct lane_producer *p)
{
    // Relaxed: it guards no other data. No higher than there is, whatever the program stores there.
    const uint64_t of_memory =
        atomic_load_explicit(&p->session->memory_level, memory_order_relaxed);
    choice->level = (uint32_t)max_u64(p->level, min_u64(of_memory, LANE_LEVEL_MAX));
    byte_sampler_set_interval(&choice->sampler, p->lane, book_interval(p->session, choice->level));
}

bool block_choice_takes(struct block_choice *choice,
                        struct lane_producer *p,
                        uint64_t size_bytes,
                        uint32_t *level)
{
    *level = choice->level;
    if (*level > atomic_load_explicit(&p->lane->highest_level, memory_order_relaxed)) {
        atomic_store_explicit(&p->lane->highest_level, *level, memory_order_relaxed);
    }
    const bool is_chosen = byte_sampler_chooses(&choice->sampler, p->lane, size_bytes);
    follow_level(choice, p);
    return is_chosen;
}
