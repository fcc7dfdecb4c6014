// SPDX-License-Identifier: MIT
#include "target/producer/sampler.h"

#include "base/hash.h"
#include "base/minmax.h"
#include "session/sampling_level.h"

enum {
    CHECK_EVERY = 64,  // unsampled blocks between two checks of the recorder; a power of two
    CLOSE_BYTES = 512, // ring bytes between two balances that count as close
    CLOSE_MAX = 8,     // close balances until the grain doubles
    GRAIN_DOUBLINGS_MAX = 40,
};

_Static_assert(LANE_LEVEL_MAX + LANE_FREE_STEPS + 16 <= LANE_LEVEL_STEPS / 2,
               "the last eighth is kept for frees");

void sampler_init(struct sampler *s, struct lane_producer *producer, struct byte_sampler *choice)
{
    *s = (struct sampler){.producer = producer,
                          .choice = choice,
                          .sent_pos = producer->pos,
                          .grain_bytes = SAMPLER_GRAIN_BYTES};
}

// Add to a counter that only this thread writes; the recorder reads it.
static void add(_Atomic uint64_t *counter, uint64_t amount)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + amount,
                          memory_order_relaxed);
}

static bool is_close(const struct sampler *s)
{
    return s->producer->pos - s->sent_pos < CLOSE_BYTES;
}

// Send the balance. If recording has ended, the next event fails too.
static void send_balance(struct sampler *s)
{
    struct lane_producer *p = s->producer;
    s->close_count = is_close(s) ? s->close_count + 1 : 0;
    const uint32_t doublings = (uint32_t)min_u64(s->close_count / CLOSE_MAX, GRAIN_DOUBLINGS_MAX);
    uint64_t *word = lane_producer_reserve(p, 2);
    if (word == NULL) {
        return;
    }
    const uint64_t blocks = min_u64(s->forgotten_blocks, WIRE_COUNT_MAX);
    const uint64_t bytes = min_u64(s->forgotten_bytes, WIRE_SIZE_MAX);
    word[0] = wire_unsampled(s->balance_bytes, doublings);
    word[1] = wire_lost(blocks, bytes);
    lane_producer_advance(p, 2);
    lane_producer_publish(p);
    s->forgotten_blocks -= blocks;
    s->forgotten_bytes -= bytes;
    s->sent_bytes = s->balance_bytes;
    s->sent_pos = p->pos;
    s->grain_bytes = (uint64_t)SAMPLER_GRAIN_BYTES << doublings;
}

static void send_balance_if_due(struct sampler *s)
{
    const int64_t change = s->balance_bytes - s->sent_bytes;
    const uint64_t changed_bytes =
        (change < 0 ? -(uint64_t)change : (uint64_t)change) + s->forgotten_bytes;
    if (UNLIKELY(changed_bytes >= (is_close(s) ? s->grain_bytes : SAMPLER_GRAIN_BYTES))) {
        send_balance(s);
    }
}

void sampler_end(struct sampler *s)
{
    if (s->balance_bytes != s->sent_bytes || s->forgotten_blocks != 0) {
        send_balance(s);
    }
}

// Remove a block from the table and from the balance. There may be several entries, if a free of
// the address was not seen. Returns whether there was any.
static bool forget(struct sampler *s, struct unsampled_blocks *table, uint64_t address)
{
    bool was_there = false;
    uint64_t entry;
    while (table != NULL && (entry = unsampled_blocks_take(table, address)) != 0) {
        s->balance_bytes -= (int64_t)unsampled_blocks_size(entry);
        was_there = true;
    }
    return was_there;
}

static void
skip_block(struct sampler *s, struct unsampled_blocks *table, uint64_t entry, uint64_t number)
{
    uint64_t forgotten = entry;
    s->balance_bytes += (int64_t)unsampled_blocks_size(entry);
    if (table == NULL || !unsampled_blocks_add(table, entry, hash_mix(number), &forgotten)) {
        add(&s->producer->lane->unsampled_forgotten, 1);
        s->balance_bytes -= (int64_t)unsampled_blocks_size(forgotten);
        s->forgotten_blocks++;
        s->forgotten_bytes += unsampled_blocks_size(forgotten);
    }
}

bool sampler_takes(struct sampler *s,
                   struct unsampled_blocks *table,
                   uint64_t address,
                   uint64_t size_bytes,
                   uint32_t *level)
{
    struct lane_producer *p = s->producer;
    *level = p->level;
    byte_sampler_set_mean(s->choice, p->lane, sampling_interval(p->level));
    if (!byte_sampler_passes(s->choice, p->lane, size_bytes)) {
        if (p->level != 0) {
            byte_sampler_draw(s->choice, p->lane);
        }
        (void)forget(s, table, address); // an earlier free there may not have been seen
        return true;
    }
    const uint64_t count =
        atomic_load_explicit(&p->lane->unsampled_allocations, memory_order_relaxed);
    skip_block(s, table, unsampled_blocks_entry(address, size_bytes), count);
    if (count % CHECK_EVERY == 0) {
        lane_producer_relax(p);
    }
    send_balance_if_due(s);
    return false;
}

bool sampler_forgets(struct sampler *s, struct unsampled_blocks *table, uint64_t address)
{
    if (!forget(s, table, address)) {
        return false;
    }
    add(&s->producer->lane->unsampled_frees, 1);
    send_balance_if_due(s);
    return true;
}
