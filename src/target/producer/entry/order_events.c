// SPDX-License-Identifier: MIT
#include "target/producer/entry/order_events.h"

bool order_allocate_slowly(struct lane_producer *p,
                           uint64_t address,
                           uint64_t size_bytes,
                           uint32_t slot)
{
    uint64_t *word = lane_producer_reserve_event(p, 3);
    if (UNLIKELY(word == NULL)) {
        return false;
    }
    word[0] = wire_word(WIRE_ALLOC_LARGE, address);
    word[1] = wire_slot_size(slot, 0);
    word[2] = size_bytes;
    lane_producer_advance(p, 3);
    lane_producer_publish(p);
    p->last_allocated = address;
    return true;
}

// Send one record for the free of `old_address` and the allocation.
static bool pass_reallocation(struct lane_producer *p,
                              uint64_t old_address,
                              uint64_t address,
                              uint64_t size_bytes,
                              uint32_t slot)
{
    const bool is_temporary = p->last_allocated == old_address;
    const bool is_large = size_bytes > WIRE_SIZE_MAX;
    const size_t words = is_large ? 4 : 3;
    uint64_t *word = lane_producer_reserve(p, words);
    if (UNLIKELY(word == NULL)) {
        return false;
    }
    static const enum wire_tag tags[2][2] = {
        {WIRE_REALLOC, WIRE_REALLOC_TEMPORARY},
        {WIRE_REALLOC_LARGE, WIRE_REALLOC_LARGE_TEMPORARY},
    };
    word[0] = wire_word(tags[is_large][is_temporary], address);
    word[1] = wire_slot_size(slot, is_large ? 0 : size_bytes);
    word[2] = old_address;
    if (is_large) {
        word[3] = size_bytes;
    }
    lane_producer_advance(p, words);
    lane_producer_publish(p);
    p->last_allocated = address;
    return true;
}

bool order_pass_growth(struct lane_producer *p, uint64_t old_bytes, uint64_t bytes, uint32_t slot)
{
    if (LIKELY(bytes < WIRE_GREW_MIN) || bytes <= old_bytes || bytes > WIRE_SIZE_MAX) {
        return true;
    }
    uint64_t *word = lane_producer_reserve(p, 2);
    if (UNLIKELY(word == NULL)) {
        return false;
    }
    word[0] = wire_word(WIRE_GREW, old_bytes);
    word[1] = wire_slot_size(slot, bytes);
    lane_producer_advance(p, 2);
    lane_producer_publish(p);
    return true;
}

static bool free_at(struct lane_producer *p, uint64_t address, struct freed_note freed)
{
    const uint64_t given_stamp = p->given_stamp;
    p->given_stamp = freed.stamp != 0 ? freed.stamp : given_stamp;
    const bool is_sent = order_free(p, address);
    p->given_stamp = given_stamp;
    return is_sent;
}

bool order_reallocate(struct lane_producer *p,
                      uint64_t old_address,
                      uint64_t address,
                      uint64_t size_bytes,
                      uint32_t slot,
                      struct freed_note freed)
{
    if (!p->is_ordered) {
        return pass_reallocation(p, old_address, address, size_bytes, slot);
    }
    return free_at(p, old_address, freed) && // two moments
           order_pass_growth(p, 0, size_bytes, slot) &&
           order_allocate(p, address, size_bytes, slot);
}
