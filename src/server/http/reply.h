// SPDX-License-Identifier: MIT
// reply: sends a response with the headers that all our responses have.
// Context: H; the connection's thread.
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "host/text/strbuf.h"
#include "server/http/request.h"

// A response without its body. Texts are borrowed.
struct reply {
    unsigned status;
    const char *type;  // Content-Type; NULL: none
    const char *etag;  // NULL: none
    const char *cache; // Cache-Control
    const char *allow; // Allow, for status 405
    bool is_gzip;      // the body is compressed
};

// Return a response without headers whose body is the text, which becomes empty. NULL without
// memory.
struct MHD_Response *reply_of(struct strbuf *body);

// Send `body` and empty it.
enum MHD_Result
reply_send(struct MHD_Connection *connection, const struct reply *reply, struct strbuf *body);

// Send bytes that are static.
enum MHD_Result
reply_send_static(struct MHD_Connection *connection, const struct reply *reply, struct bytes body);

// Add the headers of `reply` and the common ones. Return whether there was memory for them.
bool reply_add_headers(struct MHD_Response *response, const struct reply *reply);

// Add the common headers and queue the response, whose ownership it takes.
enum MHD_Result reply_queue(struct MHD_Connection *connection,
                            const struct reply *reply,
                            struct MHD_Response *response);

// Send an error as the JSON that docs/format/http-api.md describes.
enum MHD_Result reply_problem(struct MHD_Connection *connection, const struct problem *problem);

// Refuse with a sentence.
enum MHD_Result
reply_refuse(struct MHD_Connection *connection, int status, enum err code, const char *message);

// Send 304: the client's copy with `tag` is still valid.
enum MHD_Result
reply_unchanged(struct MHD_Connection *connection, const char *tag, const char *cache);
