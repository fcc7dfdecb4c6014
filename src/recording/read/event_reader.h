// SPDX-License-Identifier: MIT
// event_reader: the events of a recording's event log (--events), in order.
//
//   CLEANUP(event_reader_close) struct event_reader reader = EVENT_READER_INIT;
//   event_reader_open(...);
//   while (event_reader_next(&reader, &events, &info) == ERR_OK && events.len > 0) ...
//
// It reads one chunk at a time, so the memory does not depend on the length of the log. The file
// need neither be finished nor hold a snapshot: the log of a killed run is read up to its last
// whole chunk. Events have the right shape, but their indices are unchecked. Context: H; one thread
// at a time.
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
    struct table_reader table; // decodes only
    size_t next_chunk;
    uint64_t next_event;
};

#define EVENT_READER_INIT \
    {                     \
        .fd = -1          \
    }

// Open the log of a file. Fails as recording_file_open and recording_file_check do.
enum err event_reader_open(const char *path, struct event_reader *out, struct err_info *info)
    MUST_USE;

// Replace *events by the next ones, at most 65536; none at the end. ERR_CORRUPT with the position
// if a chunk is damaged or missing, because the events after it are not reliable.
enum err event_reader_next(struct event_reader *reader,
                           struct rec_event_vec *events,
                           struct err_info *info) MUST_USE;

void event_reader_close(struct event_reader *reader);
