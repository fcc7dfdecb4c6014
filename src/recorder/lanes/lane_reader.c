// SPDX-License-Identifier: MIT
#include "recorder/lanes/lane_reader.h"

#include <stdlib.h>
#include <string.h>

#include "aggregate/books/aggregator_book.h"
#include "aggregate/books/book_blocks.h"
#include "base/minmax.h"
#include "recorder/lanes/plain_events.h"
#include "session/stats_query_values.h"

enum {
    // How far ahead of counting the live map's memory is prefetched, and how much is then counted.
    PREFETCH_WORDS = 56,
    TOGETHER_WORDS = 28,
};

void lane_reader_init(struct lane_reader *reader,
                      struct lane_header *lane,
                      uint32_t lane_index,
                      struct aggregator_process *process,
                      uint32_t thread_id,
                      uint64_t start_ms)
{
    *reader = (struct lane_reader){.piece_len = 0};
    lane_consumer_init(&reader->consumer, lane);
    aggregator_thread_begin(&reader->thread, process, lane_index, thread_id, start_ms);
}

void lane_reader_release(struct lane_reader *reader)
{
    lane_dictionary_release(&reader->dictionary);
    lane_texts_release(&reader->texts);
    u64_vec_release(&reader->taken);
    free(reader->piece);
    reader->piece = NULL;
}

void lane_reader_discard(struct lane_reader *reader)
{
    lane_consumer_discard(&reader->consumer);
    reader->piece_at = reader->piece_len;
    u64_vec_clear(&reader->taken);
}

static enum err add_change(struct lane_reader *reader,
                           struct aggregator *aggregator,
                           const struct wire_record *record)
{
    const struct wire_mapping change = wire_mapping_of(record);
    uint32_t node = REC_NONE;
    if (change.size_bytes != 0) {
        node = lane_dictionary_node(&reader->dictionary, record->slot);
        if (node == REC_NONE) {
            return ERR_CORRUPT;
        }
    }
    return aggregator_mapping(aggregator, reader->thread.process, &change, node);
}

static enum err add_event(struct lane_reader *reader,
                          struct aggregator *aggregator,
                          const struct wire_record *record)
{
    const uint32_t node = lane_dictionary_node(&reader->dictionary, record->slot);
    return node != REC_NONE
               ? aggregator_adhoc(aggregator, reader->thread.process, node, record->size_bytes)
               : ERR_CORRUPT;
}

static void note_query(struct lane_reader *reader,
                       struct aggregator *aggregator,
                       const struct wire_record *record)
{
    if (record->count == 0) { // no thread waits
        if (record->slot == STATS_QUERY_PEAK_END) {
            aggregator_end_scope(aggregator, &reader->thread, record->level);
        }
        return;
    }
    reader->query = (struct lane_query){.number = record->count,
                                        .what = record->slot,
                                        .scope = record->level,
                                        .tick_ms = reader->thread.tick_ms};
}

static inline enum err add_free(struct lane_reader *reader,
                                struct aggregator *aggregator,
                                uint64_t address,
                                bool is_temporary)
{
    reader->events++;
    return LIKELY(address != 0)
               ? aggregator_free(aggregator, &reader->thread, address, is_temporary)
               : ERR_CORRUPT;
}

// Count an ALLOC. `slot_size`: its second word.
static inline enum err add_allocation(struct lane_reader *reader,
                                      struct aggregator *aggregator,
                                      uint64_t address,
                                      uint64_t slot_size)
{
    uint32_t row;
    TRY(lane_dictionary_row(&reader->dictionary, &reader->thread, aggregator,
                            (uint32_t)(slot_size >> WIRE_SIZE_BITS), &row));
    reader->events++;
    return LIKELY(address != 0) ? aggregator_allocate(aggregator, &reader->thread, address, row,
                                                      slot_size & WIRE_SIZE_MAX)
                                : ERR_CORRUPT;
}

// Get the row of the record's stack. ERR_CORRUPT: it has none, or its address is invalid.
static inline enum err row_of_record(struct lane_reader *reader,
                                     struct aggregator *aggregator,
                                     const struct wire_record *record,
                                     uint32_t *out)
{
    TRY(lane_dictionary_row(&reader->dictionary, &reader->thread, aggregator, record->slot, out));
    return LIKELY(record->address != 0) ? ERR_OK : ERR_CORRUPT;
}

static inline enum err add_moved(struct lane_reader *reader,
                                 struct aggregator *aggregator,
                                 const struct wire_record *record)
{
    struct aggregator_move move = {
        .from = record->old_address,
        .to = record->address,
        .size_bytes = record->size_bytes,
        .is_temporary =
            record->tag == WIRE_REALLOC_TEMPORARY || record->tag == WIRE_REALLOC_LARGE_TEMPORARY,
    };
    TRY(row_of_record(reader, aggregator, record, &move.row));
    reader->events += 2;
    return move.from != 0 ? aggregator_reallocate(aggregator, &reader->thread, &move) : ERR_CORRUPT;
}

static enum err add_growth(struct lane_reader *reader,
                           struct aggregator *aggregator,
                           const struct wire_record *record)
{
    uint32_t row;
    TRY(lane_dictionary_row(&reader->dictionary, &reader->thread, aggregator, record->slot, &row));
    const uint64_t old_bytes = record->address != 0 ? record->address : reader->thread.freed_bytes;
    return aggregator_grew(aggregator, row, old_bytes, record->size_bytes);
}

static enum err add_entry(struct lane_reader *reader,
                          struct aggregator *aggregator,
                          const struct wire_record *record)
{
    struct book_entry entry;
    if (!book_record_read(record->payload - 1, &entry)) {
        return ERR_CORRUPT;
    }
    for (uint32_t i = 0; i < entry.size_count; i++) {
        reader->events += book_cell_count(entry.sizes[i]);
    }
    for (uint32_t i = 0; i < entry.life_count; i++) {
        reader->events += book_cell_count(entry.lives[i]);
    }
    return aggregator_book_add(aggregator, &reader->thread, &entry);
}

static enum err add_row(const struct lane_reader *reader, const struct wire_record *record)
{
    const uint32_t node = lane_dictionary_node(&reader->dictionary, record->slot);
    return node != REC_NONE && record->count != 0
               ? aggregator_book_row(&reader->thread, record->count, record->level, node)
               : ERR_CORRUPT;
}

// Note a single block that is listed. Its thread has counted the event in a BOOK.
static enum err add_block(const struct lane_reader *reader,
                          struct aggregator *aggregator,
                          const struct wire_record *record)
{
    const uint64_t *words = record->payload;
    if (aggregator->blocks == NULL) {
        return ERR_CORRUPT;
    }
    const struct aggregator_process *process = reader->thread.process;
    const struct word_block block = {.address = record->address,
                                     .size_bytes = words[1],
                                     .birth_ms = words[0] & (((uint64_t)1 << WIRE_BIRTH_BITS) - 1),
                                     .row = (uint32_t)(words[0] >> WIRE_BIRTH_BITS)};
    const uint32_t peak_number = (uint32_t)words[2];
    if (record->tag == WIRE_BLOCK_BORN) {
        return book_blocks_born(aggregator->blocks, process, &block, peak_number);
    }
    // The time has 32 bits: it is the one that is closest to now.
    const uint64_t now_ms = aggregator->totals.now_ms;
    const int64_t ago_ms = (int32_t)((uint32_t)now_ms - (uint32_t)(words[2] >> 32));
    const int64_t freed_ms = (int64_t)now_ms - ago_ms;
    return book_blocks_freed(
        aggregator->blocks, &(struct freed_block){.block = block,
                                                  .freed_ms = freed_ms > 0 ? (uint64_t)freed_ms : 0,
                                                  .peak_number = peak_number,
                                                  .process = process->index,
                                                  .row = REC_NONE});
}

static enum err add_of_book(struct lane_reader *reader,
                            struct aggregator *aggregator,
                            const struct wire_record *record)
{
    return record->tag == WIRE_BOOK  ? add_entry(reader, aggregator, record)
           : record->tag == WIRE_ROW ? add_row(reader, record)
                                     : add_block(reader, aggregator, record);
}

// Count any record except TICK and STAMP.
static enum err add_record(struct lane_reader *reader,
                           struct aggregator *aggregator,
                           const struct wire_record *record)
{
    struct aggregator_thread *thread = &reader->thread;
    uint32_t row;
    switch (record->tag) {
    case WIRE_FREE:
    case WIRE_FREE_TEMPORARY:
        return add_free(reader, aggregator, record->address, record->tag == WIRE_FREE_TEMPORARY);
    case WIRE_ALLOC:
    case WIRE_ALLOC_LARGE:
        TRY(row_of_record(reader, aggregator, record, &row));
        reader->events++;
        return aggregator_allocate(aggregator, thread, record->address, row, record->size_bytes);
    case WIRE_REALLOC:
    case WIRE_REALLOC_LARGE:
    case WIRE_REALLOC_TEMPORARY:
    case WIRE_REALLOC_LARGE_TEMPORARY:
        return add_moved(reader, aggregator, record);
    case WIRE_GREW:
        return add_growth(reader, aggregator, record);
    case WIRE_STACK:
        return lane_dictionary_add_stack(&reader->dictionary, thread->process, aggregator, record);
    case WIRE_MODULE:
        return lane_dictionary_add_module(&reader->dictionary, thread->process, aggregator, record);
    case WIRE_TEXT:
        return lane_texts_add(&reader->texts, thread, aggregator, record);
    case WIRE_MAPPING:
        return add_change(reader, aggregator, record);
    case WIRE_EVENT:
        return add_event(reader, aggregator, record);
    case WIRE_QUERY:
        note_query(reader, aggregator, record);
        return ERR_OK;
    case WIRE_BOOK:
    case WIRE_ROW:
    case WIRE_BLOCK_BORN:
    case WIRE_BLOCK_FREED:
        return add_of_book(reader, aggregator, record);
    case WIRE_PAD:
    case WIRE_STAMP:
    case WIRE_TICK:
        break;
    }
    return ERR_OK;
}

// Prefetch what counting the record at words[at] will need. Return the start of the next one; `end`
// if that is unknown.
static inline size_t
prefetch_record(struct live_map *live, const uint64_t *words, size_t at, size_t end)
{
    const enum wire_tag tag = wire_tag_of(words[at]);
    const uint64_t address = words[at] >> 8;
    if (LIKELY(tag == WIRE_FREE || tag == WIRE_FREE_TEMPORARY)) {
        live_map_prefetch(live, address);
        return at + 1;
    }
    if (LIKELY(tag == WIRE_ALLOC)) {
        live_map_prefetch_add(live, address);
        return at + 2;
    }
    struct wire_record record;
    if (wire_decode(words + at, end - at, &record) != WIRE_DECODED) {
        return end;
    }
    if (record.tag == WIRE_REALLOC || record.tag == WIRE_REALLOC_TEMPORARY) {
        live_map_prefetch_add(live, address);
        live_map_prefetch(live, record.old_address); // needed first
    }
    return at + record.words;
}

static enum err add_time(struct lane_reader *reader,
                         struct aggregator *aggregator,
                         uint64_t time_ms,
                         uint64_t latest_ms)
{
    uint64_t tick = time_ms < latest_ms ? time_ms : latest_ms;
    tick = max_u64(tick, reader->thread.tick_ms);
    TRY(aggregator_tick(aggregator, tick));
    reader->thread.tick_ms = tick;
    return ERR_OK;
}

// Why counting some words ended.
enum booking_end {
    BOOKED_ALL,
    BOOKED_UP_TO_STAMP,
    BOOKED_UP_TO_CUT, // the next record continues behind them
};

// Some of a lane's records; those before `at` have been counted.
struct stretch {
    const uint64_t *words;
    size_t len;
    size_t at;
};

// Begin to prefetch what counting the next records will need.
static inline void fetch_ahead(struct lane_reader *reader, const struct stretch *s)
{
    struct live_map *live = &reader->thread.process->live;
    while (reader->fetched < s->len && reader->fetched < s->at + PREFETCH_WORDS) {
        reader->fetched = prefetch_record(live, s->words, reader->fetched, s->len);
    }
}

// Return the stamp to use for a stamp in the future, which is false. All such stamps of a lane get
// the moment of the first: the latest possible moment would delay its events from pass to pass
// without end.
static uint64_t believed_stamp(struct lane_reader *reader, uint64_t stamp, uint64_t latest_stamp)
{
    if (LIKELY(stamp <= latest_stamp)) {
        return stamp;
    }
    reader->lie_stamp = reader->lie_stamp != 0 ? reader->lie_stamp : latest_stamp;
    return reader->lie_stamp;
}

// Count the record at s->at, if it is complete.
static NOINLINE enum err add_other(struct lane_reader *reader,
                                   struct aggregator *aggregator,
                                   struct stretch *s,
                                   const struct lane_limits *limits,
                                   enum booking_end *out_end)
{
    struct wire_record record;
    const enum wire_result result = wire_decode(s->words + s->at, s->len - s->at, &record);
    if (UNLIKELY(result != WIRE_DECODED)) {
        *out_end = BOOKED_UP_TO_CUT;
        return result == WIRE_MALFORMED ? ERR_CORRUPT : ERR_OK;
    }
    if (record.tag == WIRE_TICK) {
        TRY(add_time(reader, aggregator, record.address, limits->time_ms));
    } else {
        TRY(add_record(reader, aggregator, &record));
    }
    s->at += record.words;
    return ERR_OK;
}

// Count the plain events at s->at, if any.
static inline enum err
add_plain(struct lane_reader *reader, struct aggregator *aggregator, struct stretch *s, size_t len)
{
    struct plain_words plain = {.words = s->words, .len = len, .at = s->at};
    const enum err err =
        plain_events_count(aggregator, &reader->thread, &reader->dictionary.rows, &plain);
    s->at = plain.at;
    reader->events += plain.events;
    return err;
}

// Count the record at s->at. The most frequent ones are counted as they are, because a decoded one
// goes through memory.
static inline enum err add_single(struct lane_reader *reader,
                                  struct aggregator *aggregator,
                                  struct stretch *s,
                                  uint64_t last_stamp,
                                  const struct lane_limits *limits,
                                  enum booking_end *out_end)
{
    const uint64_t *words = s->words + s->at;
    const enum wire_tag tag = wire_tag_of(words[0]);
    if (tag == WIRE_FREE) {
        TRY(add_free(reader, aggregator, words[0] >> 8, false));
        s->at++;
    } else if (tag == WIRE_ALLOC && s->at + 1 < s->len) {
        TRY(add_allocation(reader, aggregator, words[0] >> 8, words[1]));
        s->at += 2;
    } else if (tag == WIRE_STAMP) {
        const uint64_t stamp = believed_stamp(reader, words[0] >> 8, limits->stamp);
        if (stamp > last_stamp) {
            reader->next_stamp = stamp;
            *out_end = BOOKED_UP_TO_STAMP;
            return ERR_OK;
        }
        reader->thread.stamp = stamp != 0 ? stamp : 1;
        s->at++;
    } else {
        TRY(add_other(reader, aggregator, s, limits, out_end));
    }
    return ERR_OK;
}

static enum err add_words(struct lane_reader *reader,
                          struct aggregator *aggregator,
                          struct stretch *s,
                          uint64_t last_stamp,
                          const struct lane_limits *limits,
                          enum booking_end *out_end)
{
    struct live_map *live = &reader->thread.process->live;
    const bool needs_prefetch = live_map_needs_prefetch(live);
    *out_end = BOOKED_ALL;
    while (s->at < s->len && *out_end == BOOKED_ALL) {
        size_t len = s->len;
        if (needs_prefetch) {
            fetch_ahead(reader, s);
            len = min_u64(len, s->at + TOGETHER_WORDS);
        }
        if (plain_events_are(aggregator, &reader->thread)) {
            TRY(add_plain(reader, aggregator, s, len));
        }
        if (s->at < len) {
            TRY(add_single(reader, aggregator, s, last_stamp, limits, out_end));
        }
    }
    return ERR_OK;
}

// Copy the following words, at most up to the taken records, behind the rest of the piece.
// ERR_CORRUPT: no words follow, and the rest is an incomplete record.
static enum err copy_piece(struct lane_reader *reader)
{
    struct lane_consumer *consumer = &reader->consumer;
    if (reader->piece == NULL) {
        reader->piece = malloc(LANE_READER_PIECE_WORDS * sizeof(*reader->piece));
        if (reader->piece == NULL) {
            return ERR_NO_MEMORY;
        }
    }
    const size_t left = reader->piece_len - reader->piece_at;
    memmove(reader->piece, reader->piece + reader->piece_at, left * sizeof(*reader->piece));
    size_t room = (LANE_READER_PIECE_WORDS - left) * sizeof(*reader->piece);
    if (reader->taken.len > 0 && reader->taken_pos - consumer->read_pos < room) {
        room = reader->taken_pos - consumer->read_pos;
    }
    reader->piece_at = 0;
    reader->fetched = 0;
    const size_t bytes = lane_consumer_copy(consumer, reader->piece + left, room);
    reader->piece_len = left + bytes / sizeof(*reader->piece);
    if (bytes == 0) {
        return ERR_CORRUPT;
    }
    lane_consumer_advance(consumer, bytes);
    return ERR_OK;
}

// Count the records taken from the thread's book.
static enum err run_taken(struct lane_reader *reader,
                          struct aggregator *aggregator,
                          const struct lane_limits *limits)
{
    const size_t fetched = reader->fetched;
    enum booking_end end;
    struct stretch s = {.words = reader->taken.items, .len = reader->taken.len};
    reader->fetched = reader->taken.len; // they are few
    enum err err = add_words(reader, aggregator, &s, UINT64_MAX, limits, &end);
    reader->fetched = fetched;
    u64_vec_clear(&reader->taken);
    return err != ERR_OK || end == BOOKED_ALL ? err : ERR_CORRUPT;
}

enum err lane_reader_run(struct lane_reader *reader,
                         struct aggregator *aggregator,
                         uint64_t last_stamp,
                         const struct lane_limits *limits)
{
    reader->next_stamp = 0;
    while (lane_reader_has_unread(reader)) {
        enum booking_end end = BOOKED_ALL;
        struct stretch s = {
            .words = reader->piece, .len = reader->piece_len, .at = reader->piece_at};
        const enum err err = add_words(reader, aggregator, &s, last_stamp, limits, &end);
        reader->piece_at = s.at;
        TRY(err);
        if (end == BOOKED_UP_TO_STAMP) {
            return ERR_OK;
        }
        const bool is_taken_next = reader->consumer.read_pos >= reader->taken_pos ||
                                   lane_consumer_unread_bytes(&reader->consumer) == 0;
        if (end == BOOKED_ALL && reader->taken.len > 0 && is_taken_next) {
            TRY(run_taken(reader, aggregator, limits));
        } else if (end != BOOKED_ALL || lane_consumer_unread_bytes(&reader->consumer) > 0) {
            TRY(copy_piece(reader));
        }
    }
    return ERR_OK;
}
