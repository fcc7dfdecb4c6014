// SPDX-License-Identifier: MIT
// event_stream: see event_stream.h.
#include "server/event_stream.h"

#include <inttypes.h>

#include "base/compiler.h"
#include "profile/model/profile.h"
#include "server/api/reply.h"
#include "server/http/connection.h"

enum err event_format_state(const struct snapshot *snapshot, struct strbuf *out)
{
    const struct opened *opened = snapshot->sides[SIDE_NEW];
    strbuf_printf(out, "{\"generation\":%" PRIu64 ",\"state\":\"%s\",\"runtime_ms\":%" PRIu64 "}",
                  snapshot->generation, profile_state_name(opened->profile),
                  opened->whole.runtime_ms);
    return strbuf_result(out);
}

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

enum MHD_Result event_stream_send(struct http *http, struct MHD_Connection *connection)
{
    enum {
        BLOCK_BYTES = 1024
    };
    CLEANUP(snapshot_unrefp) struct snapshot *snapshot = served_get(&http->served);
    CLEANUP(strbuf_release) struct strbuf state = {0};
    CLEANUP(strbuf_release) struct strbuf greeting = {0};
    if (event_format_state(snapshot, &state) != ERR_OK) {
        return MHD_NO;
    }
    event_format(&greeting, "hello", snapshot->generation, strbuf_text(&state));
    struct event_listener *listener =
        event_listener_new(&http->events, &greeting, http_client_socket(connection));
    if (listener == NULL) {
        return reply_refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, ERR_LIMIT,
                            "too many pages listen already");
    }
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_events, listener, end_events);
    if (response == NULL) {
        event_listener_free(listener);
    }
    struct reply reply = {.status = MHD_HTTP_OK, .type = "text/event-stream"};
    return reply_queue(connection, &reply, response);
}
