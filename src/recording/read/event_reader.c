// SPDX-License-Identifier: MIT
#include "recording/read/event_reader.h"

#include "host/os/file.h"
#include "recording/format/recording_file.h"

enum err event_reader_open(const char *path, struct event_reader *out, struct err_info *info)
{
    CLEANUP(event_reader_close) struct event_reader reader = EVENT_READER_INIT;
    TRY(recording_file_open(path, &reader.fd, &reader.source, info));
    struct file_header header;
    TRY(recording_file_check(&reader.source, &header, info));
    TRY(chunk_index_build(&reader.source, false, &reader.index, info));
    *out = reader;
    reader = (struct event_reader)EVENT_READER_INIT;
    return ERR_OK;
}

void event_reader_close(struct event_reader *reader)
{
    chunk_index_release(&reader->index);
    chunk_payload_release(&reader->payload);
    table_reader_release(&reader->table);
    fd_closep(&reader->fd);
    reader->fd = -1;
}

static enum err read_events(struct event_reader *reader,
                            const struct chunk_place *place,
                            struct rec_event_vec *events,
                            struct err_info *info)
{
    struct bytes payload;
    size_t count = 0;
    TRY(chunk_payload_read(&reader->source, place, &reader->payload, &payload, info));
    enum err err = rec_event_vec_resize(events, GROUP_MAX_ENTRIES);
    err = err != ERR_OK ? err
                        : table_reader_group(&reader->table, &rec_event_table, payload,
                                             reader->next_event, events->items, &count);
    if (err != ERR_OK) {
        events->len = 0;
        return err_set(info, err,
                       "the events in the chunk at offset %llu of '%s' are damaged, or those "
                       "before it are missing",
                       (unsigned long long)place->offset, reader->source.path);
    }
    events->len = count;
    reader->next_event += count;
    return ERR_OK;
}

enum err
event_reader_next(struct event_reader *reader, struct rec_event_vec *events, struct err_info *info)
{
    rec_event_vec_clear(events);
    while (reader->next_chunk < reader->index.chunks.len) {
        const struct chunk_place *place = &reader->index.chunks.items[reader->next_chunk++];
        if (place->head.type == CHUNK_EVENTS) {
            return read_events(reader, place, events, info);
        }
    }
    return ERR_OK;
}
