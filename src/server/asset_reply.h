// SPDX-License-Identifier: MIT
// asset_reply: a file of the viewer as a response, and with the page the cookie that lets it in.
// Context: H; the connection's thread.
#pragma once

#include "server/assets.h"
#include "server/http.h"

enum MHD_Result asset_send(struct http *http,
                           struct MHD_Connection *connection,
                           const struct asset *asset,
                           const char *target);
