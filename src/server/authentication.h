// SPDX-License-Identifier: MIT
// authentication: who may ask: what a request shows for itself is read here, and judged by access.
//
// Context: H; the connection's thread. Trust: the request is hostile.
#pragma once

#include "server/access/access.h"
#include "server/http.h"

// What the page asks for with the token of its address, that of a browser's command line included,
// which is spent by it.
#define GATE_TOKEN_PATH "/api/v1/token"

enum access_verdict
gate_check(struct http *http, struct MHD_Connection *connection, const char *target);

// The token that is good for as long as the server runs, to who was let in.
enum MHD_Result gate_send_token(struct http *http, struct MHD_Connection *connection);

// Says why not. `verdict` is not ACCESS_GRANTED.
enum MHD_Result gate_refuse(struct MHD_Connection *connection, enum access_verdict verdict);
