// SPDX-License-Identifier: MIT
// event_stream: the endless response that sends the events of event_hub to one page.
// Context: H; the connection's thread, which sleeps between two events.
#pragma once

#include <microhttpd.h>

#include "server/http/event_hub.h"

// Greet the page with the event `greeting`, formatted by event_format, and send it every later one.
enum MHD_Result event_stream_send(struct event_hub *hub,
                                  struct MHD_Connection *connection,
                                  const struct strbuf *greeting);
