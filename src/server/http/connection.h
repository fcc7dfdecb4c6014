// SPDX-License-Identifier: MIT
// connection: access to a request's headers and arguments and to its client's socket.
//
// Context: H; the connection's thread. Trust: headers and arguments are hostile. Ownership: results
// are borrowed from the connection until the request ends.
#pragma once

#include <microhttpd.h>

#include "server/http/request.h"

// The value of a request's header, or NULL.
const char *http_header(struct MHD_Connection *connection, const char *name);

// The first query argument of that name, decoded, or NULL.
const char *http_argument(struct MHD_Connection *connection, const char *name);

// Read all query arguments, decoded.
void http_arguments(struct MHD_Connection *connection, struct request_args *out);

// The connection's socket; -1, on which poll() never reports an event, if libmicrohttpd does not
// know it.
int http_client_socket(struct MHD_Connection *connection);
