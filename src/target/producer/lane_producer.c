// SPDX-License-Identifier: MIT
#include "target/producer/lane_producer.h"

#include <time.h>

#include "base/minmax.h"
#include "base/sys.h"
#include "target/producer/waiting/recorder_liveness.h"

// Set the values that depend on soft_limit and on the lap of the ring that pos is in.
static void set_limit(struct lane_producer *p)
{
    const uint64_t lap = p->pos & ~(p->ring_bytes - 1);
    const uint64_t lap_end = lap + p->ring_bytes;
    p->window = (uintptr_t)p->ring - lap; // wraps around below 0, and back when pos is added
    p->limit = p->soft_limit < lap_end ? p->soft_limit : lap_end;
}

void lane_producer_init(struct lane_producer *p,
                        struct session_header *session,
                        struct lane_header *lane)
{
    *p = (struct lane_producer){
        .session = session,
        .lane = lane,
        .ring = lane_ring(lane),
        .soft_limit = LANE_RING_BYTES_MIN / 2,
        .ring_bytes = LANE_RING_BYTES_MIN,
        .clock = UINT64_MAX, // so that the first event is preceded by a TICK
        .is_sampling = (session->flags & SESSION_OVERFLOW_SAMPLE) != 0,
    };
    if (p->is_sampling) {
        p->ring_bytes = LANE_RING_BYTES_MAX;
        p->soft_limit = LANE_RING_BYTES_MAX / 2;
        // Relaxed: the recorder reads it after it acquires a write_pos that we publish later.
        atomic_store_explicit(&lane->ring_bytes, LANE_RING_BYTES_MAX, memory_order_relaxed);
    }
    // Relaxed: the thread has had no tick; the recorder knows nothing else of it.
    atomic_store_explicit(&lane->book.tick_ms, UINT64_MAX, memory_order_relaxed);
    set_limit(p);
}

void lane_producer_rewind(struct lane_producer *p)
{
    p->pos = atomic_load_explicit(&p->lane->write_pos, memory_order_relaxed); // our own
    if (p->tick_pos > p->pos) {
        p->clock = UINT64_MAX; // the TICK is forgotten too: the next event needs another
    }
    set_limit(p);
}

void lane_producer_close(struct lane_producer *p)
{
    lane_producer_publish(p);
    // Relaxed: the count guards no other data.
    (void)atomic_fetch_add_explicit(&p->session->ended_lanes, 1, memory_order_relaxed);
    // Release: the recorder that acquires LANE_CLOSED sees the final write_pos.
    atomic_store_explicit(&p->lane->state, LANE_CLOSED, memory_order_release);
}

// Return the bytes beyond half full that do not raise the level.
static uint64_t levelless_bytes(const struct lane_producer *p)
{
    return min_u64(p->free_bytes, LANE_FREE_STEPS * (p->ring_bytes / LANE_LEVEL_STEPS));
}

// Return the level while `used_bytes` of the ring are unread.
static uint32_t level_of(const struct lane_producer *p, uint64_t used_bytes)
{
    const uint64_t from = p->ring_bytes / 2 + levelless_bytes(p);
    if (used_bytes < p->ring_bytes / 2) {
        return 0;
    }
    const uint64_t beyond_bytes = used_bytes > from ? used_bytes - from : 0;
    const uint64_t level = 1 + beyond_bytes / (p->ring_bytes / LANE_LEVEL_STEPS);
    return (uint32_t)min_u64(level, LANE_LEVEL_MAX);
}

// Return where the next level begins, or the ring ends.
static uint64_t level_end(const struct lane_producer *p, uint64_t read_pos)
{
    const uint64_t bytes = p->ring_bytes / 2 + (p->level == 0 ? 0 : levelless_bytes(p)) +
                           p->level * (p->ring_bytes / LANE_LEVEL_STEPS);
    return read_pos + (p->level < LANE_LEVEL_MAX ? bytes : p->ring_bytes);
}

// Set the level for this read_pos, and where to look again.
static void set_level(struct lane_producer *p, uint64_t read_pos)
{
    p->level = level_of(p, p->pos - read_pos);
    p->free_bytes = p->level != 0 ? p->free_bytes : 0;
    p->soft_limit = level_end(p, read_pos);
}

void lane_producer_relax(struct lane_producer *p)
{
    // Acquire: as in check_recorder.
    const uint64_t read_pos = atomic_load_explicit(&p->lane->read_pos, memory_order_acquire);
    if (level_of(p, p->pos - read_pos) < p->level) {
        set_level(p, read_pos);
        set_limit(p);
    }
}

// Return the earliest read_pos at which the ring can double; UINT64_MAX: none. Its unread bytes
// must have the same places in the larger ring: they are all of this lap, and this lap begins at
// place 0 of the larger ring, too.
static uint64_t growing_pos(const struct lane_producer *p)
{
    if (!p->was_half_full || p->ring_bytes == LANE_RING_BYTES_MAX) {
        return UINT64_MAX;
    }
    const uint64_t lap = (p->pos - 1) & ~(p->ring_bytes - 1); // of the latest byte
    return (lap & p->ring_bytes) == 0 ? lap : p->pos;
}

// Read the recorder's position and set the next position at which to read it again. Everything is
// published.
static void check_recorder(struct lane_producer *p)
{
    // Acquire: pairs with the recorder's release of read_pos; it has copied everything before.
    const uint64_t read_pos = atomic_load_explicit(&p->lane->read_pos, memory_order_acquire);
    if (read_pos >= growing_pos(p)) {
        p->ring_bytes *= 2;
        p->was_half_full = false;
        // Relaxed: the recorder reads it after it acquires a write_pos that we publish later.
        atomic_store_explicit(&p->lane->ring_bytes, (uint32_t)p->ring_bytes, memory_order_relaxed);
    }
    const uint64_t half = p->ring_bytes / 2;
    if (p->pos - read_pos >= half) {
        if (p->soft_limit < read_pos + p->ring_bytes) {
            session_wake_recorder(p->session);
        }
        p->was_half_full = true;
        p->soft_limit = read_pos + p->ring_bytes;
    } else {
        p->soft_limit = read_pos + half;
    }
    if (p->is_sampling) {
        set_level(p, read_pos);
    }
}

// Return the bytes that the record needs from here on: its own, and the rest of the ring before it
// if it does not fit there.
static size_t needed_bytes(const struct lane_producer *p, size_t bytes)
{
    const size_t tail = p->ring_bytes - (p->pos & (p->ring_bytes - 1));
    return bytes > tail ? tail + bytes : bytes;
}

// Return the read_pos for which a full ring waits: it can grow, or it is half empty, so that the
// thread does not wait again at once.
static uint64_t awaited_pos(const struct lane_producer *p, size_t bytes)
{
    const uint64_t room = max_u64(needed_bytes(p, bytes), p->ring_bytes / 2);
    return min_u64(p->pos + room - p->ring_bytes, growing_pos(p));
}

// Sequentially consistent: see wait_for_room.
static bool has_read(const struct lane_producer *p, uint64_t awaited_pos)
{
    return atomic_load_explicit(&p->lane->read_pos, memory_order_seq_cst) >= awaited_pos;
}

// Do one round of waiting. False: the recorder is dead.
static bool nap_once(struct lane_producer *p, uint32_t waiting, struct patience *patience)
{
    const struct timespec nap = {.tv_nsec = LANE_WAIT_MS * 1000000L};
    if (session_is_over(p->session)) {
        return false;
    }
    session_wake_recorder(p->session);
    (void)sys_futex_wait(&p->lane->producer_waiting, waiting,
                         &nap); // the reason for waking does not matter: we check
    if (patience_is_over(patience, p->session, p->lane)) {
        session_abandon(p->session);
        session_count(p->session, NOTE_lane_timeout, 1);
        return false;
    }
    return true;
}

// Sleep until the recorder has read enough. False: the recorder is dead. Signals are blocked except
// for one moment after each nap. So the program handles them, but a handler that comes again and
// again does not run at each of our system calls, because its allocations have to be kept until the
// wait is over.
static bool wait_for_room(struct lane_producer *p, size_t bytes)
{
    const uint64_t awaited = awaited_pos(p, bytes);
    const uint32_t waiting = lane_waiting_for(awaited);
    struct patience patience;
    patience_init(&patience, p->session, p->lane);
    session_count(p->session, NOTE_producer_waits, 1);
    for (;;) {
        const uint64_t blocked = signals_block();
        // Sequentially consistent with the load in has_read: either we see the new read_pos or the
        // recorder, which stores read_pos first, sees that we wait. The nap ends in any case.
        atomic_store_explicit(&p->lane->producer_waiting, waiting, memory_order_seq_cst);
        const bool found = has_read(p, awaited);
        if (found) {
            atomic_store_explicit(&p->lane->producer_waiting, 0, memory_order_relaxed);
        }
        const bool go_on = !found && nap_once(p, waiting, &patience);
        signals_restore(blocked);
        if (!go_on) {
            return found;
        }
    }
}

uint64_t *lane_producer_make_room(struct lane_producer *p, size_t bytes)
{
    lane_producer_publish(p);
    check_recorder(p);
    size_t needed = needed_bytes(p, bytes);
    // Acquire: as in check_recorder.
    uint64_t read_pos = atomic_load_explicit(&p->lane->read_pos, memory_order_acquire);
    if (p->pos + needed > read_pos + p->ring_bytes) {
        p->was_half_full = true;
        if (!wait_for_room(p, bytes)) {
            return NULL;
        }
        check_recorder(p);
        needed = needed_bytes(p, bytes);
    }
    set_limit(p);
    if (needed > bytes) {
        const size_t pad = needed - bytes;
        *lane_producer_place(p) = wire_word(WIRE_PAD, pad / sizeof(uint64_t));
        p->pos += pad;
        set_limit(p);
    }
    return lane_producer_place(p);
}

bool lane_producer_send_tick(struct lane_producer *p, uint64_t clock, uint64_t now_ms)
{
    if (session_is_over(p->session)) {
        return false;
    }
    uint64_t *word = lane_producer_reserve(p, 1);
    if (word == NULL) {
        return false;
    }
    *word = wire_word(WIRE_TICK, now_ms);
    lane_producer_advance(p, 1);
    p->tick_pos = p->pos;
    p->clock = clock;
    return true;
}

uint64_t *lane_producer_begin_stack(
    struct lane_producer *p, uint32_t slot, uint32_t flags, uint64_t base, uint32_t count)
{
    uint64_t *word = lane_producer_reserve(p, lane_stack_words(count));
    if (word == NULL) {
        return NULL;
    }
    word[0] = wire_word(WIRE_STACK, count | (uint64_t)flags << 8 | (uint64_t)slot << 16);
    word[1] = base;
    return word + 2;
}

static size_t words_for(size_t bytes)
{
    return (bytes + sizeof(uint64_t) - 1) / sizeof(uint64_t);
}

// Copy `from` to whole words, the last one padded with zeros. Returns the next word.
static uint64_t *put_bytes(uint64_t *word, struct bytes from)
{
    const size_t words = words_for(from.len);
    if (words > 0) {
        word[words - 1] = 0;
        __builtin_memcpy(word, from.data, from.len);
    }
    return word + words;
}

static struct bytes at_most(struct bytes range, size_t len_max)
{
    return (struct bytes){.data = range.data, .len = range.len < len_max ? range.len : len_max};
}

enum err lane_producer_send_module(struct lane_producer *p, const struct lane_module *module)
{
    const struct bytes id = at_most(module->build_id, LANE_MODULE_ID_BYTES_MAX);
    const struct bytes path = at_most(module->path, LANE_MODULE_PATH_BYTES_MAX);
    const size_t words = 4 + words_for(id.len) + words_for(path.len);
    uint64_t *word = lane_producer_reserve(p, words);
    if (word == NULL) {
        return ERR_DEAD;
    }
    word[0] = wire_word(WIRE_MODULE, module->slot | (uint64_t)id.len << 16 |
                                         (uint64_t)path.len << 24 | (uint64_t)module->flags << 40);
    word[1] = module->bias;
    word[2] = module->start;
    word[3] = module->end;
    (void)put_bytes(put_bytes(word + 4, id), path); // the end is `words`
    lane_producer_advance(p, words);
    return ERR_OK;
}

void lane_producer_send_text(struct lane_producer *p,
                             enum wire_text_kind kind,
                             struct bytes text,
                             bool more)
{
    do {
        const struct bytes part = at_most(text, WIRE_TEXT_BYTES_MAX);
        const size_t words = 1 + words_for(part.len);
        const uint32_t flags = part.len < text.len || more ? WIRE_TEXT_MORE : 0;
        uint64_t *word = lane_producer_reserve(p, words);
        if (word == NULL) {
            return;
        }
        word[0] = wire_word(WIRE_TEXT, kind | (uint64_t)flags << 8 | (uint64_t)part.len << 16);
        (void)put_bytes(word + 1, part); // the end is `words`
        lane_producer_advance(p, words);
        text.data += part.len;
        text.len -= part.len;
    } while (text.len > 0);
}
