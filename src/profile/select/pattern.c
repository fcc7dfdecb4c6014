// SPDX-License-Identifier: MIT
#include "profile/select/pattern.h"

#include <string.h>

#include "profile/model/function_name.h"

enum err pattern_init(struct pattern *pattern,
                      enum pattern_kind kind,
                      const char *text,
                      const char *name,
                      struct err_info *info)
{
    struct pattern made = {.kind = kind, .text = text};
    if (kind == PATTERN_REGEX) {
        TRY(name_regex_compile(&made.regex, text, name, info));
    }
    *pattern = made;
    return ERR_OK;
}

void pattern_release(struct pattern *pattern)
{
    name_regex_release(&pattern->regex);
    strbuf_release(&pattern->form);
    *pattern = (struct pattern){0};
}

bool pattern_matches(struct pattern *pattern, const char *name)
{
    switch (pattern->kind) {
    case PATTERN_TEXT:
        return strcasestr(name, pattern->text) != NULL;
    case PATTERN_REGEX:
        return name_regex_matches(&pattern->regex, name);
    }
    return false;
}

static bool matches_form(struct pattern *pattern, const char *name, enum name_form form)
{
    strbuf_clear(&pattern->form);
    name_append(&pattern->form, name, form);
    return pattern_matches(pattern, strbuf_text(&pattern->form));
}

bool pattern_matches_function(struct pattern *pattern, const char *name)
{
    if (name[strcspn(name, " <(")] == '\0') {
        return pattern_matches(pattern, name); // all forms are equal
    }
    if (pattern->kind == PATTERN_TEXT) {
        bool is_plain = pattern->text[strcspn(pattern->text, " <>()")] == '\0';
        return is_plain ? matches_form(pattern, name, NAME_NO_TEMPLATES) ||
                              matches_form(pattern, name, NAME_NO_ANONYMOUS)
                        : matches_form(pattern, name, NAME_WHOLE);
    }
    for (int form = 0; form < NAME_FORM_COUNT; form++) {
        if (matches_form(pattern, name, (enum name_form)form)) {
            return true;
        }
    }
    return false;
}

enum err pattern_result(const struct pattern *pattern, struct err_info *info)
{
    return name_regex_result(&pattern->regex, info);
}

// The first occurrence of the part in `name`; NULL if there is none.
static const char *find_part(const char *name, const char *part, size_t len)
{
    return len > 0 ? memmem(name, strlen(name), part, len) : name;
}

char leak_pattern_first(const char *pattern)
{
    const bool is_any = pattern[0] != '^' || pattern[1] == '*' || strcmp(pattern, "^$") == 0;
    return (char)(is_any ? '\0' : pattern[1]);
}

// The parts between the asterisks are found in order, each as early as possible, which leaves the
// most text to the rest. Only a part anchored at the end must be there.
bool leak_pattern_matches(const char *pattern, const char *name)
{
    const char first = leak_pattern_first(pattern);
    if (first != '\0' && first != name[0]) {
        return false; // most names; many rules are tried on each
    }
    size_t len = strlen(pattern);
    bool from_start = len > 0 && pattern[0] == '^';
    bool to_end = len > (size_t)from_start && pattern[len - 1] == '$';
    const char *at = pattern + from_start;
    const char *end = pattern + len - to_end;
    bool is_held = from_start;
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
