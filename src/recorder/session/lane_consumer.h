// SPDX-License-Identifier: MIT
// lane_consumer: the recorder's end of a lane: copies new records, decodes them, frees the room.
//
//   lane_consumer_refresh()   reads the producer's position (acquire)
//   lane_consumer_copy()      copies a piece up to it into private memory
//   wire_decode()             decodes the records in it, one by one
//   lane_consumer_advance()   frees them: the producer may write there again
//
// Trust: the program may write anything anywhere, at any time. Positions are copied and checked
// before use, the consumer's own position is private and only published, and records are decoded
// from the private copy alone. A lane that breaks the rules returns ERR_CORRUPT. The caller then
// discards everything that arrives (lane_consumer_discard), so that the producer need not wait.
//
// Memory. With gives_back the pages of what was read are removed before it is freed: until then
// the producer does not write there. They exist again once it does. So that there are whole pages,
// what was read of a page is freed with the rest of it, or when all is read.
// Context: H; one thread at a time for a lane.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/compiler.h"
#include "base/err.h"
#include "session/layout.h"
#include "session/wire.h"

struct lane_consumer {
    struct lane_header *lane; // borrowed, shared with the program
    uint64_t read_pos;        // private
    uint64_t free_pos;        // what the lane has of it: before it the producer may write
    uint64_t write_pos;       // checked, as of the last refresh
    uint32_t ring_bytes;      // checked, as of the last refresh that found something
    bool gives_back;          // the caller's: pages that were read return to the kernel
};

void lane_consumer_init(struct lane_consumer *c, struct lane_header *lane);

// Look for new records. ERR_CORRUPT: positions or ring size are invalid.
enum err lane_consumer_refresh(struct lane_consumer *c) MUST_USE;

static inline uint64_t lane_consumer_unread_bytes(const struct lane_consumer *c)
{
    return c->write_pos - c->read_pos;
}

// Copy at most `max_bytes` (a multiple of 8) unread bytes, in one piece, to `to`. Return their
// number; 0 only if nothing is unread. They stay unread until advance.
size_t lane_consumer_copy(const struct lane_consumer *c, uint64_t *to, size_t max_bytes);

// Free the next `bytes` unread bytes. Wakes the producer if it waits for room.
void lane_consumer_advance(struct lane_consumer *c, size_t bytes);

// Discard everything, checked or not.
void lane_consumer_discard(struct lane_consumer *c);

// One decoded record. Fields that its tag does not have are undefined.
struct wire_record {
    enum wire_tag tag;
    uint32_t words;          // length, word 0 included
    uint64_t address;        // BLOCK*, MAPPING; TICK: the time; GREW: old size
    uint64_t size_bytes;     // EVENT: weight; GREW: new size
    uint32_t slot;           // STACK, MAPPING, EVENT, GREW, ROW; QUERY: what
    uint32_t level;          // ROW: of sampling; QUERY: scope
    uint32_t count;          // QUERY, ROW: its number
    const uint64_t *payload; // STACK, MODULE, TEXT, MAPPING, BOOK: the words after the first
};

enum wire_result {
    WIRE_DECODED,
    WIRE_INCOMPLETE, // the record continues behind the given words
    WIRE_MALFORMED,
};

static inline uint32_t wire_stack_count(const uint64_t *words)
{
    return (uint32_t)(words[0] >> 8) & 0xff;
}
static inline uint32_t wire_stack_flags(const uint64_t *words)
{
    return (uint32_t)(words[0] >> 16) & 0xff;
}

// Decode the record at words[0 .. count), count >= 1.
enum wire_result wire_decode(const uint64_t *words, size_t count, struct wire_record *out);

// The contents of a MODULE record; build_id and path are borrowed from the record.
struct wire_module {
    uint32_t slot;
    uint32_t flags; // enum wire_module_flags
    uint64_t bias;
    uint64_t start;
    uint64_t end;
    struct bytes build_id;
    struct bytes path;
};
struct wire_module wire_module_of(const struct wire_record *record);

// The contents of a TEXT record; the text is borrowed from the record.
struct wire_text {
    uint32_t kind;  // as sent: may not be an enum wire_text_kind
    uint32_t flags; // enum wire_text_flags
    struct bytes text;
};
struct wire_text wire_text_of(const struct wire_record *record);

// The contents of a MAPPING record.
struct wire_mapping wire_mapping_of(const struct wire_record *record);
