// SPDX-License-Identifier: MIT
// event_stream: the endless response that sends the events of event_hub to one page.
// Context: H; the connection's thread, which sleeps between two events.
#pragma once

#include "server/http.h"

enum MHD_Result event_stream_send(struct http *http, struct MHD_Connection *connection);

// Append the JSON of the events "hello" and "recording".
enum err event_format_state(const struct snapshot *snapshot, struct strbuf *out) MUST_USE;
