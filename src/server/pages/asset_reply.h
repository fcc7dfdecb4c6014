// SPDX-License-Identifier: MIT
// asset_reply: sends a file of the viewer.
// Context: H; the connection's thread.
#pragma once

#include <microhttpd.h>

#include "server/pages/assets.h"

enum MHD_Result asset_send(struct MHD_Connection *connection, const struct asset *asset);
