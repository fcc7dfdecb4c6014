// SPDX-License-Identifier: MIT
// clean_text: names from a recording as valid UTF-8 on one line, for formats without escapes.
//
// Names are hostile bytes. Control characters become spaces, and bytes that are not UTF-8 become
// U+FFFD, so a name can neither start a line nor send a terminal command. Invisible characters and
// those that change the writing direction become escapes (host/text/visible_text.h). A character
// that the format reserves can be replaced, too. Context: H; pure.
#pragma once

#include <stdint.h>

#include "host/text/strbuf.h"
#include "profile/model/profile.h"

// A replacement for a character that the format reserves: every `reserved` (ASCII, 0: none) becomes
// `replacement`.
struct clean_rule {
    char reserved;
    char replacement;
};

void clean_append(struct strbuf *out, const char *text, struct clean_rule rule);

// Append the function name of a location; "libapp.so+0x4f2" if it has none, "(no stack)" for
// REC_NONE.
void clean_append_function(struct strbuf *out,
                           const struct profile *profile,
                           uint32_t location,
                           struct clean_rule rule);

// Append a location in the form of Valgrind's tools: "0x4F2: grow (vec.h:31)", or without a source
// file "0x4F2: grow (in /lib/libapp.so)", or without a name "0x4F2: ??? (in /lib/libapp.so)".
// `location` must not be REC_NONE.
void clean_append_place(struct strbuf *out,
                        const struct profile *profile,
                        uint32_t location,
                        struct clean_rule rule);
