// SPDX-License-Identifier: MIT
#include "profile/select/leak_pattern.h"

#include <string.h>

// The first occurrence of the part in `name`; NULL if there is none.
static const char *find_part(const char *name, const char *part, size_t len)
{
    return len > 0 ? memmem(name, strlen(name), part, len) : name;
}

// The parts between the asterisks are found in order, each as early as possible, which leaves the
// most text to the rest. Only a part anchored at the end must be there.
bool leak_pattern_matches(const char *pattern, const char *name)
{
    size_t len = strlen(pattern);
    bool from_start = len > 0 && pattern[0] == '^';
    bool to_end = len > (size_t)from_start && pattern[len - 1] == '$';
    const char *at = pattern + from_start;
    const char *end = pattern + len - to_end;
    bool is_held = from_start;
    if (is_held && at != end && *at != '*' && *at != *name) {
        return false; // most names; many rules are tried on each
    }
    for (;;) {
        const char *star = memchr(at, '*', (size_t)(end - at));
        size_t part = (size_t)((star != NULL ? star : end) - at);
        size_t rest = strlen(name);
        if (star == NULL && to_end) {
            bool fits = part <= rest && memcmp(name + rest - part, at, part) == 0;
            return fits && (!is_held || part == rest);
        }
        const char *found =
            is_held ? (strncmp(name, at, part) == 0 ? name : NULL) : find_part(name, at, part);
        if (found == NULL || star == NULL) {
            return found != NULL;
        }
        name = found + part;
        at = star + 1;
        is_held = false;
    }
}
