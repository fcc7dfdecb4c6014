// SPDX-License-Identifier: MIT
// visible_text: strangers' names, so that a reader sees what is there.
//
// Names come from recordings and may hold anything. Characters that are obeyed (controls), that are
// invisible, or that turn the direction of writing around would let one name look like another;
// each is spelled as an escape, \x1b or \u{202e}. web/src/base/shown-text.ts does the same in the
// viewer. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "host/text/strbuf.h"

// Whether the character is obeyed, invisible, or turns text around.
bool visible_is_hidden(uint32_t code);

// Appends the escape of a character.
void visible_append_escape(struct strbuf *out, uint32_t code);

// Appends `text`; hidden characters and bytes that are no UTF-8 as escapes.
void visible_append(struct strbuf *out, const char *text);
