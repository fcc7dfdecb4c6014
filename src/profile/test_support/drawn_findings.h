// SPDX-License-Identifier: MIT
// drawn_findings: what tests of findings look up in them and in the drawn profile.
//
// Context: tests only, after cmocka.h.
#pragma once

#include <string.h>

#include "profile/findings/findings.h"
#include "profile/test_support/drawn_profile.h"

// Return the first finding of a kind, or NULL.
static inline const struct finding *find(const struct findings *findings, enum finding_kind kind)
{
    for (size_t i = 0; i < findings->items.len; i++) {
        if (findings->items.items[i].kind == kind) {
            return &findings->items.items[i];
        }
    }
    return NULL;
}

// Return the id of a text that the drawing has, as the name of a function or otherwise.
static inline rec_string string_of(const struct profile *profile, const char *text)
{
    for (rec_string id = 0; id < profile->recording.strings.count; id++) {
        if (strcmp(profile_string(profile, id), text) == 0) {
            return id;
        }
    }
    fail();
    return 0;
}
