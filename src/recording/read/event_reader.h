// SPDX-License-Identifier: MIT
// event_reader: the events of a recording that holds a log of them (--events), in their order.
//
//   CLEANUP(event_reader_close) struct event_reader reader = EVENT_READER_INIT;
//   event_reader_open(...);
//   while (event_reader_next(&reader, &events, &info) == ERR_OK && events.len > 0) ...
//
// A chunk at a time, so any length of log takes the same memory. The file need not be finished, nor
// hold a snapshot: the log of a run that was killed is read up to its last whole chunk.
// What comes out has the right shape; indices may point anywhere. Context: H; one thread at a time.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "host/containers/vec.h"
#include "recording/format/chunk_index.h"
#include "recording/format/chunk_source.h"
#include "recording/format/tables.h"
#include "recording/read/table_reader.h"

DEFINE_VEC(rec_event_vec, struct rec_event);

struct event_reader {
    int fd; // owned
    struct chunk_source source;
    struct chunk_index index;
    struct chunk_payload payload;
    struct table_reader table; // only to decode with
    size_t next_chunk;
    uint64_t next_event;
};

#define EVENT_READER_INIT \
    {                     \
        .fd = -1          \
    }

// Errors: those of opening a recording.
enum err event_reader_open(const char *path, struct event_reader *out, struct err_info *info)
    MUST_USE;

// The same of bytes in memory, which must outlive the reader; `name` is for errors.
enum err event_reader_over(struct bytes file,
                           const char *name,
                           struct event_reader *out,
                           struct err_info *info) MUST_USE;

// Replaces *events by the next ones, at most 65536; none at the end. ERR_CORRUPT with the place: a
// chunk is damaged or missing, so that what follows cannot be relied on.
enum err event_reader_next(struct event_reader *reader,
                           struct rec_event_vec *events,
                           struct err_info *info) MUST_USE;

void event_reader_close(struct event_reader *reader);
