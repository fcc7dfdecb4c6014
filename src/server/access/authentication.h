// SPDX-License-Identifier: MIT
// authentication: reads the credentials of a request; access.h judges them.
//
// Context: H; the connection's thread. Trust: the request is hostile.
#pragma once

#include <microhttpd.h>
#include <stdatomic.h>

#include "server/access/access.h"

// The page exchanges the token of its address for the server's token here. This spends the launch
// token that a browser's command line carries.
#define AUTHENTICATION_TOKEN_PATH "/api/v1/token"

// What a client must know. Valid once both tokens are drawn.
struct credentials {
    struct access_policy policy;
    struct access_token token;
    struct access_token launch; // a one-time substitute for the token
    atomic_bool is_launch_spent;
};

enum access_verdict authentication_check(struct credentials *credentials,
                                         struct MHD_Connection *connection,
                                         const char *target);

// Send the token that is valid until the server ends, to a client that was granted access.
enum MHD_Result authentication_send_token(const struct credentials *credentials,
                                          struct MHD_Connection *connection);

// Send the reason for the refusal. `verdict` is not ACCESS_GRANTED.
enum MHD_Result authentication_refuse(const struct credentials *credentials,
                                      struct MHD_Connection *connection,
                                      enum access_verdict verdict);
