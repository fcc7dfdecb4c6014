// SPDX-License-Identifier: MIT
// encoding: compression and entity tags of answers, and bytes as text.
//
// Context: H; pure. Trust: header values are hostile.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/text/strbuf.h"

// XXH3: equal on all machines; not for secrets.
uint64_t content_hash(const void *data, size_t len);

struct etag {
    char text[24]; // W/"0123456789abcdef"
};

// A weak tag: equal for the compressed and the plain form.
struct etag etag_of(uint64_t hash);

// Whether an If-None-Match header contains `tag`. NULL: there is no such header.
bool etag_is_in(const struct etag *tag, const char *if_none_match);

// Whether an Accept-Encoding header (NULL: none) permits gzip.
bool accepts_gzip(const char *accept_encoding);

enum gzip_effort {
    GZIP_FAST = 1,  // for the loopback
    GZIP_SMALL = 9, // for files
};

// Append the gzip form of `plain`.
enum err gzip_compress(struct bytes plain, enum gzip_effort effort, struct strbuf *out) MUST_USE;

// Append the contents of `packed`, a gzip file that cairn wrote. ERR_CORRUPT.
enum err gzip_expand(struct bytes packed, struct strbuf *out) MUST_USE;

// Append `data` as text of letters, digits, '+', '/' and '=' (RFC 4648, section 4), on one line.
void base64_append(struct strbuf *out, struct bytes data);

// The same for the bytes of `hex`, pairs of hexadecimal digits, at most those of a digest.
void base64_append_hex(struct strbuf *out, const char *hex);
