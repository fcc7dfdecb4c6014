// SPDX-License-Identifier: MIT
#include "recorder/lanes/lane_reader.h"

#include <stdlib.h>
#include <string.h>

#include "aggregate/books/aggregator_book.h"
#include "aggregate/books/book_blocks.h"
#include "base/minmax.h"
#include "session/stats_query_values.h"

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

void lane_reader_shrink(struct lane_reader *reader)
{
    if (!lane_reader_has_unread(reader)) {
        u64_vec_release(&reader->taken);
        free(reader->piece);
        reader->piece = NULL;
        reader->piece_len = 0;
        reader->piece_at = 0;
    }
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

static enum err add_growth(struct lane_reader *reader,
                           struct aggregator *aggregator,
                           const struct wire_record *record)
{
    uint32_t row;
    const uint32_t node = lane_dictionary_node(&reader->dictionary, record->slot);
    if (node == REC_NONE) {
        return ERR_CORRUPT;
    }
    TRY(aggregator_row(aggregator, &reader->thread, node, &row));
    return aggregator_grew(aggregator, row, record->address, record->size_bytes);
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

// The stack in a slot has another row from now on.
static enum err add_row(struct lane_reader *reader,
                        const struct aggregator *aggregator,
                        const struct wire_record *record)
{
    uint32_t before;
    const uint32_t node = lane_dictionary_node(&reader->dictionary, record->slot);
    if (node == REC_NONE) {
        return ERR_CORRUPT;
    }
    if (record->count != 0) {
        TRY(aggregator_book_row(&reader->thread, record->count, record->level, node));
    }
    TRY(lane_dictionary_set_number(&reader->dictionary, record->slot, record->count, &before));
    return aggregator_book_leave(aggregator, reader->thread.process, before);
}

enum err lane_reader_leave_rows(struct lane_reader *reader, const struct aggregator *aggregator)
{
    const struct u32_vec *numbers = &reader->dictionary.numbers;
    for (size_t slot = 0; slot < numbers->len; slot++) {
        TRY(aggregator_book_leave(aggregator, reader->thread.process, numbers->items[slot]));
    }
    return ERR_OK;
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
           : record->tag == WIRE_ROW ? add_row(reader, aggregator, record)
                                     : add_block(reader, aggregator, record);
}

// Count any record except TICK.
static enum err add_record(struct lane_reader *reader,
                           struct aggregator *aggregator,
                           const struct wire_record *record)
{
    struct aggregator_thread *thread = &reader->thread;
    switch (record->tag) {
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
    case WIRE_TICK:
        break;
    }
    return ERR_OK;
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

// Some of a lane's records; those before `at` have been counted.
struct stretch {
    const uint64_t *words;
    size_t len;
    size_t at;
};

// Note what is wrong with the words at s->at, and return ERR_CORRUPT.
static NOINLINE enum err
refuse(struct lane_reader *reader, const struct stretch *s, const char *rule)
{
    reader->fault.is_of_book = s->words == reader->taken.items;
    reader->fault.pos = reader->consumer.read_pos;
    lane_fault_note(&reader->fault, rule, s->words + s->at, s->len - s->at);
    return ERR_CORRUPT;
}

// Count the records that are complete.
static enum err add_words(struct lane_reader *reader,
                          struct aggregator *aggregator,
                          struct stretch *s,
                          uint64_t latest_ms)
{
    struct wire_record record;
    while (s->at < s->len) {
        const enum wire_result result = wire_decode(s->words + s->at, s->len - s->at, &record);
        if (UNLIKELY(result != WIRE_DECODED)) {
            return result == WIRE_MALFORMED ? refuse(reader, s, "no record begins so") : ERR_OK;
        }
        const enum err err = record.tag == WIRE_TICK
                                 ? add_time(reader, aggregator, record.address, latest_ms)
                                 : add_record(reader, aggregator, &record);
        if (UNLIKELY(err != ERR_OK)) {
            return err != ERR_CORRUPT ? err
                                      : refuse(reader, s,
                                               lane_fault_rule(&record, &reader->dictionary,
                                                               reader->thread.process));
        }
        s->at += record.words;
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
    const size_t bytes = lane_consumer_copy(consumer, reader->piece + left, room);
    reader->piece_len = left + bytes / sizeof(*reader->piece);
    if (bytes == 0) {
        return refuse(reader, &(struct stretch){.words = reader->piece, .len = left},
                      "the record has no end");
    }
    lane_consumer_advance(consumer, bytes);
    return ERR_OK;
}

// Count the records taken from the thread's book.
static enum err
run_taken(struct lane_reader *reader, struct aggregator *aggregator, uint64_t latest_ms)
{
    struct stretch s = {.words = reader->taken.items, .len = reader->taken.len};
    enum err err = add_words(reader, aggregator, &s, latest_ms);
    if (err == ERR_OK && s.at < s.len) {
        err = refuse(reader, &s, "the record has no end");
    }
    u64_vec_clear(&reader->taken);
    return err;
}

enum err
lane_reader_run(struct lane_reader *reader, struct aggregator *aggregator, uint64_t latest_ms)
{
    while (lane_reader_has_unread(reader)) {
        struct stretch s = {
            .words = reader->piece, .len = reader->piece_len, .at = reader->piece_at};
        const enum err err = add_words(reader, aggregator, &s, latest_ms);
        reader->piece_at = s.at;
        TRY(err);
        const bool is_cut = s.at < s.len; // the next record continues behind the piece
        const bool is_taken_next = reader->consumer.read_pos >= reader->taken_pos ||
                                   lane_consumer_unread_bytes(&reader->consumer) == 0;
        if (!is_cut && reader->taken.len > 0 && is_taken_next) {
            TRY(run_taken(reader, aggregator, latest_ms));
        } else if (is_cut || lane_consumer_unread_bytes(&reader->consumer) > 0) {
            TRY(copy_piece(reader));
        }
    }
    return ERR_OK;
}
