// SPDX-License-Identifier: MIT
// answer_reply: an answer of the API as a response: unchanged, or made when its turn comes, as long
// as somebody waits for it, and compressed.
// Context: H; the connection's thread.
#pragma once

#include "server/api/routes.h"
#include "server/http.h"

enum MHD_Result answer_reply_send(struct http *http,
                                  struct MHD_Connection *connection,
                                  const struct route *route,
                                  const char *target);

// What a page shows of a new state: the answer of /meta, at once.
enum MHD_Result answer_reply_send_meta(struct http *http, struct MHD_Connection *connection);

// What is in the making and how far it is; never waits for a turn.
enum MHD_Result answer_reply_send_work(struct http *http, struct MHD_Connection *connection);
