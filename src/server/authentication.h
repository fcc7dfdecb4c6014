// SPDX-License-Identifier: MIT
// authentication: reads the credentials of a request; access.h judges them.
//
// Context: H; the connection's thread. Trust: the request is hostile.
#pragma once

#include "server/access/access.h"
#include "server/http.h"

// The page exchanges the token of its address for the server's token here. This spends the launch
// token that a browser's command line carries.
#define GATE_TOKEN_PATH "/api/v1/token"

enum access_verdict
gate_check(struct http *http, struct MHD_Connection *connection, const char *target);

// Send the token that is valid until the server ends, to a client that was granted access.
enum MHD_Result gate_send_token(struct http *http, struct MHD_Connection *connection);

// Send the reason for the refusal. `verdict` is not ACCESS_GRANTED.
enum MHD_Result gate_refuse(struct MHD_Connection *connection, enum access_verdict verdict);
