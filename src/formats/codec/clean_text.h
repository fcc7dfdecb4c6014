// SPDX-License-Identifier: MIT
// clean_text: names from a recording as valid UTF-8 on one line, for formats that cannot escape.
//
// Names are bytes that somebody else chose. Control characters become spaces and bytes that are no
// UTF-8 become U+FFFD, so that a name is neither a new line nor a terminal command; what is
// invisible or turns text around is spelled out (host/text/visible_text.h); a character that the
// format itself uses can be replaced, too. Context: H; pure.
#pragma once

#include <stdint.h>

#include "host/text/strbuf.h"
#include "profile/model/profile.h"

// What a format must not find in a name: every `reserved` (ASCII, 0: none) becomes `stand_in`.
struct clean_rule {
    char reserved;
    char stand_in;
};

void clean_append(struct strbuf *out, const char *text, struct clean_rule rule);

// The name of the function at a location; "libapp.so+0x4f2" if it has none, "(no stack)" for
// REC_NONE.
void clean_append_function(struct strbuf *out,
                           const struct profile *profile,
                           uint32_t location,
                           struct clean_rule rule);

// A location as Valgrind's tools write it: "0x4F2: grow (vec.h:31)", or without a source file
// "0x4F2: grow (in /lib/libapp.so)", or without a name "0x4F2: ??? (in /lib/libapp.so)". `location`
// must not be REC_NONE.
void clean_append_place(struct strbuf *out,
                        const struct profile *profile,
                        uint32_t location,
                        struct clean_rule rule);
