// SPDX-License-Identifier: MIT
// access: who may ask. Tokens, and the headers by which browsers say where a request comes from.
//
// The server listens on the loopback only, but every program and every web page on the machine can
// reach that. Whoever asks must show the token; the page keeps it by its origin, host and port. A
// cookie would not do: browsers send those of 127.0.0.1 to each of its ports, to the servers of
// other users, too. A page of another site is kept out twice: it cannot know the token, and its
// Origin is not ours; and a name that was rebound to 127.0.0.1 (DNS rebinding) shows in Host.
// Context: H; pure but for access_new_token. Trust: all headers are hostile.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum {
    ACCESS_TOKEN_LEN = 32
};

struct access_token {
    char text[ACCESS_TOKEN_LEN + 1]; // lower-case hexadecimal
};

// 128 bits from the kernel. ERR_IO if it has none.
enum err access_new_token(struct access_token *out, struct err_info *info) MUST_USE;

// Whether text[0..len) is the token; takes the same time wherever they differ.
bool access_is_token(const struct access_token *token, const char *text, size_t len);

// What of a request matters here. NULL for headers that were not sent.
struct access_headers {
    const char *host;
    const char *origin;
    const char *fetch_site;    // Sec-Fetch-Site
    const char *authorization; // Authorization
    const char *token;         // the parameter of that name
    bool is_page;              // asks for "/", to which any site may link
};

enum access_verdict {
    ACCESS_GRANTED,
    ACCESS_WRONG_HOST,   // 421
    ACCESS_WRONG_ORIGIN, // 403
    ACCESS_NO_TOKEN,     // 401
};

enum access_verdict access_check(const struct access_token *token,
                                 const struct access_headers *headers);

// Whether `host`, a Host header, names this machine's loopback: 127.0.0.1, localhost or [::1], with
// any port or none.
bool access_host_is_local(const char *host);
