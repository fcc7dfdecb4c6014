// SPDX-License-Identifier: MIT
// utf8: read and write UTF-8, as RFC 3629 defines it: no overlong forms, no surrogates, nothing
// above U+10FFFF. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/text/strbuf.h"

// Decode the first character of text[0..len). Return its length in bytes and set *code, or return 0
// if the bytes are not UTF-8. A NUL is a character of one byte.
size_t utf8_decode_bytes(const char *text, size_t len, uint32_t *code);

// Decode the first character of a zero-terminated text. Returns as utf8_decode_bytes does.
size_t utf8_decode(const char *text, uint32_t *code);

// Return whether all of `text` is UTF-8.
bool utf8_is_valid(const char *text);

// Return the length to which to cut text[0..len) so that at most `max` bytes are left. A character
// is not split; bytes that are not UTF-8 may be.
size_t utf8_cut(const char *text, size_t len, size_t max);

// Return whether `code` is a character: at most U+10FFFF and not a surrogate.
bool utf8_is_character(uint32_t code);

// Append the character `code`.
void utf8_append(struct strbuf *out, uint32_t code);
