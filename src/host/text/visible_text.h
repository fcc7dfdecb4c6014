// SPDX-License-Identifier: MIT
// visible_text: show hidden characters of hostile names.
//
// Names come from recordings and may hold any bytes. Control characters, invisible characters and
// characters that change the writing direction could make one name look like another. Each becomes
// an escape, \x1b or \u{202e}. web/src/base/shown-text.ts does the same in the viewer. Context: H;
// pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/text/strbuf.h"

// Return whether the character is a control, is invisible, or changes the writing direction.
bool visible_is_hidden(uint32_t code);

// Append the escape of a character.
void visible_append_escape(struct strbuf *out, uint32_t code);

// Append `text`, with escapes for hidden characters and for bytes that are not UTF-8.
void visible_append(struct strbuf *out, const char *text);
