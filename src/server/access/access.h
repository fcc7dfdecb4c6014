// SPDX-License-Identifier: MIT
// access: decides who may send requests, by tokens and by the headers that name a request's origin.
//
// The server listens on the loopback only, but every program and web page on the machine can reach
// it. Every client must present the token. The page stores it by its origin, host and port. A
// cookie would leak: browsers send cookies of 127.0.0.1 to every port, including the servers of
// other users.
// Two checks keep pages of other sites out: they cannot know the token, and their Origin differs. A
// name that was rebound to 127.0.0.1 (DNS rebinding) shows in Host.
// Context: H; pure except for access_new_token. Trust: all headers are hostile.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "server/access/access.h"

enum {
    ACCESS_TOKEN_LEN = 32
};

struct access_token {
    char text[ACCESS_TOKEN_LEN + 1]; // lower-case hexadecimal
};

// Draw 128 bits from the kernel. ERR_IO if it cannot provide them.
enum err access_new_token(struct access_token *out, struct err_info *info) MUST_USE;

// Whether text[0..len) is the token. The time does not depend on where they differ.
bool access_is_token(const struct access_token *token, const char *text, size_t len);

// What a server demands. Zeroed: the token, and a name of the loopback as its own.
struct access_policy {
    bool is_open;      // no token: all clients may read
    bool has_any_name; // it listens beyond the loopback, or on a Unix socket
    bool needs_header; // the token counts only in a header: addresses are in the logs of proxies
};

// The headers and parameters that decide access. NULL if not sent.
struct access_headers {
    const char *host;
    const char *origin;
    const char *fetch_site;    // Sec-Fetch-Site
    const char *authorization; // Authorization: the token as Bearer, or as the password of Basic
    const char *token;         // the query parameter `token`
    bool is_page;              // requests "/", which any site may link to
};

enum access_verdict {
    ACCESS_GRANTED,
    ACCESS_WRONG_HOST,   // 421
    ACCESS_WRONG_ORIGIN, // 403
    ACCESS_NO_TOKEN,     // 401
    ACCESS_WRONG_ROLE,   // 403: the token is for something else
};

enum access_verdict access_check(const struct access_token *token,
                                 struct access_policy policy,
                                 const struct access_headers *headers);

// Whether `host`, a Host header, names the loopback: 127.0.0.1, localhost or [::1], with or without
// a port.
bool access_host_is_local(const char *host);

// Read the token. Errors: those of file_read; ERR_INVALID with a sentence if it has no token.
enum err token_file_read(const char *path, struct access_token *out, struct err_info *info)
    MUST_USE;

// Read the token; if there is no such file, draw one and write it to a file that only its owner can
// read.
enum err token_file_read_or_make(const char *path, struct access_token *out, struct err_info *info)
    MUST_USE;
