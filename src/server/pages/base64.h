// SPDX-License-Identifier: MIT
// base64: bytes as text of letters, digits, '+', '/' and '=' (RFC 4648, section 4).
// Context: H; pure.
#pragma once

#include "base/bytes.h"
#include "host/text/strbuf.h"

// Append `data` on one line. `out` remembers a failure.
void base64_append(struct strbuf *out, struct bytes data);

// Append the bytes of `hex`, pairs of hexadecimal digits, at most those of a digest.
void base64_append_hex(struct strbuf *out, const char *hex);
