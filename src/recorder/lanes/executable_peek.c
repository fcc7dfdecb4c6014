// SPDX-License-Identifier: MIT
// executable_peek: finds the name of a process's executable in the unread part of a lane.
//
// Code is symbolized while a program runs, before its first records are read. See
// lane_reader_peek_executable in the header.
// Context: H, the recorder's main thread.
#include <stdlib.h>

#include "recorder/lanes/lane_reader.h"

// Search `count` words. *out_words: the number of searched words; *found: the text was there.
static enum err peek_piece(struct lane_reader *reader,
                           struct aggregator *aggregator,
                           const uint64_t *words,
                           size_t count,
                           size_t *out_words,
                           bool *found)
{
    size_t at = 0;
    struct wire_record record;
    while (at < count && !*found && wire_decode(words + at, count - at, &record) == WIRE_DECODED) {
        if (record.tag == WIRE_TEXT) {
            const struct wire_text part = wire_text_of(&record);
            *found = part.kind == WIRE_TEXT_EXECUTABLE && (part.flags & WIRE_TEXT_MORE) == 0;
            if (*found) {
                TRY(string_table_intern_prefix(&aggregator->strings, part.text,
                                               &reader->thread.process->record.executable));
            }
        }
        at += record.words;
    }
    *out_words = at;
    return ERR_OK;
}

static enum err peek_ring(struct lane_reader *reader,
                          struct aggregator *aggregator,
                          struct lane_consumer *ahead,
                          bool *found)
{
    uint64_t *piece = malloc(LANE_READER_PIECE_WORDS * sizeof(*piece));
    if (piece == NULL) {
        return ERR_NO_MEMORY;
    }
    enum err err = ERR_OK;
    size_t words = 1;
    while (err == ERR_OK && !*found && words > 0 && lane_consumer_unread_bytes(ahead) > 0) {
        const size_t bytes =
            lane_consumer_copy(ahead, piece, LANE_READER_PIECE_WORDS * sizeof(*piece));
        err = peek_piece(reader, aggregator, piece, bytes / sizeof(*piece), &words, found);
        ahead->read_pos += words * sizeof(*piece);
    }
    free(piece);
    return err;
}

enum err lane_reader_peek_executable(struct lane_reader *reader, struct aggregator *aggregator)
{
    struct lane_consumer ahead = reader->consumer; // a copy: the producer sees no change
    bool found = false;
    if (reader->piece != NULL) { // NULL: nothing has been read yet
        size_t words;
        TRY(peek_piece(reader, aggregator, reader->piece + reader->piece_at,
                       reader->piece_len - reader->piece_at, &words, &found));
    }
    if (found || lane_consumer_refresh(&ahead) != ERR_OK) {
        return ERR_OK; // reading the lane reports it
    }
    if (reader->peeked_pos > ahead.read_pos && reader->peeked_pos <= ahead.write_pos) {
        ahead.read_pos = reader->peeked_pos;
    }
    TRY(peek_ring(reader, aggregator, &ahead, &found));
    reader->peeked_pos = ahead.read_pos;
    return ERR_OK;
}
