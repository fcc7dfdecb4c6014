// SPDX-License-Identifier: MIT
// gate: who may ask: what a request shows for itself is read here, and judged by access.
//
// Context: H; the connection's thread. Trust: the request is hostile.
#pragma once

#include "server/access.h"
#include "server/http.h"

// The value of the parameter "token", which needs no decoding; "" if there is none of its length.
void gate_find_token(const char *target, struct access_token *out);

// `is_write`: the request changes something. The launch token is spent by the page that shows it.
enum access_verdict
gate_check(struct http *http, struct MHD_Connection *connection, const char *target, bool is_write);

// Says why not; to who opened the page without its token, as a page. `verdict` is not
// ACCESS_GRANTED.
enum MHD_Result
gate_refuse(struct MHD_Connection *connection, enum access_verdict verdict, const char *target);
