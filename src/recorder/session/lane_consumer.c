// SPDX-License-Identifier: MIT
// lane_consumer: see the header. This file has positions and the rare records.
#include "recorder/session/lane_consumer.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/minmax.h"
#include "host/memory/page_size.h"
#include "session/books/sampling_level.h"

void lane_consumer_init(struct lane_consumer *c, struct lane_header *lane)
{
    *c = (struct lane_consumer){.lane = lane};
}

enum err lane_consumer_refresh(struct lane_consumer *c)
{
    // Acquire: pairs with the producer's release of write_pos; the records before it are complete.
    uint64_t write_pos = atomic_load_explicit(&c->lane->write_pos, memory_order_acquire);
    if (write_pos == c->read_pos) {
        c->write_pos = write_pos;
        return ERR_OK;
    }
    // The producer may double it at any time, but unread bytes have the same places then.
    uint32_t ring_bytes = atomic_load_explicit(&c->lane->ring_bytes, memory_order_relaxed);
    bool is_size_sound = ring_bytes >= LANE_RING_BYTES_MIN && ring_bytes <= LANE_RING_BYTES_MAX &&
                         (ring_bytes & (ring_bytes - 1)) == 0;
    if (!is_size_sound || write_pos < c->read_pos || write_pos - c->read_pos > ring_bytes ||
        write_pos % sizeof(uint64_t) != 0) {
        return ERR_CORRUPT;
    }
    c->write_pos = write_pos;
    c->ring_bytes = ring_bytes;
    return ERR_OK;
}

size_t lane_consumer_copy(const struct lane_consumer *c, uint64_t *to, size_t max_bytes)
{
    uint64_t unread = lane_consumer_unread_bytes(c);
    if (unread == 0) {
        return 0;
    }
    size_t at = c->read_pos & (c->ring_bytes - 1);
    size_t bytes = unread < max_bytes ? (size_t)unread : max_bytes;
    size_t contiguous = c->ring_bytes - at;
    bytes = bytes < contiguous ? bytes : contiguous;
    memcpy(to, lane_ring(c->lane) + at, bytes);
    return bytes;
}

// Free what was read before `pos`.
static void publish_read_pos(struct lane_consumer *c, uint64_t pos)
{
    c->free_pos = pos;
    // Release: pairs with the producer's acquire of read_pos; the copy is complete before it writes
    // there again. Sequentially consistent with the load below and the producer's store of
    // producer_waiting and load of read_pos, so that one side sees the other.
    atomic_store_explicit(&c->lane->read_pos, pos, memory_order_seq_cst);
    const uint32_t waiting = atomic_load_explicit(&c->lane->producer_waiting, memory_order_seq_cst);
    if (lane_is_awaited(waiting, pos)) {
        atomic_store_explicit(&c->lane->producer_waiting, 0, memory_order_release);
        // A failure to wake is harmless: its wait has a deadline.
        (void)syscall(SYS_futex, &c->lane->producer_waiting, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

// Give the whole pages of the ring between two positions back. They were read, and are not free
// yet, so they have the same places in a ring that the producer has doubled meanwhile.
static void remove_pages(const struct lane_consumer *c, uint64_t from, uint64_t to)
{
    while (from < to) {
        const uint64_t at = from & (c->ring_bytes - 1);
        const uint64_t bytes = min_u64(to - from, c->ring_bytes - at);
        (void)madvise(lane_ring(c->lane) + at, bytes, MADV_REMOVE); // else they stay: no harm
        from += bytes;
    }
}

void lane_consumer_advance(struct lane_consumer *c, size_t bytes)
{
    c->read_pos += bytes;
    if (!c->gives_back) {
        publish_read_pos(c, c->read_pos);
        return;
    }
    const uint64_t page = page_bytes();
    const uint64_t end = c->read_pos & ~(page - 1);
    remove_pages(c, (c->free_pos + page - 1) & ~(page - 1), end);
    publish_read_pos(c,
                     lane_consumer_unread_bytes(c) == 0 ? c->read_pos : max_u64(end, c->free_pos));
}

void lane_consumer_discard(struct lane_consumer *c)
{
    // Relaxed: the data before it is not read.
    c->write_pos = atomic_load_explicit(&c->lane->write_pos, memory_order_relaxed);
    c->read_pos = c->write_pos;
    publish_read_pos(c, c->read_pos);
}

static uint32_t padded_words(uint32_t bytes)
{
    return (bytes + 7) / 8;
}

static uint32_t module_words(uint64_t head)
{
    uint32_t id_bytes = (uint32_t)(head >> 24) & 0xff;
    uint32_t path_bytes = (uint32_t)(head >> 32) & 0xffff;
    return 4 + padded_words(id_bytes) + padded_words(path_bytes);
}

static uint32_t text_bytes(uint64_t head)
{
    return (uint32_t)(head >> 24) & 0xffff;
}

// The lengths in words of the records that say no length; 0 for the others.
static const uint8_t fixed_words[] = {
    [WIRE_TICK] = 1,
    [WIRE_GREW] = 2,
    [WIRE_MAPPING] = 7,
    [WIRE_EVENT] = 2,
    [WIRE_QUERY] = 1,
    [WIRE_ROW] = 1,
    [WIRE_BLOCK_BORN] = WIRE_BLOCK_WORDS,
    [WIRE_BLOCK_FREED] = WIRE_BLOCK_WORDS,
};

// Return the length in words of a record; 0 if it is unknown or its word 0 malformed.
static uint64_t record_words(uint64_t head)
{
    const uint64_t tag = head & 0xff;
    const uint64_t rest = head >> 8;
    switch (tag) {
    case WIRE_PAD:
        return rest <= LANE_RING_BYTES_MAX / sizeof(uint64_t) ? rest : 0;
    case WIRE_BOOK:
        return book_record_words(head);
    case WIRE_STACK:
        return wire_stack_count(&head) <= WIRE_STACK_FRAMES_MAX ? 2 + wire_stack_count(&head) : 0;
    case WIRE_TEXT:
        return text_bytes(head) <= WIRE_TEXT_BYTES_MAX ? 1 + padded_words(text_bytes(head)) : 0;
    case WIRE_MODULE: {
        const uint32_t words = module_words(head);
        const bool is_sound = words * sizeof(uint64_t) <= WIRE_RECORD_BYTES_MAX &&
                              (rest & 0xffff) <= WIRE_MODULE_SLOTS;
        return is_sound ? words : 0;
    }
    default:
        return tag < ARRAY_LEN(fixed_words) ? fixed_words[tag] : 0;
    }
}

enum wire_result wire_decode(const uint64_t *words, size_t count, struct wire_record *out)
{
    const uint64_t head = words[0];
    const uint64_t length = record_words(head);
    if (length == 0) {
        return WIRE_MALFORMED;
    }
    out->tag = wire_tag_of(head);
    out->address = head >> 8;
    out->words = (uint32_t)length;
    if (length > count) {
        return WIRE_INCOMPLETE;
    }
    out->payload = words + 1;
    if (out->tag == WIRE_STACK) {
        out->slot = (uint32_t)(head >> 24) & ((1u << WIRE_SLOT_BITS) - 1);
    } else if (out->tag == WIRE_GREW) {
        out->slot = (uint32_t)(words[1] >> WIRE_SIZE_BITS);
        out->size_bytes = words[1] & WIRE_SIZE_MAX;
    } else if (out->tag == WIRE_MAPPING) {
        out->slot = (uint32_t)(words[1] >> WIRE_SIZE_BITS);
    } else if (out->tag == WIRE_EVENT) {
        out->slot = wire_head_slot(head);
        out->size_bytes = words[1];
    } else if (out->tag == WIRE_ROW) {
        out->slot = wire_head_slot(head);
        out->count = (uint32_t)(head >> (8 + WIRE_SLOT_BITS)) & WORD_ROW_MAX;
        out->level = wire_row_level(head);
        return out->level <= LANE_LEVEL_MAX ? WIRE_DECODED : WIRE_MALFORMED;
    } else if (out->tag == WIRE_QUERY) {
        out->count = (uint32_t)(head >> 8);
        out->slot = (uint32_t)(head >> 40) & 0xff;
        out->level = (uint32_t)(head >> 48) & 0xff;
    }
    return WIRE_DECODED;
}

struct wire_module wire_module_of(const struct wire_record *record)
{
    const uint64_t *words = record->payload - 1;
    uint32_t id_bytes = (uint32_t)(words[0] >> 24) & 0xff;
    const uint8_t *id = (const uint8_t *)(words + 4);
    return (struct wire_module){
        .slot = (uint32_t)(words[0] >> 8) & 0xffff,
        .flags = (uint32_t)(words[0] >> 48) & 0xff,
        .bias = words[1],
        .start = words[2],
        .end = words[3],
        .build_id = {.data = id, .len = id_bytes},
        .path = {.data = id + (size_t)padded_words(id_bytes) * 8,
                 .len = (uint32_t)(words[0] >> 32) & 0xffff},
    };
}

struct wire_text wire_text_of(const struct wire_record *record)
{
    const uint64_t *words = record->payload - 1;
    return (struct wire_text){
        .kind = (uint32_t)(words[0] >> 8) & 0xff,
        .flags = (uint32_t)(words[0] >> 16) & 0xff,
        .text = {.data = (const uint8_t *)(words + 1), .len = text_bytes(words[0])},
    };
}

struct wire_mapping wire_mapping_of(const struct wire_record *record)
{
    const uint64_t *words = record->payload - 1;
    return (struct wire_mapping){
        .address = words[0] >> 8,
        .size_bytes = words[2],
        .number = words[3],
        .old_address = words[4],
        .old_size_bytes = words[5],
        .old_number = words[6],
        .kind = (uint32_t)(words[1] & 0xff),
    };
}
