// SPDX-License-Identifier: MIT
// base64: bytes as text of letters, digits, '+', '/' and '=' (RFC 4648, section 4).
// Context: H; pure.
#pragma once

#include "base/bytes.h"
#include "host/text/strbuf.h"

// Appends `data`, on one line. Running out of memory is walk_cache by `out`.
void base64_append(struct strbuf *out, struct bytes data);

// Appends the bytes that `hex`, pairs of hexadecimal digits in lower case, stands for.
void base64_append_hex(struct strbuf *out, const char *hex);
