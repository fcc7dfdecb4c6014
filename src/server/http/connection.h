// SPDX-License-Identifier: MIT
// connection: what libmicrohttpd knows of a request and of its client.
//
// Context: H; the connection's thread. Trust: headers and arguments are hostile. What is returned
// is borrowed from the connection until the request ends.
#pragma once

#include <microhttpd.h>

#include "server/http/request.h"

// The value of a request's header, or NULL.
const char *http_header(struct MHD_Connection *connection, const char *name);

// The first argument of that name in the query, decoded, or NULL.
const char *http_argument(struct MHD_Connection *connection, const char *name);

// All arguments of the query, decoded.
void http_arguments(struct MHD_Connection *connection, struct request_args *out);

// The connection's socket; -1, on which nothing ever happens, if the library does not tell.
int http_client_socket(struct MHD_Connection *connection);
