// SPDX-License-Identifier: MIT
// reply: a response on its way out, with the headers that every one of ours has.
// Context: H; the connection's thread.
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

#include "host/text/strbuf.h"
#include "server/api/question.h"

// What is sent. Texts are borrowed.
struct reply {
    unsigned status;
    const char *type;  // Content-Type, NULL: none
    const char *etag;  // NULL: none
    const char *cache; // Cache-Control
    const char *allow; // Allow, of 405
    bool is_gzip;      // the body is compressed
};

// Sends `body`, which is emptied.
enum MHD_Result
reply_send(struct MHD_Connection *connection, const struct reply *reply, struct strbuf *body);

// Sends bytes that live for ever.
enum MHD_Result
reply_send_static(struct MHD_Connection *connection, const struct reply *reply, struct bytes body);

// Adds what every response has, and queues it; takes it over.
enum MHD_Result reply_queue(struct MHD_Connection *connection,
                            const struct reply *reply,
                            struct MHD_Response *response);

// Sends an error: JSON as docs/format/http-api.md says.
enum MHD_Result reply_problem(struct MHD_Connection *connection, const struct problem *problem);

// Refuses with a sentence.
enum MHD_Result
reply_refuse(struct MHD_Connection *connection, int status, enum err code, const char *message);

// 304: what the client has under `tag` still holds.
enum MHD_Result
reply_unchanged(struct MHD_Connection *connection, const char *tag, const char *cache);

// The HTTP status of a problem.
unsigned problem_status(const struct problem *problem);
