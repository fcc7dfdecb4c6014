// SPDX-License-Identifier: MIT
// utf8: reads and writes UTF-8, as RFC 3629 defines it: no overlong forms, no surrogates, nothing
// above U+10FFFF. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/text/strbuf.h"

// Decodes the character that text[0..len) begins with. Returns its length in bytes and sets *code,
// or returns 0 if the bytes are not UTF-8. A NUL is a character of one byte.
size_t utf8_decode_bytes(const char *text, size_t len, uint32_t *code);

// The same for a text that ends with a NUL.
size_t utf8_decode(const char *text, uint32_t *code);

// Whether all of `text` is UTF-8.
bool utf8_is_valid(const char *text);

// Whether `code` is a character: at most U+10FFFF and no surrogate.
bool utf8_is_character(uint32_t code);

// Appends the character `code`.
void utf8_append(struct strbuf *out, uint32_t code);
