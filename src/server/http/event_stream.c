// SPDX-License-Identifier: MIT
#include "server/http/event_stream.h"

#include "server/http/connection.h"
#include "server/http/reply.h"

static ssize_t read_events(void *listener, uint64_t position, char *buffer, size_t max)
{
    (void)position;
    size_t len = event_listener_read(listener, buffer, max);
    return len > 0 ? (ssize_t)len : MHD_CONTENT_READER_END_OF_STREAM;
}

static void end_events(void *listener)
{
    event_listener_free(listener);
}

enum MHD_Result event_stream_send(struct event_hub *hub,
                                  struct MHD_Connection *connection,
                                  const struct strbuf *greeting)
{
    enum {
        BLOCK_BYTES = 1024
    };
    struct event_listener *listener =
        event_listener_new(hub, greeting, http_client_socket(connection));
    if (listener == NULL) {
        return reply_refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, ERR_LIMIT,
                            "too many pages are open");
    }
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_events, listener, end_events);
    if (response == NULL) {
        event_listener_free(listener);
    }
    struct reply reply = {.status = MHD_HTTP_OK, .type = "text/event-stream"};
    return reply_queue(connection, &reply, response);
}
