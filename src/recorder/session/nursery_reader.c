// SPDX-License-Identifier: MIT
#include "recorder/session/nursery_reader.h"

#include <string.h>

#include "session/wire.h"

// A private copy, and the result.
struct copy {
    struct nursery head;
    struct nursery_tables *tables;
    uint64_t write_pos;
    uint32_t freed_count;
};

struct nursery_hold nursery_reader_hold(struct lane_header *lane)
{
    struct nursery *n = &lane->nursery;
    // Acquire: pairs with the thread's release; records sent before are in the ring, and any later
    // reader of the ring sees them.
    struct nursery_hold hold = {.since_ms =
                                    atomic_load_explicit(&n->since_ms, memory_order_acquire)};
    if (*(const volatile uint32_t *)&lane->keeps_book != 0) {
        // Acquire: likewise.
        const uint64_t book_ms = atomic_load_explicit(&lane->book_since_ms, memory_order_acquire);
        hold.since_ms = hold.since_ms == UINT64_MAX ? UINT64_MAX : book_ms;
    }
    const bool is_ordered = *(const volatile uint32_t *)&n->is_ordered != 0;
    hold.held_bytes = is_ordered ? 0 : atomic_load_explicit(&n->held_bytes, memory_order_relaxed);
    if (*(const volatile uint64_t *)&n->hold_count == 0) {
        hold.since_ms = UINT64_MAX;
    }
    return hold;
}

static bool is_idle(struct lane_header *lane, uint64_t stable_ms)
{
    // Acquire: pairs with the thread's release of its guard; its hook's stores are complete.
    return atomic_load_explicit(&lane->nursery.since_ms, memory_order_acquire) < stable_ms &&
           atomic_load_explicit(lane_guard(lane), memory_order_acquire) == 0;
}

bool nursery_reader_is_empty(struct lane_header *lane, uint64_t stable_ms)
{
    return is_idle(lane, stable_ms) && nursery_reader_hold(lane).since_ms == UINT64_MAX;
}

void nursery_reader_unlock(struct lane_header *lane)
{
    // Release: pairs with the thread's acquire; it sees what was taken.
    atomic_store_explicit(&lane->nursery.owner, NURSERY_FREE, memory_order_release);
}

bool nursery_reader_lock(struct lane_header *lane, uint64_t stable_ms)
{
    struct nursery *n = &lane->nursery;
    uint32_t owner = NURSERY_FREE;
    if (!is_idle(lane, stable_ms) ||
        !atomic_compare_exchange_strong_explicit(&n->owner, &owner, NURSERY_OF_RECORDER,
                                                 memory_order_acquire, memory_order_relaxed)) {
        return false;
    }
    // Between the two, the thread may have begun a tick, in which it needs no lock any more.
    const bool is_still_idle = is_idle(lane, stable_ms);
    if (!is_still_idle) {
        nursery_reader_unlock(lane);
    }
    return is_still_idle;
}

static bool counter_was_sent(const struct copy *c, const struct nursery_counter *counter)
{
    return (counter->key & NURSERY_COUNTER_SENDING) != 0 && c->write_pos >= c->head.mark;
}

// Return whether the interrupted count of a coalesced pair for a block is complete. There can be
// only one.
static bool was_coalesced(const struct copy *c, const struct nursery_block *block)
{
    for (uint32_t i = 0; i < NURSERY_COUNTERS; i++) {
        if (c->tables->counters[i].key == nursery_counter_key(block->kind)) {
            return c->tables->counters[i].sums != c->head.mark;
        }
    }
    return false;
}

static bool is_held(const struct copy *c, const struct nursery_block *block)
{
    switch (block->place >> NURSERY_STATE_SHIFT) {
    case NURSERY_HELD:
        return block->place != 0;
    case NURSERY_COALESCING:
        return !was_coalesced(c, block);
    case NURSERY_SENDING:
        return c->write_pos < c->head.mark;
    default:
        return false;
    }
}

static enum err put_counters(const struct copy *c, struct u64_vec *out)
{
    for (uint32_t i = 0; i < NURSERY_COUNTERS; i++) {
        const struct nursery_counter *counter = c->tables->counters + i;
        if (counter->key != 0 && wire_pairs_count(counter->sums) != 0 &&
            !counter_was_sent(c, counter)) {
            const uint64_t kind = nursery_counter_kind(counter);
            const enum wire_tag tag =
                nursery_is_temporary(kind) ? WIRE_PAIRS_TEMPORARY : WIRE_PAIRS;
            TRY(u64_vec_push(out, wire_pair(tag, nursery_slot(kind), 0)));
            TRY(u64_vec_push(out, counter->sums));
        }
    }
    return ERR_OK;
}

static bool is_held_at(const struct copy *c, uint64_t address)
{
    for (uint32_t i = 0; i < NURSERY_BLOCKS; i++) {
        const struct nursery_block *block = c->tables->blocks + i;
        if ((block->place & NURSERY_ADDRESS_MASK) == address && is_held(c, block)) {
            return true;
        }
    }
    return false;
}

// Return how many blocks were freed since the high-water mark, except one whose free was
// interrupted.
static uint32_t count_freed(const struct copy *c)
{
    const uint64_t leaving = c->head.leaving & NURSERY_ADDRESS_MASK;
    const uint64_t count = leaving != 0 && is_held_at(c, leaving)
                               ? c->head.leaving >> NURSERY_LEAVING_SHIFT
                               : c->head.freed_count;
    return count <= NURSERY_FREED_MAX ? (uint32_t)count : 0; // the value is false
}

// Selects some of the held blocks.
enum part {
    AT_HIGH_WATER = 1 << 0, // or the others
    LATEST = 1 << 1,        // the thread's latest, or the others
};

static enum err put_block(const struct copy *c, uint32_t i, struct u64_vec *out)
{
    const struct nursery_block *block = c->tables->blocks + i;
    const uint64_t address = block->place & NURSERY_ADDRESS_MASK;
    const bool is_ordered = c->head.is_ordered != 0;
    TRY(u64_vec_push(out, wire_word(is_ordered ? WIRE_ALLOC_LATE : WIRE_ALLOC, address)));
    TRY(u64_vec_push(out, wire_slot_size(nursery_slot(block->kind), nursery_size(block->kind))));
    return is_ordered ? u64_vec_push(out, c->tables->since[i]) : ERR_OK;
}

static enum err put_blocks(const struct copy *c, unsigned part, struct u64_vec *out)
{
    for (uint32_t i = 0; i < NURSERY_BLOCKS; i++) {
        const struct nursery_block *block = c->tables->blocks + i;
        const uint64_t address = block->place & NURSERY_ADDRESS_MASK;
        const unsigned its =
            (nursery_is_within(block->kind, c->head.high_water_limit) ? AT_HIGH_WATER : 0) |
            (address == c->head.last_allocated ? LATEST : 0);
        if (its == part && is_held(c, block)) {
            TRY(put_block(c, i, out));
        }
    }
    return ERR_OK;
}

// Append the blocks that were live at the high-water mark, then the others.
static enum err put_all_blocks(const struct copy *c, struct u64_vec *out)
{
    TRY(put_blocks(c, AT_HIGH_WATER, out));
    TRY(put_blocks(c, AT_HIGH_WATER | LATEST, out));
    if (c->freed_count > 0) {
        TRY(u64_vec_push(out, wire_word(WIRE_HIGH_WATER, c->freed_count)));
    }
    for (uint32_t i = 0; i < c->freed_count; i++) {
        TRY(u64_vec_push(out, c->tables->freed[i]));
    }
    TRY(put_blocks(c, 0, out));
    return put_blocks(c, LATEST, out);
}

// Leave the nursery as if the thread had sent it all.
static void empty(struct lane_header *lane, const struct copy *c)
{
    struct nursery *n = &lane->nursery;
    struct nursery_tables *tables = lane_nursery_tables(lane);
    for (uint32_t i = 0; i < NURSERY_BLOCKS; i++) {
        struct nursery_block *block = tables->blocks + i;
        if (!nursery_is_held(block)) {
            continue;
        }
        if (c->head.is_ordered != 0) {
            block->place = 0;
            continue;
        }
        block->place = nursery_place(block->place, NURSERY_SENT);
        block->kind = nursery_size(block->kind);
    }
    n->room_bytes += c->head.is_ordered != 0 ? (int64_t)nursery_relaxed(&n->held_bytes) : 0;
    memset(tables->counters, 0, sizeof(tables->counters));
    memset(n->touched, 0, sizeof(n->touched));
    n->hold_count = 0;
    n->freed_count = 0;
    n->high_water_limit = NURSERY_NO_HIGH_WATER;
    n->stamp = NURSERY_STAMP;
    atomic_store_explicit(&n->held_bytes, 0, memory_order_relaxed);
}

// Append the records of what the thread has counted in its book, and not sent.
static enum err put_book(const struct copy *c, struct lane_header *lane, struct u64_vec *out)
{
    for (uint32_t i = 0; i < BOOK_COUNTERS; i++) {
        struct book_counter counter;
        memcpy(&counter, lane_book_tables(lane)->counters + i, sizeof(counter));
        const bool was_sent = counter.is_sending != 0 && c->write_pos >= c->head.mark;
        uint64_t words[BOOK_WORDS_MAX];
        const uint32_t count = counter.row != 0 && !was_sent ? book_record(&counter, words) : 0;
        for (uint32_t k = 0; k < count; k++) {
            TRY(u64_vec_push(out, words[k]));
        }
    }
    return ERR_OK;
}

// Leave the book as if the thread had sent it all.
static void empty_book(struct lane_header *lane)
{
    struct book_counter *counters = lane_book_tables(lane)->counters;
    for (uint32_t i = 0; i < BOOK_COUNTERS; i++) {
        if (counters[i].row != 0) {
            counters[i].row = 0;
        }
    }
    memset(lane->nursery.counters_used, 0, sizeof(lane->nursery.counters_used));
    lane->nursery.hold_count = 0;
}

static enum err
take_book(struct lane_header *lane, bool is_alive, const struct copy *c, struct u64_vec *out)
{
    TRY(put_book(c, lane, out));
    if (is_alive) {
        empty_book(lane);
    }
    return ERR_OK;
}

enum err nursery_reader_take(struct lane_header *lane,
                             bool is_alive,
                             struct nursery_tables *scratch,
                             struct u64_vec *out)
{
    struct copy c = {.tables = scratch};
    // Acquire: pairs with the thread's release of write_pos.
    c.write_pos = atomic_load_explicit(&lane->write_pos, memory_order_acquire);
    memcpy(&c.head, &lane->nursery, sizeof(c.head));
    if (c.head.hold_count == 0) {
        return ERR_OK;
    }
    if (*(const volatile uint32_t *)&lane->keeps_book != 0) {
        return take_book(lane, is_alive, &c, out);
    }
    memcpy(scratch, lane_nursery_tables(lane), sizeof(*scratch));
    c.freed_count = count_freed(&c);
    TRY(put_all_blocks(&c, out));
    TRY(put_counters(&c, out));
    if (is_alive) {
        empty(lane, &c);
    }
    return ERR_OK;
}
