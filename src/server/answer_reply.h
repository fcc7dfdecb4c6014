// SPDX-License-Identifier: MIT
// answer_reply: sends the API's answers: "not modified", or an answer computed in its turn while
// the client waits, compressed.
// Context: H; the connection's thread.
#pragma once

#include "server/api/routes.h"
#include "server/http.h"

enum MHD_Result answer_reply_send(struct http *http,
                                  struct MHD_Connection *connection,
                                  const struct route *route,
                                  const char *target);

// Send the answer of /meta at once, for pages that show a new state.
enum MHD_Result answer_reply_send_meta(struct http *http, struct MHD_Connection *connection);

// Send the progress of all requests in flight, without waiting for a turn.
enum MHD_Result answer_reply_send_work(struct http *http, struct MHD_Connection *connection);
